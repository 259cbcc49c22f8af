// What people type: subcommands, flags and the short forms of kubectl.
//
// Thread safety: constants and pure functions.
#pragma once

#include <string_view>
#include <vector>

#include "src/base/flags.h"

namespace sluice::cli {

struct Command {
  std::string_view name;
  std::string_view summary;
  std::vector<std::string_view> flags;  // that it takes, beside those of all commands
};

const std::vector<Command>& commands();
const std::vector<Flag>& known_flags();
// Of every command.
inline constexpr std::string_view kFlagsOfAll[] = {"kubeconfig", "context", "help"};

// "--namespace" for "-n"; every other word as it is.
std::string_view long_form(std::string_view word);

}  // namespace sluice::cli
