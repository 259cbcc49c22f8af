#include "operator/observe/namespace_caps.h"

#include "src/base/testing/catch.h"

namespace sluice::observe {
namespace {

TEST_CASE("priority and weight count up to their caps, and a sentence tells") {
  struct Case {
    const char* situation;
    control::NamespaceCaps caps;
    int want_priority;
    int want_weight;
    std::string want;
  };
  const Case cases[] = {
      {"no cap", {}, 5, 400, ""},
      {"at the caps", {.priority = 5, .weight = 400}, 5, 400, ""},
      {"priority", {.priority = 0}, 0, 400, "Its priority 5 counts as 0, the most in namespace team-a."},
      {"weight", {.weight = 100}, 5, 100, "Its weight 400 counts as 100, the most in namespace team-a."},
      {"both",
       {.priority = -1, .weight = 1},
       -1,
       1,
       "Its priority 5 counts as -1, the most in namespace team-a. Its weight 400 counts as 1, the most in namespace "
       "team-a."},
      {"cores bound no single job", {.worker_cores = 0.0}, 5, 400, ""},
  };
  for (const Case& c : cases) {
    CAPTURE(c.situation);
    scheduler::Job job;
    job.id = {"team-a", "vision"};
    job.priority = 5;
    job.weight = 400;
    CHECK(apply_caps(c.caps, job) == c.want);
    CHECK(job.priority == c.want_priority);
    CHECK(job.weight == c.want_weight);
  }
}

}  // namespace
}  // namespace sluice::observe
