// A trainer's pod template beside what Sluice adds to it: what is taken, and what it may not hold.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <string_view>

#include "operator/api/training_job.h"
#include "src/base/result.h"

namespace sluice::api {

// Of the volumes that Sluice adds to pods.
inline constexpr std::string_view kBundleVolume = "sluice-bundle";
inline constexpr std::string_view kSocketVolume = "sluice-run";
inline constexpr std::string_view kTlsVolume = "sluice-tls";
inline constexpr std::string_view kTemporaryVolume = "sluice-tmp";
inline constexpr std::string_view kCacheVolume = "sluice-node-cache";
inline constexpr std::string_view kOwnVolumes[] = {kBundleVolume, kSocketVolume, kTlsVolume, kTemporaryVolume,
                                                   kCacheVolume};
inline constexpr std::string_view kTemporaryPath = "/tmp";

// "/run/sluice" of "//var/run/sluice/": as the container's mounts meet. In almost all images /var/run is a link to
// /run.
std::string tidy_path(std::string_view path);

// True for a directory in which one of Sluice's own lies: "/opt" holds "/opt/sluice". `path` is tidy.
bool is_above_ours(std::string_view path);

// The ports that the containers of a pod spec declare, init containers among them.
std::set<std::int64_t> declared_ports(const nlohmann::json& pod_spec);

// True for a container with variables of ConfigMaps or Secrets as a whole (envFrom).
bool imports_variables(const nlohmann::json& container);

// Refuses two kinds of templates. With one kind the API server would refuse the Job, which the user has not written.
// With the other the feeder would not start, and the trainer would wait for it for ever: names and paths that are
// taken, read-only volumes above Sluice's own. Mode Off has no feeder, and refuses
// nothing. Errors: InvalidArgument with the field below `path` and the way out. REQUIRES: check_pod_template() has
// passed.
Result<void> check_trainer_template(const TrainingJob& training_job, std::string_view path);

}  // namespace sluice::api
