#include "operator/api/platform.h"

#include <nlohmann/json.hpp>

#include "operator/testing/objects.h"
#include "src/base/testing/catch.h"

namespace sluice::api {
namespace {

using control::testing::training_job;
using nlohmann::json;

struct Case {
  const char* situation;
  const char* trainer;  // node selectors
  const char* workers;
  std::vector<std::string> architectures;  // of the image
  const char* refused;                     // "": taken
  const char* architecture = "";           // that the pods get
};

TEST_CASE("all pods of a job have one architecture, and Sluice's image is for it") {
  const std::vector<std::string> amd{"amd64"}, both{"amd64", "arm64"};
  const Case cases[] = {
      {"no selector", "{}", "{}", amd, "", "amd64"},
      {"the image's first", "{}", "{}", {"arm64", "amd64"}, "", "arm64"},
      {"the trainer's", R"({"kubernetes.io/arch": "arm64"})", "{}", both, "", "arm64"},
      {"both say the same", R"({"kubernetes.io/arch": "arm64"})", R"({"kubernetes.io/arch": "arm64"})", both, "",
       "arm64"},
      {"workers say the default", "{}", R"({"kubernetes.io/arch": "amd64"})", both, "", "amd64"},
      {"the platform in full", R"({"kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux"})", "{}", amd, "",
       "amd64"},
      {"an image without the trainer's", R"({"kubernetes.io/arch": "arm64"})", "{}", amd,
       "spec.trainer.template.spec.nodeSelector asks for nodes of arm64, and Sluice's image is for amd64; list"},
      {"an architecture of no image", R"({"kubernetes.io/arch": "ppc64le"})", "{}", both,
       "spec.trainer.template.spec.nodeSelector asks for nodes of ppc64le, and Sluice's image is for amd64 and arm64"},
      {"workers of another one than the trainer", "{}", R"({"kubernetes.io/arch": "arm64"})", both,
       "spec.dataWorkers.template.spec.nodeSelector must not ask for another kubernetes.io/arch than the trainer's"},
      {"a trainer on another system", R"({"kubernetes.io/os": "windows"})", "{}", both,
       "spec.trainer.template.spec.nodeSelector must not ask for nodes of another system than linux"},
      {"workers on another system", "{}", R"({"kubernetes.io/os": "windows"})", both,
       "spec.dataWorkers.template.spec.nodeSelector must not ask for nodes of another system than linux"},
  };
  for (const Case& row : cases) {
    INFO(row.situation);
    json job = training_job();
    job["spec"]["trainer"]["template"]["spec"]["nodeSelector"] = json::parse(row.trainer);
    job["spec"]["dataWorkers"]["template"]["spec"]["nodeSelector"] = json::parse(row.workers);
    const auto checked = check_platform(TrainingJob(job), row.architectures);
    CHECK(checked.ok() == std::string(row.refused).empty());
    if (checked.ok())
      CHECK(architecture_of(TrainingJob(job), row.architectures) == row.architecture);
    else
      CHECK_THAT(checked.error().message(), Catch::Contains(row.refused));

    job["spec"]["mode"] = "Off";
    CHECK(check_platform(TrainingJob(job), row.architectures).ok());
  }
}

}  // namespace
}  // namespace sluice::api
