// The choices for the word at which the user of a shell has pressed Tab, behind `kubectl sluice`.
//
// kubectl asks the program kubectl_complete-sluice on the PATH, with the words behind `sluice`, for bash, zsh, fish and
// PowerShell alike. The output is as for Cobra's completion of shells. Each line has a choice, and a tab and a
// description behind it if there is one. The last line is ":DIRECTIVE".
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace sluice::cli {

// What only the API server knows. Asked only where it is needed; empty: it cannot be had.
struct CompletionSource {
  std::function<std::vector<std::string>()> namespaces;
  std::function<std::vector<std::string>()> jobs;  // TrainingJobs of the namespace that the words say
};

// The choices for the last of the words, and the directive. REQUIRES: `words` is not empty.
std::string complete(const std::vector<std::string>& words, const CompletionSource& source);

}  // namespace sluice::cli
