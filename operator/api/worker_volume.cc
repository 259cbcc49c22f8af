#include "operator/api/worker_volume.h"

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "operator/api/container_draft.h"
#include "operator/api/fields.h"
#include "operator/api/names.h"
#include "operator/api/object.h"
#include "operator/api/trainer_template.h"

namespace sluice::api {
namespace {

using nlohmann::json;

constexpr std::string_view kSharedMemory = "/dev/shm";
// Where nodes have devices, sockets of their services, and what installers of GPU drivers leave.
constexpr std::string_view kOfTheNode[] = {
    "/dev", "/proc", "/sys", "/run", "/usr/local/nvidia", "/home/kubernetes/bin", "/opt/amdgpu", "/usr/lib/wsl"};

bool lies_in(std::string_view path, std::string_view folder) {
  return path.starts_with(folder) && (path.size() == folder.size() || path[folder.size()] == '/');
}

json empty_directory(std::string_view medium = "") {
  json directory = json::object();
  if (!medium.empty()) directory["medium"] = medium;
  return directory;
}

void leave_node(json& volume) {
  const std::string path = tidy_path(text_field(volume, "/hostPath/path"));
  const bool is_shared_memory = lies_in(path, kSharedMemory);
  for (const std::string_view folder : kOfTheNode) {
    if (!lies_in(path, folder)) continue;
    volume.erase("hostPath");
    volume["emptyDir"] = empty_directory(is_shared_memory ? "Memory" : "");
    return;
  }
}

void leave_out_server_tokens(json& volume) {
  const auto projected = volume.find("projected");
  if (projected == volume.end() || !projected->is_object() || !projected->contains("sources")) return;
  json kept = json::array();
  for (const json& source : list_field(*projected, "/sources"))
    if (!is_server_token(source)) kept.push_back(source);
  (*projected)["sources"] = std::move(kept);
}

}  // namespace

bool is_server_token(const json& source) {
  const json& token = member(source, "serviceAccountToken");
  return token.is_object() && text_member(token, "audience").empty();
}

json worker_volume(json volume) {
  leave_out_server_tokens(volume);
  if (volume.contains("ephemeral")) {
    volume.erase("ephemeral");
    volume["emptyDir"] = empty_directory();
  }
  if (volume.contains("hostPath")) leave_node(volume);
  // No worker asks for huge pages, so the kubelet would not mount them.
  if (text_field(volume, "/emptyDir/medium").starts_with("HugePages")) volume["emptyDir"] = empty_directory();
  refer_to_resources_of(kWorkerContainer, volume);
  return volume;
}

}  // namespace sluice::api
