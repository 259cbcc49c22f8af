#include "operator/observe/host_ports.h"

#include "operator/testing/seen_cluster.h"
#include "src/base/testing/catch.h"

namespace sluice::observe {
namespace {

using namespace testing;
using nlohmann::json;

json pod_with_port(const std::string& name, int port, const char* list = "containers") {
  json object = pod(name, "n1", "1");
  object["spec"][list] = {
      {{"name", "web"}, {"ports", {{{"containerPort", 80}}, {{"containerPort", port}, {"hostPort", port}}}}}};
  return object;
}

json job_with_port(const std::string& name, int port, bool on_host_network) {
  json job = trainer_job(0);
  job["metadata"]["name"] = name;
  json& spec = job["spec"]["template"]["spec"];
  if (on_host_network) spec["hostNetwork"] = true;
  spec["initContainers"] = {{{"name", "sluice-feeder"}, {"ports", {{{"containerPort", port}}}}}};
  return job;
}

TEST_CASE("ports of nodes are held by pods that run or wait, and by Jobs whose pods are still to come") {
  const kube::ObjectKey vision{"default", "vision"};
  kube::Store::Objects pods, jobs;
  put(pods, pod_with_port("web", 9100));
  put(pods, pod_with_port("sidecar", 9200, "initContainers"));
  json waiting = pod_with_port("waiting", 9300);
  waiting["spec"].erase("nodeName");
  put(pods, waiting);
  put(jobs, job_with_port("queued", 20000, true));
  CHECK(held_host_ports(pods, jobs, vision) == std::set<std::int64_t>{9100, 9200, 9300, 20000});

  SECTION("what has ended holds none") {
    json ended = pod_with_port("web", 9100);
    ended["status"]["phase"] = "Succeeded";
    put(pods, ended);
    json over = job_with_port("queued", 20000, true);
    over["status"]["conditions"] = json::array({condition("Complete", "True")});
    put(jobs, over);
    CHECK(held_host_ports(pods, jobs, vision) == std::set<std::int64_t>{9200, 9300});
  }
  SECTION("a Job whose pods have addresses of their own holds none") {
    put(jobs, job_with_port("queued", 20000, false));
    CHECK_FALSE(held_host_ports(pods, jobs, vision).contains(20000));
  }
  SECTION("a trainer is not in its own way") {
    put(jobs, job_with_port("vision", 20100, true));
    json own = pod_with_port("vision-0", 20100);
    own["metadata"]["labels"] = {{"sluice.dev/job", "vision"}, {"sluice.dev/component", "trainer"}};
    put(pods, own);
    CHECK_FALSE(held_host_ports(pods, jobs, vision).contains(20100));
    CHECK(held_host_ports(pods, jobs, {"default", "speech"}).contains(20100));
  }
}

}  // namespace
}  // namespace sluice::observe
