#include "src/kube/fake/yaml.h"

#include <yaml-cpp/yaml.h>

#include <charconv>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

namespace sluice::kube::fake {
namespace {

template <typename Number>
bool is_whole(const std::string& text, Number& number) {
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  return parsed.ec == std::errc() && parsed.ptr == text.data() + text.size();
}

Json scalar_of(const YAML::Node& node) {
  const std::string& text = node.Scalar();
  if (node.Tag() == "!") return text;  // quoted
  if (text == "true" || text == "false") return text == "true";
  if (text.empty() || text == "null" || text == "~") return nullptr;
  std::int64_t integer = 0;
  if (is_whole(text, integer)) return integer;
  double fraction = 0;
  if (is_whole(text, fraction)) return fraction;
  return text;
}

Json json_of(const YAML::Node& node) {
  if (node.IsMap()) {
    Json object = Json::object();
    for (const auto& entry : node) object[entry.first.Scalar()] = json_of(entry.second);
    return object;
  }
  if (node.IsSequence()) {
    Json list = Json::array();
    for (const auto& element : node) list.push_back(json_of(element));
    return list;
  }
  return node.IsScalar() ? scalar_of(node) : Json();
}

}  // namespace

Result<Json> parse_yaml(const std::string& text) {
  try {
    return json_of(YAML::Load(text));
  } catch (const YAML::Exception& failure) {
    return invalid_argument(std::string("no YAML: ") + failure.what());
  }
}

Result<Json> read_yaml(const std::string& path) {
  std::ifstream file(path);
  if (!file) return not_found(path);
  std::ostringstream text;
  text << file.rdbuf();
  auto parsed = parse_yaml(text.str());
  return parsed.ok() ? parsed : parsed.error().with_context(path);
}

}  // namespace sluice::kube::fake
