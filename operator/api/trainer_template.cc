#include "operator/api/trainer_template.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "operator/api/fields.h"
#include "operator/api/labels.h"
#include "operator/api/names.h"
#include "operator/api/pod.h"

namespace sluice::api {
namespace {

using nlohmann::json;

constexpr std::string_view kOwnContainers[] = {kBundleContainer, kFeederContainer};
constexpr std::string_view kOwnDirectories[] = {kBundlePath, kSocketDirectory, kTlsPath, kCachePath};

bool is_below(std::string_view path, std::string_view directory) {
  return path.size() > directory.size() && path.starts_with(directory) && path[directory.size()] == '/';
}

template <class Names>
Result<void> check_names(const json& list, const Names& taken, const std::string& path) {
  for (std::size_t index = 0; index < list.size(); ++index) {
    const std::string name = text_member(list[index], "name");
    if (std::find(std::begin(taken), std::end(taken), name) != std::end(taken))
      return invalid_argument(path + "[" + std::to_string(index) + "].name must not be " + name +
                              ", which Sluice gives to what it adds; choose another name");
  }
  return {};
}

// Of the container that trains. The executors mount what it mounts.
Result<void> check_mount(const json& mount, const std::string& path) {
  const std::string place = tidy_path(text_member(mount, "mountPath"));
  for (const std::string_view ours : {kBundlePath, kSocketDirectory})
    if (place == ours || is_below(place, ours))
      return invalid_argument(path + ".mountPath must not be in " + std::string(ours) +
                              ": Sluice's own files are there; choose another mountPath");
  if (is_above_ours(place) && member(mount, "readOnly") == true)
    return invalid_argument(path + ".readOnly must not be true at " + place +
                            ": Sluice's directories are made below it; mount a directory below " + place + " instead");
  return {};
}

}  // namespace

std::string tidy_path(std::string_view path) {
  std::string tidy;
  for (const char each : path)
    if (each != '/' || !tidy.ends_with('/')) tidy += each;
  if (tidy.size() > 1 && tidy.ends_with('/')) tidy.pop_back();
  constexpr std::string_view kLink = "/var/run";
  return tidy == kLink || is_below(tidy, kLink) ? tidy.substr(4) : tidy;
}

bool is_above_ours(std::string_view path) {
  return !path.empty() && std::any_of(std::begin(kOwnDirectories), std::end(kOwnDirectories),
                                      [&](std::string_view ours) { return is_below(ours, path); });
}

std::set<std::int64_t> declared_ports(const json& pod_spec) {
  std::set<std::int64_t> ports;
  for (const char* list : {"/containers", "/initContainers"})
    for (const json& container : list_field(pod_spec, list))
      for (const json& port : list_field(container, "/ports")) ports.insert(integer_field(port, "/containerPort"));
  return ports;
}

bool imports_variables(const json& container) { return !list_field(container, "/envFrom").empty(); }

Result<void> check_trainer_template(const TrainingJob& training_job, std::string_view path) {
  if (training_job.mode() == "Off") return {};
  const std::string root = std::string(path) + ".spec";
  const PodSpec pod(member(training_job.trainer_template(), "spec"));
  SLUICE_TRY_VOID(check_names(pod.containers(), kOwnContainers, root + ".containers"));
  SLUICE_TRY_VOID(check_names(pod.init_containers(), kOwnContainers, root + ".initContainers"));
  SLUICE_TRY_VOID(check_names(pod.volumes(), kOwnVolumes, root + ".volumes"));
  const std::size_t trains = training_job.training_container_index();
  const json& mounts = Container(pod.containers()[trains]).volume_mounts();
  for (std::size_t index = 0; index < mounts.size(); ++index)
    SLUICE_TRY_VOID(check_mount(mounts[index], root + ".containers[" + std::to_string(trains) + "].volumeMounts[" +
                                                   std::to_string(index) + "]"));
  return {};
}

}  // namespace sluice::api
