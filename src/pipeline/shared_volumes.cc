#include "src/pipeline/shared_volumes.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace sluice::pipeline {
namespace {

constexpr std::size_t kTextBytesMax = 4096;  // of a path or a name: as long as a path may be

std::string without_slashes_at_end(std::string text) {
  while (text.ends_with('/')) text.pop_back();
  return text;
}

}  // namespace

Result<SharedVolumes> SharedVolumes::parse(std::string_view json) {
  const auto mounts = nlohmann::json::parse(json, nullptr, false);
  if (!mounts.is_object()) return invalid_argument("must be a JSON object of mounts");
  if (mounts.size() > kMountsMax)
    return invalid_argument("has " + std::to_string(mounts.size()) + " mounts, more than " +
                            std::to_string(kMountsMax));
  SharedVolumes volumes;
  for (const auto& [path, name] : mounts.items()) {
    if (!path.starts_with('/') || path.size() > kTextBytesMax)
      return invalid_argument("a mount must have an absolute path of at most 4096 bytes");
    if (!name.is_string() || name.get_ref<const std::string&>().size() > kTextBytesMax)
      return invalid_argument("the name of " + path + " must be a text");
    volumes.mounts_.push_back(
        {without_slashes_at_end(path), without_slashes_at_end(name.get_ref<const std::string&>())});
  }
  std::sort(volumes.mounts_.begin(), volumes.mounts_.end(),
            [](const Mount& one, const Mount& other) { return one.path.size() > other.path.size(); });
  return volumes;
}

std::string SharedVolumes::place_of(std::string_view real_path) const {
  for (const Mount& mount : mounts_) {
    if (!real_path.starts_with(mount.path)) continue;
    const std::string_view within = real_path.substr(mount.path.size());
    // "/database" only begins as "/data" does. A file may itself be the mount.
    if (!within.empty() && within.front() != '/') continue;
    return mount.name.empty() ? "" : mount.name + std::string(within);
  }
  return "";
}

}  // namespace sluice::pipeline
