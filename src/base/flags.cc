#include "src/base/flags.h"

#include <algorithm>
#include <cassert>
#include <charconv>

namespace sluice {

Result<Flags> Flags::parse(const std::vector<Flag>& known, int argc, const char* const* argv) {
  Flags flags;
  for (const Flag& flag : known) flags.values_[std::string(flag.name)] = flag.default_value;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (!word.starts_with("--") || word == "--") {
      flags.positional_.emplace_back(word);
      continue;
    }
    const std::size_t equals = word.find('=');
    const std::string name(word.substr(2, equals == std::string_view::npos ? equals : equals - 2));
    const auto flag = std::find_if(known.begin(), known.end(), [&](const Flag& f) { return f.name == name; });
    if (flag == known.end()) return invalid_argument("unknown flag --" + name + " (see --help)");
    flags.given_[name] = true;
    if (flag->placeholder.empty()) {
      flags.values_[name] = equals == std::string_view::npos ? "true" : std::string(word.substr(equals + 1));
    } else if (equals != std::string_view::npos) {
      flags.values_[name] = word.substr(equals + 1);
    } else if (i + 1 < argc) {
      flags.values_[name] = argv[++i];
    } else {
      return invalid_argument("flag --" + name + " needs a value: --" + name + " " + std::string(flag->placeholder));
    }
  }
  return flags;
}

const std::string& Flags::text(std::string_view name) const {
  const auto found = values_.find(name);
  assert(found != values_.end());
  return found->second;
}

bool Flags::given(std::string_view name) const { return given_.find(name) != given_.end() && text(name) != "false"; }

Result<std::int64_t> Flags::integer(std::string_view name) const {
  const std::string& value = text(name);
  std::int64_t number = 0;
  const auto [end, problem] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (problem != std::errc() || end != value.data() + value.size()) {
    return invalid_argument("flag --" + std::string(name) + ": '" + value + "' is not a whole number");
  }
  return number;
}

std::string Flags::help(const std::vector<Flag>& known, std::string_view usage) {
  std::string text = "usage: " + std::string(usage) + "\n";
  for (const Flag& flag : known) {
    std::string left = "  --" + std::string(flag.name);
    if (!flag.placeholder.empty()) left += " " + std::string(flag.placeholder);
    left.resize(std::max<std::size_t>(left.size() + 2, 34), ' ');
    text += left + std::string(flag.help);
    if (!flag.default_value.empty()) text += " (default " + std::string(flag.default_value) + ")";
    text += "\n";
  }
  return text;
}

}  // namespace sluice
