// `sluice-worker install DIR`: copies the bundle that this program was started from into DIR.
//
// The image has no shell and no cp; the init container that drops the bundle into the trainer's pod is this program.
#pragma once

#include <filesystem>

#include "src/base/result.h"

namespace sluice::worker {

// The bundle's directory: the parent of the bin/ that holds `program` (argv[0]; the loader makes /proc/self/exe name
// itself, not us). Errors: NotFound if there is no bin/ and lib/ beside it.
Result<std::filesystem::path> bundle_of(const std::filesystem::path& program);

// Copies bin/, lib/ and python/ of `bundle` into `target`, which is created. Existing files are replaced, not
// overwritten.
// Errors name the file.
Result<void> install_bundle(const std::filesystem::path& bundle, const std::filesystem::path& target);

}  // namespace sluice::worker
