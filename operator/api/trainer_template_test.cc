#include "operator/api/trainer_template.h"

#include <nlohmann/json.hpp>

#include "operator/testing/objects.h"
#include "src/base/testing/catch.h"

namespace sluice::api {
namespace {

using control::testing::training_job;
using nlohmann::json;

TEST_CASE("a path counts as the place where a container has it") {
  struct Row {
    const char* path;
    const char* want;
  };
  const Row row = GENERATE(Row{"/run/sluice", "/run/sluice"}, Row{"//run//sluice/", "/run/sluice"},
                           Row{"/var/run/sluice", "/run/sluice"}, Row{"/var/run", "/run"},
                           Row{"/var/running", "/var/running"}, Row{"/", "/"}, Row{"", ""});
  CHECK(tidy_path(row.path) == row.want);
}

TEST_CASE("what would keep the feeder or the trainer from starting is refused with the field and the way out") {
  struct Row {
    const char* situation;
    const char* spec;  // merged over the trainer's pod spec
    const char* want;  // of the message; empty: it passes
  };
  const Row row = GENERATE(
      Row{"an init container of our name", R"({"initContainers": [{"name": "fetch"}, {"name": "sluice-bundle"}]})",
          "spec.initContainers[1].name must not be sluice-bundle"},
      Row{"a container of our name", R"({"containers": [{"name": "trainer"}, {"name": "sluice-feeder"}]})",
          "spec.containers[1].name must not be sluice-feeder"},
      Row{"a volume of our name", R"({"volumes": [{"name": "sluice-tmp", "emptyDir": {}}]})",
          "spec.volumes[0].name must not be sluice-tmp"},
      Row{"a volume whose name begins like ours", R"({"volumes": [{"name": "sluice-photos", "emptyDir": {}}]})", ""},
      Row{"our bundle's place is taken",
          R"({"containers": [{"name": "trainer", "volumeMounts": [{"name": "v", "mountPath": "/opt/sluice/"}]}]})",
          "spec.containers[0].volumeMounts[0].mountPath must not be in /opt/sluice"},
      Row{"a place in our socket's directory is taken",
          R"({"containers": [{"name": "trainer", "volumeMounts": [{"name": "v", "mountPath": "/var/run/sluice/x"}]}]})",
          "spec.containers[0].volumeMounts[0].mountPath must not be in /run/sluice"},
      Row{"a read-only volume above ours",
          R"({"containers": [{"name": "trainer", "volumeMounts": [
              {"name": "data", "mountPath": "/data", "readOnly": true},
              {"name": "v", "mountPath": "/opt", "readOnly": true}]}]})",
          "spec.containers[0].volumeMounts[1].readOnly must not be true at /opt"},
      Row{"a writable volume above ours",
          R"({"containers": [{"name": "trainer", "volumeMounts": [{"name": "v", "mountPath": "/run"}]}]})", ""},
      Row{"a path that only begins like ours",
          R"({"containers": [{"name": "trainer", "volumeMounts": [{"name": "v", "mountPath": "/opt/sluicegate"}]}]})",
          ""},
      Row{"another container has our place for itself",
          R"({"containers": [{"name": "trainer"},
                             {"name": "log", "volumeMounts": [{"name": "v", "mountPath": "/run/sluice"}]}]})",
          ""});
  INFO(row.situation);
  json job = training_job();
  json& spec = job["spec"]["trainer"]["template"]["spec"];
  spec.update(json::parse(row.spec));
  const auto checked = check_trainer_template(TrainingJob(job), "t");
  CHECK(checked.ok() == std::string(row.want).empty());
  CHECK(view_training_job(job).ok() == checked.ok());
  if (!checked.ok()) CHECK_THAT(checked.error().message(), Catch::StartsWith(std::string("t.") + row.want));

  job["spec"]["mode"] = "Off";
  CHECK(check_trainer_template(TrainingJob(job), "t").ok());
}

TEST_CASE("the container that trains is the one named, else the first with accelerators, else the first") {
  struct Row {
    const char* containers;
    const char* named;
    std::size_t want;
  };
  constexpr const char* kShipper = R"([{"name": "ship-logs"}, {"name": "trainer"}])";
  constexpr const char* kGpu =
      R"([{"name": "ship-logs"}, {"name": "trainer", "resources": {"limits": {"nvidia.com/gpu": 1}}}, {"name": "x"}])";
  constexpr const char* kClaim =
      R"([{"name": "ship-logs"}, {"name": "trainer", "resources": {"claims": [{"name": "gpu"}]}}])";
  const Row row = GENERATE_COPY(Row{kShipper, "", 0}, Row{kShipper, "trainer", 1}, Row{kGpu, "", 1},
                                Row{kGpu, "ship-logs", 0}, Row{kGpu, "x", 2}, Row{kClaim, "", 1});
  json job = training_job();
  job["spec"]["trainer"]["template"]["spec"]["containers"] = json::parse(row.containers);
  if (*row.named != 0) job["spec"]["trainer"]["container"] = row.named;
  INFO(row.containers << " " << row.named);
  CHECK(TrainingJob(job).training_container_index() == row.want);
}

}  // namespace
}  // namespace sluice::api
