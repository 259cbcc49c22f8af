// The suite in conformance/ against the fake API server, and, where SLUICE_TEST_KUBECONFIG names one that serves
// Sluice's CRDs, against a real one.
#include <unistd.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "src/base/testing/catch.h"
#include "src/base/testing/manual_clock.h"
#include "src/kube/config.h"
#include "src/kube/fake/conformance.h"
#include "src/kube/fake/crd.h"
#include "src/kube/fake/fake_transport.h"
#include "src/kube/fake/yaml.h"

namespace sluice::kube::fake {
namespace {

void run_suites(const ConformanceTarget& target) {
  int number = 0;
  for (const char* suite : {"writes", "deletion", "custom", "builtin", "reads"}) {
    const auto scenarios = read_yaml(std::string("src/kube/fake/conformance/") + suite + ".yaml");
    INFO((scenarios.ok() ? "" : scenarios.error().to_string()));
    REQUIRE(scenarios.ok());
    for (const Json& scenario : *scenarios)
      for (const std::string& difference : run_conformance(scenario, target, ++number))
        FAIL_CHECK(suite << ": " << difference);
  }
}

TEST_CASE("the fake API server conforms") {
  sluice::testing::ManualClock clock;
  ApiServer server(clock);
  for (const char* file : {"crds/sluice.dev_trainingjobs.yaml", "crds/sluice.dev_dataworkerpools.yaml"}) {
    auto crd = read_crd(file);
    INFO((crd.ok() ? "" : crd.error().to_string()));
    REQUIRE(crd.ok());
    server.serve(*crd);
  }
  REQUIRE(server.create(kConfigMaps, {{"metadata", {{"name", "old"}, {"namespace", "default"}}}}).ok());
  server.compact(server.revision());
  FakeTransport transport(server);
  run_suites({transport, [&](int tries) { return tries < 2 && server.collect_garbage() > 0; }, "conformance"});
}

// On by default from 1.32, but for 1.33 (docs/designs/kube.md, section 5).
bool streams_lists(http::Transport& server) {
  const auto answer = server.send({"GET", "/version"}, std::chrono::seconds(10), {});
  REQUIRE(answer.ok());
  const int minor = std::stoi(Json::parse(answer->body).at("minor").get<std::string>());
  return minor >= 32 && minor != 33;
}

TEST_CASE("a real API server conforms", "[cluster]") {
  const char* kubeconfig = std::getenv("SLUICE_TEST_KUBECONFIG");
  if (kubeconfig == nullptr) {
    WARN("skipped: set SLUICE_TEST_KUBECONFIG to a kubeconfig to run this test against a real API server");
    return;
  }
  const SystemClock clock;
  const auto connection = read_kubeconfig(kubeconfig, clock);
  REQUIRE(connection.ok());
  const auto transport = open_transport(*connection);
  REQUIRE(transport.ok());
  run_suites({**transport,
              [&](int tries) { return tries < 600 && clock.sleep_for(std::chrono::milliseconds(100), {}); },
              "conformance-" + std::to_string(getpid()), streams_lists(**transport)});
}

}  // namespace
}  // namespace sluice::kube::fake
