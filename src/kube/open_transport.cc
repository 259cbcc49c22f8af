// Apart from config.cc, so that who reads configurations alone (the fuzzers) links no HTTP.
#include "src/http/cpprest_transport.h"
#include "src/kube/config.h"

namespace sluice::kube {

Result<std::shared_ptr<http::Transport>> open_transport(const Connection& connection) {
  SLUICE_TRY(auto transport, http::make_cpprest_transport(connection.endpoint));
  return connection.token ? http::with_bearer_token(std::move(transport), connection.token) : std::move(transport);
}

}  // namespace sluice::kube
