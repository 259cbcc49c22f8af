#include "src/base/job_number.h"

#include "src/base/testing/catch.h"

namespace sluice {
namespace {

// Programs of several versions make them, so they never change.
TEST_CASE("the numbers of jobs and owners are those of earlier versions") {
  CHECK(job_number("team-a", "vision") == 0x3ddbee2ab9fcf3a0);
  CHECK(number_of("team-a", 7) == 0x1fb72da52b670f5c);
}

TEST_CASE("jobs of one name in two namespaces, and numbers of two owners, differ") {
  CHECK(job_number("a", "bc") != job_number("ab", "c"));
  CHECK(number_of("a", 7) != number_of("b", 7));
  CHECK(number_of("a", 7) != number_of("a", 8));
}

}  // namespace
}  // namespace sluice
