#include "worker-image/program/cache_job.h"

#include <map>
#include <set>

#include "src/base/testing/catch.h"

namespace sluice::program {
namespace {

using Variables = std::map<std::string, std::string>;

cache::JobId job_of(const executor::JobLabels& labels, const Variables& variables, std::uint64_t own = 1) {
  const auto value = [&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? "" : found->second;
  };
  return cache_job(labels, value, own);
}

TEST_CASE("processes of one training are one job, and of two trainings are two") {
  const executor::JobLabels labels{"resnet", "team"};
  const Variables launched{{"MASTER_ADDR", "node-1"}, {"MASTER_PORT", "29500"}, {"TORCHELASTIC_RUN_ID", "none"}};
  const auto with = [&](const char* name, const char* value) {
    Variables changed = launched;
    changed[name] = value;
    return changed;
  };
  CHECK(job_of(labels, {}, 1) == job_of(labels, {}, 2));  // feeder and data workers
  CHECK(job_of(labels, launched) == job_of(labels, with("MASTER_PORT", "29501")));
  CHECK(job_of({}, launched, 1) == job_of({}, with("RANK", "1"), 2));  // ranks that share no feeder
  const std::set<cache::JobId> others{
      job_of(labels, {}),
      job_of({"resnet", "other"}, {}),
      job_of({"resnet2", "team"}, {}),
      job_of({"", "team"}, {}, 5),
      job_of({}, {}, 6),
      job_of({}, launched),
      job_of({}, with("MASTER_PORT", "29501")),
      job_of({}, with("MASTER_ADDR", "node-2")),
      job_of({}, with("TORCHELASTIC_RUN_ID", "run 7")),
      job_of({}, with("SLURM_JOB_ID", "1234")),
  };
  CHECK(others.size() == 10);
}

}  // namespace
}  // namespace sluice::program
