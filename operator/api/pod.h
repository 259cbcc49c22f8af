// A pod: a trainer, a data worker, or a stranger's.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>

#include "operator/api/conditions.h"
#include "operator/api/node_rules.h"
#include "operator/api/object.h"

namespace sluice::api {

// Why a pod cannot start as things are.
struct Hindrance {
  std::string reason;   // "Unschedulable", "ImagePullBackOff"
  std::string message;  // of the scheduler or the kubelet
};

// Every field that is read here is kept by api/pod_trim.h.
// Thread safety, missing fields: as Object.
class Pod : public Object {
 public:
  using Object::Object;

  bool is_trainer() const;
  bool is_worker() const;
  std::string job() const;            // of the trainer or the worker; the TrainingJob's name
  std::string template_hash() const;  // of a worker

  std::string node() const;  // empty: not bound yet
  std::string phase() const;
  bool succeeded() const { return phase() == "Succeeded"; }
  bool failed() const { return phase() == "Failed"; }
  bool ended() const { return succeeded() || failed(); }  // reserves nothing any more
  bool serves() const { return !ended() && !deleting(); }
  std::string reason() const;  // why it ended: "Evicted"
  bool ready() const { return ready_condition().is_true(); }
  SeenCondition ready_condition() const;

  // None for a pod that is ready, or may still start by itself. A pod that waits at a scheduling gate is not hindered:
  // the owner of the gate lets it go.
  std::optional<Hindrance> hindrance() const;

  // The scheduling gate at which it waits (KEP-3521), such as Kueue's until there is quota; empty: none.
  std::string gate() const;

  // The scheduler that has not looked at the pod yet: it is on no node, waits at no gate, and has no word on why. Such
  // a scheduler may be far behind, or not exist, or wait for the pod's resource claims. Empty: there is none.
  std::string awaited_scheduler() const;

  // CPU that kube-scheduler reserves for the pod (KEP-753, KEP-2837): the pod-level request where there is one. Else
  // the larger of its running need (containers and native sidecars) and its peak of initialisation, plus overhead. The
  // peak counts each init container beside the sidecars before it. `feeder_millicores`: replaces the spec's number for
  // the feeder.
  std::int64_t request_millicores(std::optional<std::int64_t> feeder_millicores = std::nullopt) const;

  std::int64_t request_memory_bytes() const;  // the same of memory

  // Of a data worker's own container: what it requests and may use, and whether the kernel has stopped it for lack of
  // memory.
  std::int64_t worker_millicores() const;
  std::int64_t worker_memory_bytes() const;
  std::int64_t worker_memory_limit_bytes() const;  // 0: none
  bool worker_ran_out_of_memory() const;
  // Its own container has ended well, and is not started again. The pod may run on, if a webhook has added a sidecar.
  bool worker_is_done() const;

  // Of a pod that is not bound: kube-scheduler found a node that lacks only CPU or memory (NodeResourcesFit).
  bool lacks_cpu_or_memory() const;
  std::string nominated_node() const;  // on which kube-scheduler makes room for it; empty: none

  // Extended resources that it requests, such as nvidia.com/gpu, by name.
  std::map<std::string, std::int64_t> devices() const;

  // Ports that it takes on the network of its node. With hostNetwork these are all that its containers declare, as the
  // API server fills in.
  std::set<std::int64_t> host_ports() const;

  NodeRules node_rules() const;
  int completion_index() const;  // its rank in an indexed Job
};

// A place at which a container has a volume.
class VolumeMount {
 public:
  explicit VolumeMount(const nlohmann::json& mount) : mount_(&mount) {}
  explicit VolumeMount(nlohmann::json&&) = delete;

  std::string volume() const;
  std::string path() const;

 private:
  const nlohmann::json* mount_;
};

// A container as a user wrote it, in a pod template.
class Container {
 public:
  explicit Container(const nlohmann::json& container) : container_(&container) {}
  explicit Container(nlohmann::json&&) = delete;

  std::string name() const;
  const nlohmann::json& volume_mounts() const;  // an array
  bool mounts(const std::string& volume) const;
  const nlohmann::json& resources() const;         // null where there are none
  const nlohmann::json& security_context() const;  // null where there is none
  std::int64_t request_millicores() const;
  std::int64_t request_memory_bytes() const;
  std::int64_t limit_memory_bytes() const;  // 0: none
  std::map<std::string, std::int64_t> devices() const;
  bool is_sidecar() const;  // of an init container: it runs on beside the others

 private:
  const nlohmann::json* container_;
};

// The pod spec of a template as a user wrote it.
class PodSpec {
 public:
  explicit PodSpec(const nlohmann::json& spec) : spec_(&spec) {}
  explicit PodSpec(nlohmann::json&&) = delete;

  const nlohmann::json& containers() const;        // an array
  const nlohmann::json& init_containers() const;   // the same
  const nlohmann::json& volumes() const;           // the same
  const nlohmann::json& tolerations() const;       // the same
  const nlohmann::json& node_selector() const;     // an object
  const nlohmann::json& security_context() const;  // null where there is none
  const nlohmann::json& resources() const;         // of the pod as a whole (KEP-2837); null where there are none
  const nlohmann::json& limits() const;            // of these
  std::string restart_policy() const;
  std::string dns_policy() const;
  bool on_host_network() const;

 private:
  const nlohmann::json* spec_;
};

// The pod spec of a template.
const nlohmann::json& pod_of_template(const nlohmann::json& pod_template);

// The key of a toleration: that of the taints that it tolerates.
std::string toleration_key(const nlohmann::json& toleration);

}  // namespace sluice::api
