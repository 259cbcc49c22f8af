// Which files are the same for several pods: those of volumes that all of them mount, wherever each has them.
//
// Device and inode numbers differ between the mounts of a volume. Who mounts it knows its name, and tells it.
// Thread safety: immutable after parse().
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.h"

namespace sluice::pipeline {

class SharedVolumes {
 public:
  static constexpr std::size_t kMountsMax = 256;

  // None.
  SharedVolumes() = default;

  // A JSON object of all mounts: {"/data": "NAME/of/what/is/mounted", "/data/tmp": ""}. An empty name: only this
  // process knows the files there. No two volumes of those who share files may have the same name.
  // Errors: InvalidArgument for other texts, for paths that are not absolute, and for more than kMountsMax.
  static Result<SharedVolumes> parse(std::string_view json);

  bool empty() const { return mounts_.empty(); }

  // What the file is called by all that mount its volume: "NAME/of/what/is/mounted/path/within". Empty: it is on none.
  // `real_path`: absolute, without symbolic links.
  std::string place_of(std::string_view real_path) const;

 private:
  struct Mount {
    std::string path;  // without a slash at its end: that of "/" is empty
    std::string name;
  };
  std::vector<Mount> mounts_;  // a mount below another one comes first
};

}  // namespace sluice::pipeline
