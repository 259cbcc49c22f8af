#include "operator/act/trainer_obstacle.h"

#include <nlohmann/json.hpp>

#include "operator/testing/objects.h"
#include "src/base/testing/catch.h"

namespace sluice::act {
namespace {

using control::testing::shared;
using nlohmann::json;

// A pod of the trainer's Job that waits for the scheduler, or for its container.
json waiting_pod(const std::string& reason, const std::string& message) {
  json status;
  if (reason == "Unschedulable")
    status["conditions"] = {{{"type", "PodScheduled"}, {"status", "False"}, {"reason", reason}, {"message", message}}};
  else
    status["containerStatuses"] = {{{"state", {{"waiting", {{"reason", reason}, {"message", message}}}}}}};
  return {{"metadata",
           {{"name", "vision-0-x7f2q"},
            {"namespace", "default"},
            {"ownerReferences", {{{"kind", "Job"}, {"name", "vision"}, {"uid", "uid-job"}, {"controller", true}}}}}},
          {"status", std::move(status)}};
}

json job_with(int active) {
  return {{"metadata", {{"name", "vision"}, {"namespace", "default"}, {"uid", "uid-job"}}},
          {"status", {{"active", active}}}};
}

TEST_CASE("a trainer whose pod cannot start says why") {
  struct Case {
    json pod;
    const char* want;
  };
  json ended = waiting_pod("ErrImageNeverPull", "x"), leaving = ended, of_another_job = ended;
  ended["status"]["phase"] = "Failed";
  leaving["metadata"]["deletionTimestamp"] = "2026-01-01T03:00:00Z";
  of_another_job["metadata"]["ownerReferences"][0]["uid"] = "uid-of-the-job-before";
  const Case test = GENERATE_COPY(
      Case{waiting_pod("ErrImageNeverPull", "no image"),
           "pod vision-0-x7f2q cannot start: ErrImageNeverPull: no image"},
      Case{waiting_pod("Unschedulable", "0/3 nodes"), "pod vision-0-x7f2q cannot start: Unschedulable: 0/3 nodes"},
      Case{waiting_pod("InvalidImageName", ""), "pod vision-0-x7f2q cannot start: InvalidImageName"},
      Case{waiting_pod("ContainerCreating", ""), ""}, Case{ended, ""}, Case{leaving, ""}, Case{of_another_job, ""});
  const json job = job_with(1);
  CHECK(trainer_obstacle(api::TrainerJob(job), {shared(test.pod)}) == test.want);
}

TEST_CASE("a trainer's pod that no scheduler looks at says for what it waits") {
  struct Case {
    const char* spec;
    const char* want;
  };
  const Case test = GENERATE(
      Case{R"({"schedulingGates": [{"name": "team.example/data"}], "schedulerName": "default-scheduler"})",
           "pod vision-0-x7f2q waits at the scheduling gate team.example/data; who has set it lets it start"},
      Case{R"({"schedulerName": "volcano"})",
           "pod vision-0-x7f2q waits for the scheduler volcano; if that lasts, does it run, and what do the pod's "
           "events say?"},
      Case{R"({"schedulerName": "volcano", "nodeName": "n1"})", ""});
  json pod = waiting_pod("ContainerCreating", "");
  pod["spec"] = json::parse(test.spec);
  const json job = job_with(1);
  CHECK(trainer_obstacle(api::TrainerJob(job), {shared(pod)}) == test.want);
}

TEST_CASE("a trainer whose Job makes no pods says where the reason is") {
  const json none = job_with(0), some = job_with(1);
  CHECK(trainer_obstacle(api::TrainerJob(none), {}) ==
        "no pod is made yet; if that lasts, the events of Job vision say why");
  CHECK(trainer_obstacle(api::TrainerJob(some), {}).empty());
}

TEST_CASE("the scheduler's count of nodes alone is no news, the number of ready pods is") {
  struct Case {
    const char* text;
    const char* obstacle;
    const char* want;
  };
  const Case test = GENERATE(Case{"0 of 3 are ready", "0/5 nodes: 4 taints", "0 of 3 are ready; 0/3 nodes: 3 taints"},
                             Case{"0 of 3 are ready", "0/5 nodes: 4 disks", "0 of 3 are ready; 0/5 nodes: 4 disks"},
                             Case{"1 of 3 are ready", "0/3 nodes: 3 taints", "1 of 3 are ready; 0/3 nodes: 3 taints"},
                             Case{"0 of 3 are ready", "", "0 of 3 are ready"});
  CHECK(with_obstacle(test.text, test.obstacle, "0 of 3 are ready; 0/3 nodes: 3 taints") == test.want);
}

TEST_CASE("without a pod, a value that the LimitRange of the namespace refuses is the reason") {
  const json job = {{"metadata", {{"name", "vision"}, {"uid", "uid-job"}}}};
  CHECK(trainer_obstacle(api::TrainerJob(job), {}, "lower it") == "no pod is made: lower it");
  json active = job;
  active["status"] = {{"active", 1}};
  CHECK(trainer_obstacle(api::TrainerJob(active), {}, "lower it").empty());
}

}  // namespace
}  // namespace sluice::act
