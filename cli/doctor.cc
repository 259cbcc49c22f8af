#include "cli/doctor.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "src/kube/json_member.h"
#include "src/kube/timestamp.h"

namespace sluice::cli {
namespace {

using nlohmann::json;

constexpr std::chrono::seconds kLeaseIsOld{60};
constexpr std::size_t kMaxNamed = 5;

std::string status_of(const json& object, const std::string& condition) {
  for (const json& entry : kube::value_at(object, "/status/conditions"))
    if (kube::text_at(entry, "type") == condition) return kube::text_at(entry, "status");
  return "";
}

std::string name_of(const json& job) {
  return kube::text_at(job, "metadata", "namespace") + "/" + kube::text_at(job, "metadata", "name");
}

// The first few names, and how many more there are.
std::string listed(const std::vector<std::string>& names) {
  std::string list;
  for (std::size_t i = 0; i < std::min(names.size(), kMaxNamed); ++i) list += (i == 0 ? "" : ", ") + names[i];
  return names.size() > kMaxNamed ? list + " and " + std::to_string(names.size() - kMaxNamed) + " more" : list;
}

Check check_pods(const Installation& installation) {
  const auto& pods = installation.operator_pods;
  std::vector<std::string> unready;
  for (const json& pod : pods)
    if (status_of(pod, "Ready") != "True") unready.push_back(kube::text_at(pod, "metadata", "name"));
  Check check{"operator", !pods.empty() && unready.empty(), std::to_string(pods.size()) + " pods, all ready", ""};
  if (check.passed) return check;
  check.finding = pods.empty() ? "no pod of the operator" : "not ready: " + listed(unready);
  check.way_out = pods.empty() ? "name its namespace with --operator-namespace, or install the chart"
                               : "kubectl describe and kubectl logs --previous of the pod";
  return check;
}

Check check_leader(const Installation& installation, Clock::WallTimePoint now) {
  std::set<std::string> pods;
  for (const json& pod : installation.operator_pods) pods.insert(kube::text_at(pod, "metadata", "name"));
  for (const json& lease : installation.leases) {
    const std::string holder = kube::text_at(lease, "spec", "holderIdentity");
    const auto renewed = kube::parse_time(kube::text_at(lease, "spec", "renewTime"));
    if (pods.contains(holder) && renewed && now - *renewed < kLeaseIsOld) return {"leader", true, holder, ""};
  }
  return {"leader", false, "no pod of the operator has renewed its Lease within a minute",
          "the operator's log says why; without leaderElection.enabled there is no Lease"};
}

// A condition on all jobs that run: `is_bad` tells those that fail it.
template <class IsBad>
Check check_jobs(const char* name, const Installation& installation, const char* finding, const char* way_out,
                 IsBad is_bad) {
  std::vector<std::string> bad;
  std::size_t running = 0;
  for (const json& job : installation.jobs) {
    if (status_of(job, "Succeeded") == "True" || status_of(job, "Failed") == "True") continue;
    ++running;
    if (is_bad(job)) bad.push_back(name_of(job));
  }
  if (bad.empty()) return {name, true, std::to_string(running) + " unfinished jobs", ""};
  return {name, false, finding + listed(bad), way_out};
}

bool lacks_workers(const json& job) {
  const json& ready = kube::value_at(job, "/status/workers/ready");
  const json& desired = kube::value_at(job, "/status/workers/desired");
  return ready.is_number_integer() && desired.is_number_integer() &&
         ready.get<std::int64_t>() < desired.get<std::int64_t>();
}

}  // namespace

std::vector<Check> examine(const Installation& installation, Clock::WallTimePoint now) {
  return {check_pods(installation), check_leader(installation, now),
          check_jobs("jobs seen", installation,
                     "no status yet: ", "is the operator's namespace list right (watchNamespaces)?",
                     [](const json& job) { return !kube::value_at(job, "/status/conditions").is_array(); }),
          check_jobs("metrics", installation,
                     "MetricsAvailable is False: ", "kubectl sluice why JOB; docs/runbooks/metrics-not-available.md",
                     [](const json& job) { return status_of(job, "MetricsAvailable") == "False"; }),
          check_jobs("workers", installation, "fewer workers ready than desired: ",
                     "kubectl sluice why JOB; docs/runbooks/pods-refused.md", lacks_workers)};
}

std::string render_checks(const std::vector<Check>& checks) {
  std::string lines;
  for (const Check& check : checks) {
    lines += std::string(check.passed ? "ok    " : "FAIL  ") + check.name + ": " + check.finding + "\n";
    if (!check.way_out.empty()) lines += "      " + check.way_out + "\n";
  }
  return lines;
}

json checks_as_json(const std::vector<Check>& checks) {
  json list = json::array();
  for (const Check& check : checks)
    list.push_back(
        {{"name", check.name}, {"passed", check.passed}, {"finding", check.finding}, {"wayOut", check.way_out}});
  return {{"checks", std::move(list)}};
}

}  // namespace sluice::cli
