// What people who look into a problem from afar want to see of an installation, in one archive.
//
// Never in it: Secrets, literal values of environment variables, logs of the user's own containers.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cli/archive.h"
#include "src/kube/resource.h"

namespace sluice::cli {

// How the cluster is read. What is refused is an error, and the rest goes on.
struct BundleSource {
  std::function<Result<std::vector<nlohmann::json>>(const kube::Resource&, const std::string& name_space,
                                                    const std::string& label_selector)>
      list;
  std::function<Result<std::string>(const kube::ObjectKey& pod, const std::string& container, bool previous)> log;
  std::function<Result<std::string>(const kube::ObjectKey& pod, int port)> metrics;
  std::function<Result<nlohmann::json>()> plan;
};

struct BundleScope {
  std::string name_space;  // of the jobs; empty: all
  std::string operator_namespace;
};

// Bounds: of more pods than this, logs and metrics are left out, which problems.txt says.
inline constexpr std::size_t kBundlePodsMax = 200;
inline constexpr int kBundleLogLines = 5000;
inline constexpr std::int64_t kBundleLogBytes = std::int64_t{1} << 20;

struct Bundle {
  std::vector<ArchiveFile> files;
  std::vector<std::string> problems;  // what could not be had, and why; the last file, too
};

Bundle gather_bundle(const BundleSource& source, const BundleScope& scope);

}  // namespace sluice::cli
