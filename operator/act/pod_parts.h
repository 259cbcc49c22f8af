// The parts that Sluice puts into trainer pods and worker pods alike: the bundle, the identity, the environment.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "operator/api/container_draft.h"
#include "operator/api/object.h"
#include "operator/api/pod_spec_draft.h"
#include "operator/config.h"

namespace sluice::act {

// The init container that fills the bundle volume from the Sluice image. `trainer_pod` is the user's pod spec: where it
// sets a user, the bundle's init container has the same one.
nlohmann::json bundle_container(const nlohmann::json& trainer_pod, const nlohmann::json& trainer_container,
                                const control::Config& config);

// Adds the configured pull secrets of the Sluice image to those of a pod spec.
void add_pull_secrets(api::PodSpecDraft& pod, const control::Config& config);

// ["/opt/sluice/lib/loader", "--library-path", ..., "/opt/sluice/bin/<program>"]: the bundle brings its
// own loader and libraries, so the user's image needs neither.
std::vector<std::string> bundle_command(std::string_view program);

// The ports of a Sluice program; never those that the user's containers declare. kube-scheduler puts no two pods with
// the same ports on the network of one node. So with hostNetwork they depend on the job, and are none that others hold
// (`held`, observe/host_ports.h): trainers of different jobs find room on one node.
struct ExecutorPorts {
  int metrics;
  int probes;
};
ExecutorPorts executor_ports(const nlohmann::json& pod_spec, const api::Object& training_job,
                             const std::set<std::int64_t>& held);

// Makes `container` one that runs a Sluice program in the trainer's image, as the trainer's user. It has the trainer's
// environment (but for LD_PRELOAD) and volumes, a writable /tmp, the bundle and the TLS identity. Volumes are read-only
// but for /dev/shm and those above Sluice's own directories. The caller adds command, arguments, resources, probes and
// further ports.
void begin_executor(api::ContainerDraft& container, std::string_view name, const nlohmann::json& trainer_container,
                    ExecutorPorts ports);

// Puts /opt/sluice/python before the container's own PYTHONPATH.
void prepend_python_path(api::ContainerDraft& container);

// Bundle, TLS and /tmp. The Secret is the job's.
void add_executor_volumes(api::PodSpecDraft& pod, std::string_view job);

}  // namespace sluice::act
