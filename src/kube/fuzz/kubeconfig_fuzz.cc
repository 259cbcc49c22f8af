// A kubeconfig: understood or refused with a message, never an exception.
#include "src/kube/config.h"
#include "src/kube/fuzz/fuzz.h"

namespace sluice::kube::fuzz {

void kubeconfig(std::string_view input) {
  static const SystemClock clock;
  const auto connection = parse_kubeconfig(std::string(input), "/nonexistent/config", clock);
  if (connection.ok()) FUZZ_CHECK(!connection->endpoint.base_url.empty());
  if (!connection.ok()) FUZZ_CHECK(!connection.error().message().empty());
}

}  // namespace sluice::kube::fuzz
