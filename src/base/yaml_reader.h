// A YAML mapping, read field by field, with errors that name file and line.
//
// Reading goes on after an error; the first one is kept, so that the reading code stays a list of fields:
//   YamlMap map = file.root();
//   map.number("count", count, 1, 1e6);
//   map.finish();                          // a field that was not asked for is an error
//   if (auto error = file.error()) ...
//
// Library: sluice_yaml. Thread safety: none.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.h"

namespace YAML {
class Node;
}

namespace sluice {

class YamlFile;

class YamlMap {
 public:
  YamlMap(YamlFile& file, const YAML::Node& node, std::string path);
  YamlMap(const YamlMap&) = delete;
  YamlMap& operator=(const YamlMap&) = delete;
  ~YamlMap();

  // Each leaves `out` alone where the key is absent, and reports a value of the wrong kind or out of bounds.
  void number(std::string_view key, double& out, double least, double most);
  void integer(std::string_view key, int& out, int least, int most);
  void boolean(std::string_view key, bool& out);
  void text(std::string_view key, std::string& out);
  void texts(std::string_view key, std::vector<std::string>& out);

  // Calls `read` with the mapping at `key`, if there is one; finish() is called for it afterwards.
  void map(std::string_view key, const std::function<void(YamlMap&)>& read);
  // The same for each mapping in the sequence at `key`.
  void each(std::string_view key, const std::function<void(YamlMap&)>& read);
  // Calls `read` for each "name: number" of the mapping at `key`.
  void numbers(std::string_view key, double least, double most,
               const std::function<void(const std::string& name, double value)>& read);

  bool has(std::string_view key);  // counts as asking for it
  std::vector<std::string> keys() const;
  void require(std::string_view key);
  void fail(const std::string& what);                           // at the mapping itself
  void fail_at(std::string_view key, const std::string& what);  // at the value of `key`
  void finish();

 private:
  struct State;
  std::optional<YAML::Node> find(std::string_view key);
  std::string path_of(std::string_view key) const;

  YamlFile& file_;
  std::unique_ptr<State> state_;
  std::string path_;
};

class YamlFile {
 public:
  // Errors: InvalidArgument "FILE:LINE: ..." when `text` is no YAML mapping.
  static Result<std::unique_ptr<YamlFile>> parse(std::string_view text, std::string name);
  ~YamlFile();

  YamlMap root();
  const std::optional<Error>& error() const { return error_; }
  void fail(int line, const std::string& what);  // line from 0

 private:
  explicit YamlFile(std::string name);

  std::string name_;
  std::unique_ptr<YAML::Node> root_;
  std::optional<Error> error_;
};

}  // namespace sluice
