// The specification of a native pipeline with its file table, as the client writes it.
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace sluice::pipeline::testing {

struct File {
  std::string path;
  std::int64_t label = 0;
};

inline std::string file_table(const std::vector<File>& files) {
  std::string labels, runs, directories, names;
  std::map<std::string, std::uint32_t> directory_numbers;
  const auto append = [](std::string& to, auto number) {
    to.append(reinterpret_cast<const char*>(&number), sizeof(number));
  };
  std::string last;
  for (std::uint32_t number = 0; number < files.size(); ++number) {
    const auto& [path, label] = files[number];
    const std::size_t slash = path.rfind('/');
    const std::string directory = slash == std::string::npos ? "" : path.substr(0, slash + (slash == 0 ? 1 : 0));
    if (directory != last || number == 0) {
      const auto next = static_cast<std::uint32_t>(directory_numbers.size());
      const auto [found, is_new] = directory_numbers.emplace(directory, next);
      if (is_new) directories += directory + '\0';
      append(runs, found->second);
      append(runs, number);
      last = directory;
    }
    append(labels, label);
    names += path.substr(slash == std::string::npos ? 0 : slash + 1) + '\0';
  }
  std::string table;
  append(table, std::uint64_t{runs.size() / 8});
  append(table, std::uint64_t{directories.size()});
  append(table, std::uint64_t{names.size()});
  return table + labels + runs + directories + names;
}

// `spec` lacks only the files of its source.
inline std::string specification(nlohmann::json spec, const std::vector<File>& files) {
  spec["source"]["files"] = files.size();
  return spec.dump() + '\n' + file_table(files);
}

}  // namespace sluice::pipeline::testing
