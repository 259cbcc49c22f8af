#include "operator/observe/pod_index.h"

#include <nlohmann/json.hpp>

#include "operator/testing/objects.h"
#include "src/base/testing/catch.h"

namespace sluice::observe {
namespace {

using control::testing::shared;
using nlohmann::json;

TEST_CASE("the index follows worker pods as they come, change and go") {
  PodIndex index(job_of_worker);
  const kube::ObjectKey job{"default", "vision"};
  const auto first = shared({{"metadata",
                              {{"name", "vision-worker-0"},
                               {"namespace", "default"},
                               {"labels", {{"sluice.dev/component", "worker"}, {"sluice.dev/job", "vision"}}}}}});
  const auto other = shared({{"metadata", {{"name", "other"}, {"namespace", "default"}}}});
  CHECK(index.apply({"default", "vision-worker-0"}, nullptr, first) == job);
  CHECK(index.apply({"default", "other"}, nullptr, other).name.empty());
  CHECK(index.pods_of(job).size() == 1);
  json relabelled = *first;
  relabelled["metadata"]["labels"]["sluice.dev/job"] = "speech";
  index.apply({"default", "vision-worker-0"}, first, shared(relabelled));
  CHECK(index.pods_of(job).empty());
  CHECK(index.pods_of({"default", "speech"}).size() == 1);
  CHECK(index.apply({"default", "vision-worker-0"}, shared(relabelled), nullptr).name == "speech");
  CHECK(index.pods_of({"default", "speech"}).empty());
}

TEST_CASE("a pod is a job's business by its pool, its labels or its name") {
  struct Case {
    const char* name;
    const char* metadata;
    const char* want_job;
  };
  const Case test = GENERATE(
      Case{"a worker without its labels",
           R"({"name":"x","ownerReferences":[{"kind":"DataWorkerPool","name":"vision","controller":true}]})", "vision"},
      Case{"a stranger with a worker's name", R"({"name":"vision-worker-12"})", "vision"},
      Case{"a trainer with such a name", R"({"name":"vision-worker-12","labels":{"sluice.dev/component":"trainer"}})",
           ""},
      Case{"a pod of a job called worker", R"({"name":"vision-worker-0-x7f2q"})", ""},
      Case{"no number", R"({"name":"vision-worker-"})", ""}, Case{"no job", R"({"name":"-worker-1"})", ""});
  INFO(test.name);
  CHECK(job_of_worker({{"metadata", json::parse(test.metadata)}}).name == test.want_job);
}

TEST_CASE("a trainer's pod is its job's by its labels, and no other pod is") {
  json pod = {{"metadata",
               {{"name", "vision-0-x7f2q"},
                {"namespace", "default"},
                {"labels", {{"sluice.dev/component", "trainer"}, {"sluice.dev/job", "vision"}}}}}};
  CHECK(job_of_trainer(pod) == kube::ObjectKey{"default", "vision"});
  pod["metadata"]["labels"]["sluice.dev/component"] = "worker";
  CHECK(job_of_trainer(pod).name.empty());
}

}  // namespace
}  // namespace sluice::observe
