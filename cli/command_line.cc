#include "cli/command_line.h"

#include <utility>

namespace sluice::cli {

const std::vector<Command>& commands() {
  static const std::vector<Command> kCommands = {
      {"top", "all training jobs, or those of a namespace", {"namespace", "watch", "output"}},
      {"why", "why a job has the workers it has", {"namespace", "output"}},
      {"plan",
       "what more workers or nodes would bring, and what cannot be had",
       {"namespace", "what-if", "snapshot", "operator-namespace", "output"}},
      {"doctor", "whether the installation works", {"namespace", "operator-namespace", "output"}},
      {"bundle",
       "objects, events, logs, metrics and plan in one archive, to send",
       {"namespace", "all-namespaces", "operator-namespace", "output"}}};
  return kCommands;
}

const std::vector<Flag>& known_flags() {
  static const std::vector<Flag> kFlags = {
      {"namespace", "NAME", "", "namespace, also -n (top, plan, doctor: all; why, bundle: the context's)"},
      {"all-namespaces", "", "", "bundle: the jobs of all namespaces, also -A"},
      {"kubeconfig", "FILE", "", "kubeconfig (default: $KUBECONFIG, ~/.kube/config, or the pod's service account)"},
      {"context", "NAME", "", "context of the kubeconfig (default: its current one)"},
      {"output", "FORMAT", "text", "text or json, also -o; bundle: the file (default sluice-bundle.tar.gz)"},
      {"watch", "", "", "top: again every two seconds, also -w"},
      {"what-if", "QUESTION", "", "plan: workers=3 (of each job for itself), or nodes=2x32 (nodes of 32 cores)"},
      {"snapshot", "", "", "plan -o json: also what the operator saw when it decided"},
      {"operator-namespace", "NAME", "sluice-system", "plan, doctor, bundle: where the operator runs"},
      {"help", "", "", "show this text, also -h"}};
  return kFlags;
}

std::string_view long_form(std::string_view word) {
  static constexpr std::pair<std::string_view, std::string_view> kShort[] = {
      {"-n", "--namespace"}, {"-A", "--all-namespaces"}, {"-o", "--output"}, {"-w", "--watch"}, {"-h", "--help"}};
  for (const auto& [short_form, long_form] : kShort)
    if (word == short_form) return long_form;
  return word;
}

}  // namespace sluice::cli
