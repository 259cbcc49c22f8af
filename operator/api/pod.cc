#include "operator/api/pod.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <set>

#include "operator/api/accelerators.h"
#include "operator/api/fields.h"
#include "operator/api/labels.h"
#include "operator/api/names.h"
#include "operator/api/reserved.h"

namespace sluice::api {

using nlohmann::json;

namespace {

// The kubelet's reasons for which a container waits until a person corrects something.
constexpr std::string_view kCannotStart[] = {"ErrImagePull",         "ImagePullBackOff",           "InvalidImageName",
                                             "ErrImageNeverPull",    "RegistryUnavailable",        "ImageInspectError",
                                             "CreateContainerError", "CreateContainerConfigError", "RunContainerError",
                                             "CrashLoopBackOff"};

constexpr const char* kContainers = "/spec/containers";
constexpr const char* kContainerStatuses = "/status/containerStatuses";

// The worker's entry in a list of the pod; null if it has none.
const json& worker_of(const json& pod, const char* list) {
  static const json kNone;
  for (const json& entry : list_field(pod, list))
    if (text_field(entry, "/name") == kWorkerContainer) return entry;
  return kNone;
}

}  // namespace

bool Pod::is_trainer() const { return label(kComponentLabel) == kTrainerComponent; }
bool Pod::is_worker() const { return label(kComponentLabel) == kWorkerComponent; }
std::string Pod::job() const { return label(kJobLabel); }
std::string Pod::template_hash() const { return label(kTemplateHashLabel); }
std::string Pod::node() const { return text_field(object(), "/spec/nodeName"); }
std::string Pod::phase() const { return text_field(object(), "/status/phase"); }
std::string Pod::reason() const { return text_field(object(), "/status/reason"); }
SeenCondition Pod::ready_condition() const { return find_condition(conditions(), "Ready"); }

NodeRules Pod::node_rules() const { return NodeRules(field(object(), "/spec")); }

int Pod::completion_index() const {
  const std::string text = annotation(kCompletionIndexAnnotation);
  int index = 0;
  std::from_chars(text.data(), text.data() + text.size(), index);
  return index;
}

std::optional<Hindrance> Pod::hindrance() const {
  if (ready()) return std::nullopt;
  if (const auto scheduled = find_condition(conditions(), "PodScheduled"); scheduled.reason == "Unschedulable")
    return Hindrance{scheduled.reason, scheduled.message};
  for (const char* list : {"/status/initContainerStatuses", "/status/containerStatuses"}) {
    for (const json& container : list_field(object(), list)) {
      const std::string reason = text_field(container, "/state/waiting/reason");
      if (std::find(std::begin(kCannotStart), std::end(kCannotStart), reason) != std::end(kCannotStart))
        return Hindrance{reason, text_field(container, "/state/waiting/message")};
    }
  }
  return std::nullopt;
}

std::string Pod::gate() const {
  const json& gates = list_field(object(), "/spec/schedulingGates");
  return gates.empty() ? "" : text_field(gates.front(), "/name");
}

std::string Pod::awaited_scheduler() const {
  const bool is_looked_at =
      !node().empty() || !gate().empty() || !find_condition(conditions(), "PodScheduled").status.empty();
  return is_looked_at ? "" : text_field(object(), "/spec/schedulerName");
}

std::int64_t Pod::request_millicores(std::optional<std::int64_t> feeder_millicores) const {
  const std::int64_t overhead = millicores_field(object(), "/spec/overhead/cpu");
  if (!field(object(), "/spec/resources/requests/cpu").is_null())
    return millicores_field(object(), "/spec/resources/requests/cpu") + overhead;
  return overhead + reserved(PodSpec(field(object(), "/spec")), [&](const Container& container) {
           const bool is_feeder = feeder_millicores && container.name() == kFeederContainer;
           return is_feeder ? *feeder_millicores : container.request_millicores();
         });
}

std::int64_t Pod::request_memory_bytes() const {
  const std::int64_t overhead = bytes_field(object(), "/spec/overhead/memory");
  if (!field(object(), "/spec/resources/requests/memory").is_null())
    return bytes_field(object(), "/spec/resources/requests/memory") + overhead;
  return overhead + reserved(PodSpec(field(object(), "/spec")),
                             [](const Container& container) { return container.request_memory_bytes(); });
}

bool Pod::lacks_cpu_or_memory() const {
  const SeenCondition scheduled = find_condition(conditions(), "PodScheduled");
  const auto says = [&](std::string_view words) { return scheduled.message.find(words) != std::string::npos; };
  return scheduled.reason == "Unschedulable" && (says("Insufficient cpu") || says("Insufficient memory"));
}

std::string Pod::nominated_node() const { return text_field(object(), "/status/nominatedNodeName"); }

std::map<std::string, std::int64_t> Pod::devices() const {
  const PodSpec spec(field(object(), "/spec"));
  std::set<std::string> names;
  for (const json* list : {&spec.containers(), &spec.init_containers()})
    for (const json& container : *list)
      for (const auto& [name, count] : Container(container).devices()) names.insert(name);
  std::map<std::string, std::int64_t> requested;
  for (const std::string& name : names)
    requested[name] = reserved(spec, [&](const Container& container) { return container.devices()[name]; });
  return requested;
}

std::set<std::int64_t> Pod::host_ports() const {
  std::set<std::int64_t> ports;
  const PodSpec spec(field(object(), "/spec"));
  for (const json* list : {&spec.containers(), &spec.init_containers()})
    for (const json& container : *list)
      for (const json& port : list_field(container, "/ports"))
        if (const std::int64_t number = integer_field(port, "/hostPort"); number > 0) ports.insert(number);
  return ports;
}

std::int64_t Pod::worker_millicores() const { return Container(worker_of(object(), kContainers)).request_millicores(); }

std::int64_t Pod::worker_memory_bytes() const {
  return Container(worker_of(object(), kContainers)).request_memory_bytes();
}

std::int64_t Pod::worker_memory_limit_bytes() const {
  return Container(worker_of(object(), kContainers)).limit_memory_bytes();
}

bool Pod::worker_ran_out_of_memory() const {
  constexpr std::string_view kOutOfMemory = "OOMKilled";
  const json& status = worker_of(object(), kContainerStatuses);
  return text_field(status, "/lastState/terminated/reason") == kOutOfMemory ||
         text_field(status, "/state/terminated/reason") == kOutOfMemory;
}

bool Pod::worker_is_done() const {
  return text_field(worker_of(object(), kContainerStatuses), "/state/terminated/reason") == "Completed";
}

std::string VolumeMount::volume() const { return text_field(*mount_, "/name"); }
std::string VolumeMount::path() const { return text_field(*mount_, "/mountPath"); }

std::string Container::name() const { return text_field(*container_, "/name"); }
const json& Container::volume_mounts() const { return list_field(*container_, "/volumeMounts"); }

bool Container::mounts(const std::string& volume) const {
  const json& mounts = volume_mounts();
  return std::any_of(mounts.begin(), mounts.end(),
                     [&](const json& mount) { return VolumeMount(mount).volume() == volume; });
}

const json& Container::resources() const { return field(*container_, "/resources"); }
const json& Container::security_context() const { return field(*container_, "/securityContext"); }

std::int64_t Container::request_millicores() const { return millicores_field(*container_, "/resources/requests/cpu"); }
std::int64_t Container::request_memory_bytes() const { return bytes_field(*container_, "/resources/requests/memory"); }
std::int64_t Container::limit_memory_bytes() const { return bytes_field(*container_, "/resources/limits/memory"); }
std::map<std::string, std::int64_t> Container::devices() const {
  return devices_in(field(*container_, "/resources/limits"));
}

bool Container::is_sidecar() const { return text_field(*container_, "/restartPolicy") == "Always"; }

const json& PodSpec::containers() const { return list_field(*spec_, "/containers"); }
const json& PodSpec::init_containers() const { return list_field(*spec_, "/initContainers"); }
const json& PodSpec::volumes() const { return list_field(*spec_, "/volumes"); }
const json& PodSpec::tolerations() const { return list_field(*spec_, "/tolerations"); }

const json& PodSpec::node_selector() const {
  static const json kEmpty = json::object();
  const json& selector = field(*spec_, "/nodeSelector");
  return selector.is_object() ? selector : kEmpty;
}

const json& PodSpec::security_context() const { return field(*spec_, "/securityContext"); }
std::string PodSpec::restart_policy() const { return text_field(*spec_, "/restartPolicy"); }
std::string PodSpec::dns_policy() const { return text_field(*spec_, "/dnsPolicy"); }
const json& PodSpec::resources() const { return field(*spec_, "/resources"); }
const json& PodSpec::limits() const { return field(resources(), "/limits"); }
bool PodSpec::on_host_network() const { return boolean_field(*spec_, "/hostNetwork"); }

const json& pod_of_template(const json& pod_template) { return field(pod_template, "/spec"); }
std::string toleration_key(const json& toleration) { return text_field(toleration, "/key"); }

}  // namespace sluice::api
