// Quantities: a thousand times as many millicores as units (but for rounding, and as far as they fit), and signs that
// mirror.
#include <cstdlib>
#include <limits>
#include <string>

#include "src/kube/fuzz/fuzz.h"
#include "src/kube/quantity.h"

namespace sluice::kube::fuzz {

void quantity(std::string_view input) {
  const auto units = parse_bytes(input);
  const auto millis = parse_millicores(input);
  FUZZ_CHECK(millis.ok() == units.ok());
  if (!units.ok()) return;
  const std::int64_t rounded_away = *millis / 1000 + (*millis % 1000 > 0 ? 1 : *millis % 1000 < 0 ? -1 : 0);
  const bool fits = std::abs(*millis) < std::numeric_limits<std::int64_t>::max();
  FUZZ_CHECK(fits ? *units == rounded_away : std::abs(*units) >= std::abs(rounded_away) - 1);
  if (input.front() == '-' || input.front() == '+') return;
  FUZZ_CHECK(*parse_bytes("-" + std::string(input)) == -*units);
}

}  // namespace sluice::kube::fuzz
