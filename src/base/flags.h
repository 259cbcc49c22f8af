// Command-line flags: `--name value`, `--name=value`, boolean `--name`, and positional words.
//
// A program lists its flags once; the list is the parser, the defaults and the --help text.
//
// CLI11 in flags.cc takes more lines (70, not 67) and six times as long to compile (15 CPU-seconds, not 2.5). It
// refuses the word "--" and an empty value ("--name="), which are meant here.
//
// Thread safety: values; const methods may be called from any thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.h"

namespace sluice {

struct Flag {
  std::string_view name;           // without dashes
  std::string_view placeholder;    // "PATH"; empty: a boolean flag that takes no value
  std::string_view default_value;  // shown in the help
  std::string_view help;
};

class Flags {
 public:
  // Errors: InvalidArgument naming the unknown flag, or the flag whose value is missing.
  static Result<Flags> parse(const std::vector<Flag>& known, int argc, const char* const* argv);

  // REQUIRES: `name` is in the list given to parse().
  const std::string& text(std::string_view name) const;
  bool given(std::string_view name) const;
  // Errors: InvalidArgument naming the flag when the value is not a whole number.
  Result<std::int64_t> integer(std::string_view name) const;

  const std::vector<std::string>& positional() const { return positional_; }

  static std::string help(const std::vector<Flag>& known, std::string_view usage);

 private:
  std::map<std::string, std::string, std::less<>> values_;
  std::map<std::string, bool, std::less<>> given_;
  std::vector<std::string> positional_;
};

}  // namespace sluice
