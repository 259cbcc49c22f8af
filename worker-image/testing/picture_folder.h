// A directory of small JPEG files and the specification of a native pipeline over them.
#pragma once

#include <string>

#include "src/base/testing/temporary_directory.h"

namespace sluice::testing {

struct PictureFolder {
  explicit PictureFolder(int pictures = 24);

  // RandomResizedCrop(size), flip, to_tensor, normalize.
  std::string specification(int size = 32) const;

  const TemporaryDirectory directory;
  const std::filesystem::path& root = directory.path;
  int pictures;
};

}  // namespace sluice::testing
