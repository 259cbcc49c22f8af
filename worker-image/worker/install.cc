#include "worker-image/worker/install.h"

#include <string>
#include <system_error>

namespace sluice::worker {

namespace fs = std::filesystem;

Result<fs::path> bundle_of(const fs::path& program) {
  std::error_code error;
  const fs::path bundle = fs::absolute(program, error).lexically_normal().parent_path().parent_path();
  if (error || !fs::is_directory(bundle / "bin") || !fs::is_directory(bundle / "lib")) {
    return not_found("install: " + program.string() + " was not started from a bundle (no bin/ and lib/ around it)");
  }
  return bundle;
}

Result<void> install_bundle(const fs::path& bundle, const fs::path& target) {
  std::error_code error;
  fs::create_directories(target, error);
  for (const char* part : {"bin", "lib", "python"}) {
    if (error) break;
    if (!fs::exists(bundle / part)) continue;
    fs::copy(bundle / part, target / part,
             fs::copy_options::recursive | fs::copy_options::overwrite_existing | fs::copy_options::copy_symlinks, error);
  }
  if (!error) return {};
  return Error(error == std::errc::permission_denied ? ErrorCode::kPermissionDenied : ErrorCode::kInternal,
               "install into " + target.string() + ": " + error.message());
}

}  // namespace sluice::worker
