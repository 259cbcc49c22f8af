// The chart's rights against what the operator asks of the API server, verb by verb and both ways.
#include <algorithm>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>

#include "operator/fault_simulation/campaign.h"
#include "operator/fault_simulation/workload.h"
#include "src/base/testing/catch.h"
#include "src/kube/fake/yaml.h"

namespace sluice::simulation {
namespace {

using kube::Json;

// As an API server names them: "patch sluice.dev/trainingjobs/status", "get /pods".
using Rights = std::set<std::string>;

// What runs of the simulation do not surely reach, each with the test that sees it called.
const Rights kCalledElsewhere = {
    // "a token that is reviewed is good for the audience alone" in src/kube/client_test.cc
    "create authentication.k8s.io/tokenreviews",
    // "what was learnt is written when it changes, at most every minute" in operator/decide/decision_loop_test.cc
    "get /configmaps", "create /configmaps", "patch /configmaps",
    // Certificates that grow old: "a job that runs for half a year always has certificates that end in weeks, not days,
    // and keeps its Secret" in operator/act/reconcilers_test.cc
    "patch /secrets",
    // A Service that people have edited: "a drifted child is put right" in operator/act/training_job_test.cc
    "patch /services",
    // The same of a NetworkPolicy, and one that is no longer wanted: "a policy that was edited or deleted is put right;
    // switched off, it goes" in operator/act/worker_network_policy_test.cc
    "patch networking.k8s.io/networkpolicies", "delete networking.k8s.io/networkpolicies",
    // A gang of which a rank has failed: "when a pod fails, the restart is counted, then the Job goes" in
    // operator/act/gang_restart_test.cc
    "delete batch/jobs",
    // An event that happens again: "repetitions become a series, written at once the first time and then once a minute"
    // in src/kube/event_recorder_test.cc
    "patch events.k8s.io/events"};

// Of a path like /apis/GROUP/VERSION/namespaces/NAMESPACE/RESOURCE/NAME/SUBRESOURCE. None for discovery.
void add_rights(Rights& rights, const http::Request& request, int status) {
  static const std::regex pattern(
      "/(?:api|apis/([^/]+))/[^/?]+(?:/namespaces/[^/]+)?/([^/?]+)(/[^/?]+)?(/[^/?]+)?(?:\\?(.*))?");
  std::smatch parts;
  if (!std::regex_match(request.target, parts, pattern)) return;
  const std::string resource = parts[1].str() + "/" + parts[2].str() + parts[4].str();
  const bool watches = parts[5].str().find("watch=") != std::string::npos;
  if (request.method == "GET") rights.insert((parts[3].matched ? "get " : watches ? "watch " : "list ") + resource);
  // The simulated API server streams the first list; "a list comes in pages" in src/kube/reflector_test.cc is of
  // others.
  if (watches) rights.insert("list " + resource);
  if (request.method == "POST" || status == 201) rights.insert("create " + resource);  // an apply may create, too
  if (request.method == "PATCH") rights.insert("patch " + resource);
  if (request.method == "DELETE") rights.insert("delete " + resource);
}

// All that operators asked for in a run of every workload. A creation that arrives twice is answered that the name is
// taken.
Rights called() {
  std::mutex mutex;
  Rights rights;
  RunOptions options;
  options.on_request = [&](const http::Request& request, int status) {
    std::lock_guard lock(mutex);
    add_rights(rights, request, status);
  };
  std::uint64_t seed = 0;
  for (const std::string& name : workload_names()) {
    FaultPlan plan = undisturbed(name);
    plan.seed = ++seed;  // else every workload's first requests would be those repeated
    plan.rates.repeat = 0.5;
    CHECK(simulate(plan, options).violations.empty());
  }
  return rights;
}

// The roles of a template of the chart with all its conditions taken; text in braces becomes a name.
std::vector<Json> roles(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> documents(1);
  for (std::string line; std::getline(file, line);) {
    if (line == "---")
      documents.emplace_back();
    else if (!line.starts_with("{{-"))
      documents.back() += std::regex_replace(line, std::regex("\\{\\{.*?\\}\\}"), "x") + "\n";
  }
  std::vector<Json> found;
  for (const std::string& text : documents) {
    const auto document = kube::fake::parse_yaml(text);
    INFO(path << ":\n" << text);
    REQUIRE(document.ok());
    if (document->is_object() && document->contains("rules")) found.push_back(*document);
  }
  return found;
}

Rights granted() {
  Rights rights;
  for (const std::string file : {"rbac.yaml", "plan.yaml"})
    for (const Json& role : roles("helm/sluice/templates/" + file)) {
      if (role["metadata"]["name"] == "x" && file == "plan.yaml") continue;  // of people who read the plan
      for (const Json& rule : role["rules"])
        for (const Json& group : rule["apiGroups"])
          for (const Json& resource : rule["resources"])
            for (const Json& verb : rule["verbs"])
              rights.insert(verb.get<std::string>() + " " + group.get<std::string>() + "/" +
                            resource.get<std::string>());
    }
  return rights;
}

Rights without(const Rights& all, const Rights& some) {
  Rights rest;
  std::set_difference(all.begin(), all.end(), some.begin(), some.end(), std::inserter(rest, rest.end()));
  return rest;
}

TEST_CASE("the chart grants what the operator asks of the API server, and no more") {
  const Rights rights = granted();
  Rights needed = called();
  needed.insert(kCalledElsewhere.begin(), kCalledElsewhere.end());
  CHECK(without(rights, needed) == Rights());
  CHECK(without(needed, rights) == Rights());
}

}  // namespace
}  // namespace sluice::simulation
