#include "src/kube/timestamp.h"

#include "src/base/testing/catch.h"

namespace sluice::kube {

TEST_CASE("times are written as the API wants them and read back") {
  const Clock::WallTimePoint time{std::chrono::seconds(1767225600) + std::chrono::microseconds(42)};
  CHECK(format_time(time) == "2026-01-01T00:00:00Z");
  CHECK(format_microtime(time) == "2026-01-01T00:00:00.000042Z");
  CHECK(parse_time("2026-01-01T00:00:00.000042Z") == time);
  CHECK(parse_time("2026-01-01T00:00:00Z") == Clock::WallTimePoint(std::chrono::seconds(1767225600)));
  CHECK(parse_time("2026-01-01T00:00:00.5Z") ==
        Clock::WallTimePoint(std::chrono::seconds(1767225600) + std::chrono::milliseconds(500)));
  for (const char* text : {"", "Z", "2026-01-01T00:00:00", "2026-01-01 00:00:00Z", "2026-01-01T00:00:00.Z",
                           "2026-01-01T00:00:00.xZ", "2026-0a-01T00:00:00Z", "2026-01-01T00:00:00+01:00Z"}) {
    INFO(text);
    CHECK_FALSE(parse_time(text));
  }
}

}  // namespace sluice::kube
