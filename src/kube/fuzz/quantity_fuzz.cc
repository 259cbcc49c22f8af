// Quantities: a thousand times as many millicores as units (but for rounding), and signs that mirror.
#include <string>

#include "src/kube/fuzz/fuzz.h"
#include "src/kube/quantity.h"

namespace sluice::kube::fuzz {

void quantity(std::string_view input) {
  const auto units = parse_bytes(input);
  const auto millis = parse_millicores(input);
  if (millis.ok()) FUZZ_CHECK(units.ok());  // the smaller unit overflows first
  if (!units.ok() || !millis.ok()) return;
  const std::int64_t rounded_away = *millis / 1000 + (*millis % 1000 > 0 ? 1 : *millis % 1000 < 0 ? -1 : 0);
  FUZZ_CHECK(*units == rounded_away);
  if (input.front() == '-' || input.front() == '+') return;
  FUZZ_CHECK(*parse_bytes("-" + std::string(input)) == -*units);
}

}  // namespace sluice::kube::fuzz
