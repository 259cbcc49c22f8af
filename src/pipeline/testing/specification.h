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

// A sample within a file.
struct Member {
  std::uint64_t offset = 0;
  std::uint32_t bytes = 0;
  std::uint32_t file = 0;
  std::int64_t label = 0;
};

struct Shard {
  std::string path;
  std::uint64_t bytes = 0;
  std::int64_t modified_ns = 0;
  std::string etag = "";  // of an object
};

inline std::string range_table(const std::vector<Member>& members, const std::vector<Shard>& shards) {
  std::string table;
  const auto append = [&table](auto number) { table.append(reinterpret_cast<const char*>(&number), sizeof(number)); };
  for (const Member& member : members) append(member.label);
  for (const Member& member : members) append(member.offset);
  for (const Shard& shard : shards) append(shard.bytes);
  for (const Shard& shard : shards) append(shard.modified_ns);
  for (const Member& member : members) append(member.bytes);
  for (const Member& member : members) append(member.file);
  for (const Shard& shard : shards) table += shard.path + '\0';
  return table;
}

inline std::string object_table(const std::vector<Member>& members, const std::vector<Shard>& shards) {
  std::string table = range_table(members, shards);
  for (const Shard& shard : shards) table += shard.etag + '\0';
  return table;
}

// `pixels`: of all samples, in the order of memory.
inline std::string pixel_table(const std::vector<std::int64_t>& labels, const std::vector<std::uint8_t>& pixels) {
  std::string table(reinterpret_cast<const char*>(labels.data()), labels.size() * sizeof(std::int64_t));
  return table.append(pixels.begin(), pixels.end());
}

// `spec` lacks only the source.
inline std::string specification(nlohmann::json spec, const std::vector<Member>& members,
                                 const std::vector<Shard>& shards) {
  spec["source"] = {{"kind", "file_ranges"}, {"files", shards.size()}, {"samples", members.size()}};
  return spec.dump() + '\n' + range_table(members, shards);
}

// `spec` lacks only the files of its source.
inline std::string specification(nlohmann::json spec, const std::vector<File>& files) {
  spec["source"]["files"] = files.size();
  return spec.dump() + '\n' + file_table(files);
}

}  // namespace sluice::pipeline::testing
