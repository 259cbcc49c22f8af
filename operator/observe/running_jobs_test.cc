// When a job counts as running: its workers stay or go by it.
#include <nlohmann/json.hpp>

#include "operator/observe/snapshot_builder.h"
#include "operator/testing/seen_cluster.h"
#include "src/base/testing/catch.h"

namespace sluice::observe {
namespace {

using namespace testing;
using nlohmann::json;

TEST_CASE("when a job counts as running") {
  ClusterObjects objects = cluster();
  SECTION("not before its trainer is ready") {
    put(objects.jobs, trainer_job(0));
    CHECK_FALSE(build(objects).jobs[0].running);
  }
  SECTION("still while its trainer is being restarted, if it has workers to lose") {
    json job = trainer_job(0);
    job["status"]["active"] = 1;
    put(objects.jobs, job);
    CHECK(build(objects).jobs[0].running);
    put(objects.pools, pool(0));
    CHECK_FALSE(build(objects).jobs[0].running);
  }
  SECTION("still while all its pods are started again, if it has workers to lose") {
    json gang = training_job();
    gang["spec"]["trainer"]["replicas"] = 2;
    put(objects.training_jobs, gang);
    json failed = trainer_job(0);
    failed["status"]["conditions"] = json::array({condition("Failed", "True")});
    put(objects.jobs, failed);
    CHECK_FALSE(build(objects).jobs[0].running);  // for another reason than its pods
    failed["status"]["conditions"][0]["reason"] = "BackoffLimitExceeded";
    put(objects.jobs, failed);
    CHECK(build(objects).jobs[0].running);
    gang["status"]["restarts"] = 1;
    put(objects.training_jobs, gang);
    objects.jobs.clear();  // deleted, not made yet
    CHECK(build(objects).jobs[0].running);
    put(objects.jobs, trainer_job(0));  // made, without pods yet
    CHECK(build(objects).jobs[0].running);
    json queued = trainer_job(0);
    queued["spec"]["suspend"] = true;
    put(objects.jobs, queued);
    CHECK_FALSE(build(objects).jobs[0].running);
    objects.jobs.clear();
    put(objects.pools, pool(0));
    CHECK_FALSE(build(objects).jobs[0].running);
  }
  SECTION("not while suspended") {
    json job = training_job();
    job["spec"]["suspend"] = true;
    put(objects.training_jobs, job);
    CHECK_FALSE(build(objects).jobs[0].running);
  }
  SECTION("not after its trainer has finished, though the status lags") {
    json job = trainer_job(1);
    job["status"]["conditions"] = json::array({condition("Complete", "True")});
    put(objects.jobs, job);
    CHECK_FALSE(build(objects).jobs[0].running);
  }
  SECTION("not with a namesake's trainer") {
    json job = trainer_job(1);
    job["metadata"]["ownerReferences"][0]["uid"] = "uid-old";
    put(objects.jobs, job);
    CHECK_FALSE(build(objects).jobs[0].running);
  }
}

}  // namespace
}  // namespace sluice::observe
