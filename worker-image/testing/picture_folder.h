// A directory of small JPEG files and the specification of a native pipeline over them.
#pragma once

#include <filesystem>
#include <string>

namespace sluice::testing {

struct PictureFolder {
  explicit PictureFolder(int pictures = 24);
  ~PictureFolder();  // removes it
  PictureFolder(const PictureFolder&) = delete;
  PictureFolder& operator=(const PictureFolder&) = delete;

  // RandomResizedCrop(size), flip, to_tensor, normalize.
  std::string specification(int size = 32) const;

  std::filesystem::path root;
  int pictures;
};

}  // namespace sluice::testing
