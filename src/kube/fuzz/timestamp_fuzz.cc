// Times: what is understood is written back as a time that is understood as the same.
#include "src/kube/fuzz/fuzz.h"
#include "src/kube/timestamp.h"

namespace sluice::kube::fuzz {

void timestamp(std::string_view input) {
  const auto time = parse_time(input);
  if (!time) return;
  const std::string written = format_microtime(*time);
  const auto again = parse_time(written);
  FUZZ_CHECK(again && *again == *time);
  FUZZ_CHECK(written.substr(0, 19) == input.substr(0, 19));
}

}  // namespace sluice::kube::fuzz
