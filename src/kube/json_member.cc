#include "src/kube/json_member.h"

#include <nlohmann/json.hpp>

namespace sluice::kube {
namespace {

std::string unescaped(std::string_view name) {
  std::string text(name);
  for (std::size_t slash; (slash = text.find("~1")) != std::string::npos;) text.replace(slash, 2, 1, '/');
  return text;
}

}  // namespace

std::string text_at(const Json& object, const char* member) {
  const auto text = object.find(member);  // the end of what is no object, too
  return text != object.end() && text->is_string() ? text->get<std::string>() : std::string();
}

std::string text_at(const Json& object, const char* outer, const char* inner) {
  const auto found = object.find(outer);
  return found != object.end() ? text_at(*found, inner) : std::string();
}

const Json& value_at(const Json& object, std::string_view pointer) {
  static const Json kNull;
  const Json* value = &object;
  const bool is_escaped = pointer.find('~') != std::string_view::npos;
  while (!pointer.empty()) {
    pointer.remove_prefix(1);  // '/'
    const std::size_t end = pointer.find('/');
    const std::string_view name = pointer.substr(0, end);
    if (!value->is_object()) return kNull;
    // Without a copy of the name wherever that is possible: a dozen fields of a pod are looked up whenever it changes.
    const auto found = is_escaped ? value->find(unescaped(name)) : value->find(name);
    if (found == value->end()) return kNull;
    value = &*found;
    pointer = end == std::string_view::npos ? std::string_view() : pointer.substr(end);
  }
  return *value;
}

}  // namespace sluice::kube
