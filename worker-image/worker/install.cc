#include "worker-image/worker/install.h"

#include <string>
#include <system_error>

namespace sluice::worker {

namespace fs = std::filesystem;

namespace {

Error file_error(const fs::path& file, const std::error_code& error) {
  const ErrorCode code = error == std::errc::permission_denied ? ErrorCode::kPermissionDenied : ErrorCode::kInternal;
  return {code, "install " + file.string() + ": " + error.message()};
}

// Renamed into place: a program that runs from the target (a container that is started again) keeps its old files.
Result<void> replace_file(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::path fresh = to;
  fresh += ".new";
  fs::copy_file(from, fresh, fs::copy_options::overwrite_existing, error);
  if (!error) fs::rename(fresh, to, error);
  if (error) return file_error(to, error);
  return {};
}

Result<void> copy_tree(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::create_directories(to, error);
  if (error) return file_error(to, error);
  fs::recursive_directory_iterator entry(from, error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    const fs::path place = to / entry->path().lexically_relative(from);
    if (entry->is_directory()) {
      fs::create_directories(place, error);
      if (error) return file_error(place, error);
    } else {
      SLUICE_TRY_VOID(replace_file(entry->path(), place));
    }
  }
  if (error) return file_error(from, error);
  return {};
}

}  // namespace

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
  if (error) return file_error(target, error);
  for (const char* part : {"bin", "lib", "python"}) {
    if (!fs::exists(bundle / part)) continue;
    SLUICE_TRY_VOID(copy_tree(bundle / part, target / part));
  }
  return {};
}

}  // namespace sluice::worker
