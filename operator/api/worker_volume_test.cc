#include "operator/api/worker_volume.h"

#include <nlohmann/json.hpp>

#include "src/base/testing/catch.h"

namespace sluice::api {
namespace {

using nlohmann::json;

TEST_CASE("of the trainer's projected tokens only those with an audience are for workers") {
  const json volume = json::parse(
      R"({"name":"t","projected":{"sources":[{"serviceAccountToken":{"path":"api"}},
          {"serviceAccountToken":{"path":"sts","audience":"sts"}},{"configMap":{"name":"c"}}]}})");
  const json kept = worker_volume(volume)["projected"]["sources"];
  REQUIRE(kept.size() == 2);
  CHECK(kept[0]["serviceAccountToken"]["path"] == "sts");
  CHECK(kept[1].contains("configMap"));
  for (const char* other : {R"({"name":"v"})", R"({"projected":7})", R"({"projected":{"sources":{}}})"})
    CHECK_NOTHROW(worker_volume(json::parse(other)));
}

TEST_CASE("what only the trainer's node has is an empty directory in workers, and data stays") {
  struct Case {
    const char* volume;
    const char* want;
  };
  const char* empty = R"({"emptyDir": {}})";
  const char* same = "";
  const Case test = GENERATE_COPY(
      Case{R"({"hostPath": {"path": "/dev/infiniband", "type": "Directory"}})", empty},
      Case{R"({"hostPath": {"path": "/dev"}})", empty},
      Case{R"({"hostPath": {"path": "/var/run/docker.sock"}})", empty},
      Case{R"({"hostPath": {"path": "//sys/class/"}})", empty},
      Case{R"({"hostPath": {"path": "/home/kubernetes/bin/nvidia"}})", empty},
      Case{R"({"hostPath": {"path": "/usr/local/nvidia/lib64"}})", empty},
      Case{R"({"hostPath": {"path": "/dev/shm"}})", R"({"emptyDir": {"medium": "Memory"}})"},
      Case{R"({"hostPath": {"path": "/mnt/photos", "type": "Directory"}})", same},
      Case{R"({"hostPath": {"path": "/devices"}})", same}, Case{R"({"hostPath": {"path": "/"}})", same},
      Case{R"({"hostPath": {"path": 7}})", same}, Case{R"({"hostPath": null})", same},
      Case{R"({"emptyDir": {"medium": "HugePages-2Mi", "sizeLimit": "1Gi"}})", empty},
      Case{R"({"emptyDir": {"medium": "HugePages"}})", empty}, Case{R"({"emptyDir": {"medium": "Memory"}})", same},
      Case{R"({"ephemeral": {"volumeClaimTemplate": {}}})", empty}, Case{R"({"nfs": {"path": "/dev"}})", same});
  INFO(test.volume);
  const json volume = json::parse(test.volume);
  CHECK(worker_volume(volume) == (test.want == same ? volume : json::parse(test.want)));
}

}  // namespace
}  // namespace sluice::api
