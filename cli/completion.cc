#include "cli/completion.h"

#include <algorithm>
#include <span>
#include <string_view>

#include "cli/command_line.h"

namespace sluice::cli {
namespace {

// Of Cobra's ShellCompDirective.
constexpr int kFiles = 0;    // where there is no choice, the shell offers files
constexpr int kNoSpace = 2;  // the word goes on
constexpr int kNoFiles = 4;

class Choices {
 public:
  explicit Choices(std::string_view begun) : begun_(begun) {}

  void add(std::string_view choice, std::string_view description = "") {
    if (!choice.starts_with(begun_)) return;
    text_ += choice;
    if (!description.empty()) text_.append("\t").append(description);
    text_ += "\n";
  }
  void add_all(const std::vector<std::string>& choices) {
    for (const std::string& choice : choices) add(choice);
  }
  std::string end(int directive) const { return text_ + ":" + std::to_string(directive) + "\n"; }

 private:
  std::string_view begun_;
  std::string text_;
};

// "output" of "-o", "--output" and "--output=x"; empty: no flag.
std::string_view flag_name(std::string_view word) {
  const std::string_view full = long_form(word);
  if (!full.starts_with("--")) return "";
  return full.substr(2, full.find('=') - 2);
}

bool takes_value(std::string_view name) {
  return std::any_of(known_flags().begin(), known_flags().end(),
                     [&](const Flag& flag) { return flag.name == name && !flag.placeholder.empty(); });
}

// The words that are neither flags nor their values.
std::vector<std::string_view> positional(std::span<const std::string> words) {
  std::vector<std::string_view> found;
  for (std::size_t index = 0; index < words.size(); ++index) {
    if (!words[index].starts_with("-"))
      found.push_back(words[index]);
    else if (takes_value(flag_name(words[index])) && words[index].find('=') == std::string::npos)
      ++index;
  }
  return found;
}

std::string value_of(std::string_view flag, std::string_view begun, std::string_view command,
                     const CompletionSource& source) {
  Choices choices(begun);
  if (flag == "namespace" || flag == "operator-namespace") {
    choices.add_all(source.namespaces());
  } else if (flag == "output" && command != "bundle") {
    choices.add("text");
    choices.add("json");
  } else if (flag == "output" || flag == "kubeconfig") {
    return choices.end(kFiles);
  } else if (flag == "what-if") {
    choices.add("workers=", "so many more workers of each job for itself: workers=3");
    choices.add("nodes=", "so many more nodes of so many cores: nodes=2x32");
    return choices.end(kNoFiles | kNoSpace);
  }
  return choices.end(kNoFiles);
}

std::string flags_of(std::string_view command, std::string_view begun) {
  Choices choices(begun);
  const auto known =
      std::find_if(commands().begin(), commands().end(), [&](const Command& each) { return each.name == command; });
  for (const Flag& flag : known_flags()) {
    const bool of_all = std::find(std::begin(kFlagsOfAll), std::end(kFlagsOfAll), flag.name) != std::end(kFlagsOfAll);
    const bool of_command = known != commands().end() &&
                            std::find(known->flags.begin(), known->flags.end(), flag.name) != known->flags.end();
    if (of_all || of_command) choices.add("--" + std::string(flag.name), flag.help);
  }
  return choices.end(kNoFiles);
}

}  // namespace

std::string complete(const std::vector<std::string>& words, const CompletionSource& source) {
  const std::string& last = words.back();
  const std::span<const std::string> before(words.data(), words.size() - 1);
  const std::vector<std::string_view> said = positional(before);
  const std::string_view command = said.empty() ? "" : said.front();
  if (last.starts_with("--") && last.find('=') != std::string::npos)
    return value_of(flag_name(last), std::string_view(last).substr(last.find('=') + 1), command, source);
  if (!before.empty() && before.back().find('=') == std::string::npos && takes_value(flag_name(before.back())))
    return value_of(flag_name(before.back()), last, command, source);
  if (last.starts_with("-")) return flags_of(command, last);
  Choices choices(last);
  if (said.empty())
    for (const Command& each : commands()) choices.add(each.name, each.summary);
  else if (command == "why" && said.size() == 1)
    choices.add_all(source.jobs());
  return choices.end(kNoFiles);
}

}  // namespace sluice::cli
