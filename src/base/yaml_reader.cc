#include "src/base/yaml_reader.h"

#include <yaml-cpp/yaml.h>

#include <set>
#include <sstream>

#include "src/base/text_input.h"

namespace sluice {

struct YamlMap::State {
  YAML::Node node;
  std::set<std::string, std::less<>> asked;
};

YamlMap::YamlMap(YamlFile& file, const YAML::Node& node, std::string path)
    : file_(file), state_(std::make_unique<State>(State{node, {}})), path_(std::move(path)) {}
YamlMap::~YamlMap() = default;

std::string YamlMap::path_of(std::string_view key) const {
  return path_.empty() ? std::string(key) : path_ + "." + std::string(key);
}

// Looked up by walking: operator[] of a YAML::Node inserts, and converts the key by throwing.
std::optional<YAML::Node> YamlMap::find(std::string_view key) {
  state_->asked.emplace(key);
  for (const auto& entry : state_->node)
    if (entry.first.IsScalar() && entry.first.Scalar() == key) return entry.second;
  return std::nullopt;
}

bool YamlMap::has(std::string_view key) { return find(key).has_value(); }

std::vector<std::string> YamlMap::keys() const {
  std::vector<std::string> keys;
  for (const auto& entry : state_->node) keys.push_back(entry.first.Scalar());
  return keys;
}

void YamlMap::fail(const std::string& what) {
  file_.fail(state_->node.Mark().line, (path_.empty() ? "" : path_ + ": ") + what);
}

void YamlMap::fail_at(std::string_view key, const std::string& what) {
  int line = state_->node.Mark().line;
  for (const auto& entry : state_->node) {
    if (!entry.first.IsScalar() || entry.first.Scalar() != key) continue;
    // A value that is left out has the mark of whatever comes next.
    line = (entry.second.IsNull() ? entry.first : entry.second).Mark().line;
  }
  file_.fail(line, path_of(key) + ": " + what);
}

void YamlMap::number(std::string_view key, double& out, double least, double most) {
  const auto node = find(key);
  if (!node) return;
  const std::optional<double> value = node->IsScalar() ? number_of(node->Scalar()) : std::nullopt;
  if (!value) return fail_at(key, "not a number");
  if (*value < least || *value > most) {
    std::ostringstream bounds;  // "0 .. 1e+09", not "0.000000 .. 1000000000.000000"
    bounds << least << " .. " << most;
    return fail_at(key, node->Scalar() + " is not within " + bounds.str());
  }
  out = *value;
}

void YamlMap::integer(std::string_view key, int& out, int least, int most) {
  double value = out;
  number(key, value, least, most);
  if (value != static_cast<int>(value)) return fail_at(key, "not a whole number");
  out = static_cast<int>(value);
}

void YamlMap::boolean(std::string_view key, bool& out) {
  const auto node = find(key);
  if (!node) return;
  const std::string value = node->IsScalar() ? node->Scalar() : "";
  if (value != "true" && value != "false") return fail_at(key, "neither true nor false");
  out = value == "true";
}

void YamlMap::text(std::string_view key, std::string& out) {
  const auto node = find(key);
  if (!node) return;
  if (!node->IsScalar()) return fail_at(key, "not a text");
  out = node->Scalar();
}

void YamlMap::texts(std::string_view key, std::vector<std::string>& out) {
  const auto node = find(key);
  if (!node) return;
  if (!node->IsSequence()) return fail_at(key, "not a list of texts");
  out.clear();
  for (const YAML::Node& entry : *node) {
    if (!entry.IsScalar()) return fail_at(key, "not a list of texts");
    out.push_back(entry.Scalar());
  }
}

void YamlMap::map(std::string_view key, const std::function<void(YamlMap&)>& read) {
  const auto node = find(key);
  if (!node) return;
  if (!node->IsMap()) return fail_at(key, "not a mapping");
  YamlMap inner(file_, *node, path_of(key));
  read(inner);
  inner.finish();
}

void YamlMap::each(std::string_view key, const std::function<void(YamlMap&)>& read) {
  const auto node = find(key);
  if (!node) return;
  if (!node->IsSequence()) return fail_at(key, "not a list");
  int index = 0;
  for (const YAML::Node& entry : *node) {
    const std::string path = path_of(key) + "[" + std::to_string(index++) + "]";
    if (!entry.IsMap()) {
      file_.fail(entry.Mark().line, path + ": not a mapping");
      continue;
    }
    YamlMap inner(file_, entry, path);
    read(inner);
    inner.finish();
  }
}

void YamlMap::numbers(std::string_view key, double least, double most,
                      const std::function<void(const std::string&, double)>& read) {
  map(key, [&](YamlMap& inner) {
    for (const std::string& name : inner.keys()) {
      double value = least;
      inner.number(name, value, least, most);
      read(name, value);
    }
  });
}

void YamlMap::require(std::string_view key) {
  if (!find(key)) fail("\"" + std::string(key) + "\" is missing");
}

void YamlMap::finish() {
  std::set<std::string> seen;
  for (const auto& entry : state_->node) {
    const std::string key = entry.first.IsScalar() ? entry.first.Scalar() : "";
    if (!seen.insert(key).second) file_.fail(entry.first.Mark().line, path_of(key) + ": given twice");
    if (state_->asked.contains(key)) continue;
    std::string known;
    for (const std::string& name : state_->asked) known += (known.empty() ? "" : ", ") + name;
    file_.fail(entry.first.Mark().line, path_of(key) + ": there is no such field; known here: " + known);
  }
}

YamlFile::YamlFile(std::string name) : name_(std::move(name)) {}
YamlFile::~YamlFile() = default;

Result<std::unique_ptr<YamlFile>> YamlFile::parse(std::string_view text, std::string name) {
  std::unique_ptr<YamlFile> file(new YamlFile(std::move(name)));
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(std::string(text));
    if (documents.size() > 1)
      return line_error(file->name_, documents[1].Mark().line + 1, "a second document, which would not be read");
    file->root_ = std::make_unique<YAML::Node>(documents.empty() ? YAML::Node() : documents[0]);
  } catch (const YAML::Exception& e) {
    return line_error(file->name_, e.mark.line + 1, e.msg);
  }
  if (!file->root_->IsMap()) return line_error(file->name_, 1, "not a YAML mapping");
  return file;
}

YamlMap YamlFile::root() { return {*this, *root_, ""}; }

void YamlFile::fail(int line, const std::string& what) {
  if (!error_) error_ = line_error(name_, line + 1, what);
}

}  // namespace sluice
