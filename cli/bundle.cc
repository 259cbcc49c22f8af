#include "cli/bundle.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/job_events.h"
#include "cli/labels.h"

namespace sluice::cli {
namespace {

using nlohmann::json;

constexpr const char* kLeftOut = "(left out)";
constexpr const char* kContainers[] = {"sluice-bundle", "sluice-feeder", "sluice-worker", "operator"};
constexpr const char* kMetricsPort = "metrics";

// A header of the connection to Prometheus may be a token. The chart writes the connection as JSON, in one line.
std::string without_headers(const std::string& configuration) {
  constexpr std::string_view kConnection = "connection: ";
  std::istringstream lines(configuration);
  std::string text;
  for (std::string line; std::getline(lines, line); text += line + "\n") {
    const std::size_t begin = line.find(kConnection);
    if (begin == std::string::npos || begin != line.find_first_not_of(' ')) continue;
    json connection = json::parse(line.substr(begin + kConnection.size()), nullptr, false);
    if (!connection.is_object()) connection = json::object();
    if (const auto headers = connection.find("headers"); headers != connection.end())
      for (json& header : *headers) header = kLeftOut;
    line = line.substr(0, begin) + std::string(kConnection) + connection.dump();
  }
  return text;
}

// What people write into environment variables is theirs. kubectl's annotation repeats it.
void leave_out_values(json& value) {
  if (value.is_object()) {
    value.erase("kubectl.kubernetes.io/last-applied-configuration");
    value.erase("managedFields");
    if (const auto variables = value.find("env"); variables != value.end() && variables->is_array())
      for (json& variable : *variables)
        if (variable.is_object() && variable.contains("value")) variable["value"] = kLeftOut;
    if (const auto text = value.find("config.yaml"); text != value.end() && text->is_string())
      *text = without_headers(text->get<std::string>());
  }
  if (value.is_structured())
    for (json& part : value) leave_out_values(part);
}

std::string text_of(const json& value) { return value.dump(2, ' ', false, json::error_handler_t::replace) + "\n"; }

struct Gathering {
  const BundleSource& source;
  Bundle bundle;
  std::vector<json> pods;

  std::vector<json> add_objects(const std::string& file, const kube::Resource& resource, const std::string& name_space,
                                const std::string& selector) {
    auto found = source.list(resource, name_space, selector);
    if (!found.ok()) {
      bundle.problems.push_back(file + ": " + found.error().message());
      return {};
    }
    json list = *found;
    leave_out_values(list);
    bundle.files.push_back({file, text_of(list)});
    return std::move(*found);
  }

  void add_text(const std::string& file, Result<std::string> text) {
    if (text.ok())
      bundle.files.push_back({file, std::move(*text)});
    else
      bundle.problems.push_back(file + ": " + text.error().message());
  }

  void add_pod(const json& pod) {
    const kube::ObjectKey key = kube::key_of(pod);
    const std::string folder = "pods/" + key.namespace_ + "/" + key.name + "/";
    const json statuses = pod.value("/status/containerStatuses"_json_pointer, json::array());
    for (const char* list : {"initContainers", "containers"})
      for (const json& container : pod.value(json::json_pointer(std::string("/spec/") + list), json::array())) {
        const std::string name = container.value("name", "");
        if (std::find(std::begin(kContainers), std::end(kContainers), name) == std::end(kContainers)) continue;
        add_text(folder + name + ".log", source.log(key, name, false));
        for (const json& status : statuses)
          if (status.value("name", "") == name && status.value("restartCount", 0) > 0)
            add_text(folder + name + ".previous.log", source.log(key, name, true));
        for (const json& port : container.value("ports", json::array()))
          if (port.value("name", "") == kMetricsPort)
            add_text(folder + name + ".metrics.txt", source.metrics(key, port.value("containerPort", 0)));
      }
  }
};

}  // namespace

Bundle gather_bundle(const BundleSource& source, const BundleScope& scope) {
  Gathering gathering{source, {}, {}};
  gathering.bundle.files.push_back({"version.txt", "kubectl-sluice " SLUICE_VERSION "\n"});
  // 1. Objects.
  std::vector<json> known;
  const auto add = [&](const char* file, const kube::Resource& resource, const std::string& selector) {
    auto found = gathering.add_objects(std::string("objects/") + file, resource, scope.name_space, selector);
    known.insert(known.end(), found.begin(), found.end());
    return found;
  };
  add("trainingjobs.json", kube::kTrainingJobs, "");
  add("dataworkerpools.json", kube::kDataWorkerPools, "");
  add("jobs.json", kube::kJobs, kJobLabel);
  add("services.json", kube::kServices, kJobLabel);
  gathering.pods = add("pods.json", kube::kPods, kJobLabel);
  if (auto events = source.list(kube::kEvents, scope.name_space, ""); events.ok())
    gathering.bundle.files.push_back({"objects/events.json", text_of(events_about(known, std::move(*events)))});
  else
    gathering.bundle.problems.push_back("objects/events.json: " + events.error().message());

  // 2. The operator.
  const std::string& home = scope.operator_namespace;
  const auto operators = gathering.add_objects("operator/pods.json", kube::kPods, home, kOperators);
  gathering.add_objects("operator/configmaps.json", kube::kConfigMaps, home, kInstallation);
  gathering.add_objects("operator/leases.json", kube::kLeases, home, "");
  auto plan = source.plan();
  gathering.add_text("operator/plan.json", plan.ok() ? Result<std::string>(text_of(*plan)) : plan.error());

  // 3. What the pods say, the operators' first.
  gathering.pods.insert(gathering.pods.begin(), operators.begin(), operators.end());
  const std::size_t pods = std::min(gathering.pods.size(), kBundlePodsMax);
  for (std::size_t i = 0; i < pods; ++i) gathering.add_pod(gathering.pods[i]);
  if (pods < gathering.pods.size())
    gathering.bundle.problems.push_back("pods: logs and metrics of " + std::to_string(pods) + " of " +
                                        std::to_string(gathering.pods.size()) + "; name a namespace with -n");

  // 4. What is missing.
  std::string problems;
  for (const std::string& problem : gathering.bundle.problems) problems += problem + "\n";
  gathering.bundle.files.push_back({"problems.txt", problems});
  return std::move(gathering.bundle);
}

}  // namespace sluice::cli
