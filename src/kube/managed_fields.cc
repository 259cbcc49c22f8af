#include "src/kube/managed_fields.h"

#include <cstddef>

namespace sluice::kube {
namespace {

constexpr std::size_t kNone = std::string_view::npos;

// Behind the text that begins with the quote at `at`; kNone if it does not end.
std::size_t end_of_text(std::string_view json, std::size_t at) {
  for (++at; at < json.size(); ++at) {
    if (json[at] == '\\') {
      ++at;
    } else if (json[at] == '"') {
      return at + 1;
    }
  }
  return kNone;
}

// Behind the list or object that begins at `at`; kNone if it does not end, or none begins there.
std::size_t end_of_container(std::string_view json, std::size_t at) {
  int depth = 0;
  while (at < json.size()) {
    const char c = json[at];
    if (c == '"') {
      at = end_of_text(json, at);
      if (at == kNone) return kNone;
      continue;
    }
    ++at;
    if (c == '{' || c == '[') ++depth;
    if ((c == '}' || c == ']') && --depth <= 0) return depth == 0 ? at : kNone;
    if (depth == 0) return kNone;
  }
  return kNone;
}

// The value of `key` in the object that begins at `at`, whose values before it are skipped; kNone if there is none.
struct Member {
  std::size_t key = kNone;
  std::size_t value = kNone;
};
Member find_member(std::string_view json, std::size_t at, std::string_view key) {
  if (at >= json.size() || json[at] != '{') return {};
  for (++at; at < json.size() && json[at] == '"';) {
    const std::size_t name = at;
    const std::size_t colon = end_of_text(json, at);
    if (colon == kNone || colon >= json.size() || json[colon] != ':') return {};
    if (json.substr(name + 1, colon - name - 2) == key) return {name, colon + 1};
    at = colon + 1;
    if (at < json.size() && (json[at] == '{' || json[at] == '[')) {
      at = end_of_container(json, at);
    } else if (at < json.size() && json[at] == '"') {
      at = end_of_text(json, at);
    } else {
      at = json.find_first_of(",}", at);
    }
    if (at == kNone || at >= json.size() || json[at] != ',') return {};
    ++at;
  }
  return {};
}

}  // namespace

std::string_view cut_managed_fields(std::string_view line, std::string& shortened) {
  const Member object = find_member(line, 0, "object");
  const Member metadata = find_member(line, object.value, "metadata");
  const Member fields = find_member(line, metadata.value, "managedFields");
  std::size_t end = end_of_container(line, fields.value);
  if (fields.key == kNone || end == kNone || end >= line.size()) return line;
  // One comma goes with it: the one behind, or of a last member the one before.
  std::size_t begin = fields.key;
  if (line[end] == ',') {
    ++end;
  } else if (line[end] == '}' && line[begin - 1] == ',') {
    --begin;
  } else if (line[end] != '}') {
    return line;
  }
  shortened.assign(line.substr(0, begin)).append(line.substr(end));
  return shortened;
}

}  // namespace sluice::kube
