// What an exec plugin prints: a token, or a reason.
#include "src/kube/exec_plugin.h"
#include "src/kube/fuzz/fuzz.h"

namespace sluice::kube::fuzz {

void exec_credential(std::string_view input) {
  const auto credential = parse_exec_credential(input, "client.authentication.k8s.io/v1");
  if (credential.ok()) FUZZ_CHECK(!credential->token.empty());
}

}  // namespace sluice::kube::fuzz
