#include "src/kube/fake/selector.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "src/kube/json_member.h"

namespace sluice::kube::fake {
namespace {

std::string trim(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(' ');
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

// At commas outside parentheses.
std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (const char character : text) {
    depth += character == '(' ? 1 : character == ')' ? -1 : 0;
    if (character == ',' && depth == 0)
      parts.emplace_back();
    else
      parts.back() += character;
  }
  for (std::string& part : parts) part = trim(part);
  std::erase(parts, "");
  return parts;
}

// The text of the value at `pointer`; "" where there is none, as field selectors see it.
std::string text_of(const Json& object, const std::string& pointer) {
  const Json& value = value_at(object, pointer);
  return value.is_string() ? value.get<std::string>() : "";
}

}  // namespace

Result<Selector> Selector::parse(const std::string& labels, const std::string& fields) {
  static const std::set<std::string> kFields = {"metadata.name", "metadata.namespace", "spec.nodeName", "status.phase"};
  Selector selector;
  const auto parse_term = [&](const std::string& text, bool is_label) -> Result<void> {
    Term term;
    term.is_label = is_label;
    for (const auto& [operation, negated] : {std::pair{"!=", true}, {"==", false}, {"=", false}}) {
      const std::size_t at = text.find(operation);
      if (at == std::string::npos) continue;
      term.name = trim(text.substr(0, at));
      term.negated = negated;
      term.values = {trim(text.substr(at + std::string(operation).size()))};
      break;
    }
    for (const auto& [word, negated] : {std::pair{" notin ", true}, {" in ", false}}) {
      const std::size_t at = text.find(word);
      if (!term.name.empty() || at == std::string::npos) continue;
      term.name = trim(text.substr(0, at));
      term.negated = negated;
      const std::string list = trim(text.substr(at + std::string(word).size()));
      term.values = split(list.substr(1, list.size() - 2));
    }
    if (term.name.empty()) {
      term.exists = !text.starts_with("!");
      term.name = term.exists ? text : text.substr(1);
    }
    if (!is_label) {
      if (!kFields.contains(term.name) || term.values.empty())
        return invalid_argument("field label not supported: " + term.name);
      std::replace(term.name.begin(), term.name.end(), '.', '/');
      term.name = "/" + term.name;
    }
    selector.terms_.push_back(std::move(term));
    return {};
  };
  for (const std::string& text : split(labels)) SLUICE_TRY_VOID(parse_term(text, true));
  for (const std::string& text : split(fields)) SLUICE_TRY_VOID(parse_term(text, false));
  return selector;
}

bool Selector::matches(const Json& object) const {
  return std::all_of(terms_.begin(), terms_.end(), [&](const Term& term) {
    std::string value;
    if (term.is_label) {
      const auto metadata = object.find("metadata");
      const auto labels = metadata->find("labels");
      const bool has = labels != metadata->end() && labels->contains(term.name);
      if (term.values.empty()) return has == term.exists;
      if (!has) return term.negated;
      value = labels->at(term.name).get<std::string>();
    } else {
      value = text_of(object, term.name);
    }
    const bool found = std::find(term.values.begin(), term.values.end(), value) != term.values.end();
    return found != term.negated;
  });
}

}  // namespace sluice::kube::fake
