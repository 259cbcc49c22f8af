// A folder of its own for the files of a test.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

namespace sluice::simulator::testing {

struct Folder {
  std::filesystem::path path;

  explicit Folder(const std::string& name) : path(std::filesystem::temp_directory_path() / ("sluice-sim-" + name)) {
    std::filesystem::remove_all(path);
    std::filesystem::create_directories(path);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path); }

  // The path of a file with this text.
  std::string file(const std::string& name, const std::string& text) const {
    std::ofstream(path / name) << text;
    return (path / name).string();
  }
};

}  // namespace sluice::simulator::testing
