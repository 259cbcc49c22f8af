#include "src/kube/json_member.h"

#include <nlohmann/json.hpp>

namespace sluice::kube {

std::string text_at(const Json& object, const char* member) {
  const auto text = object.find(member);  // the end of what is no object, too
  return text != object.end() && text->is_string() ? text->get<std::string>() : std::string();
}

std::string text_at(const Json& object, const char* outer, const char* inner) {
  const auto found = object.find(outer);
  return found != object.end() ? text_at(*found, inner) : std::string();
}

}  // namespace sluice::kube
