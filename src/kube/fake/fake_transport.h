// The fake API server behind the seam of src/http, so that the real client talks to it unchanged.
#pragma once

#include <memory>

#include "src/http/transport.h"
#include "src/kube/fake/api_server.h"

namespace sluice::kube::fake {

// Thread safety: as every Transport. stream() blocks its thread, as a connection would; a simulation in one thread
// opens watches with ApiServer::watch() instead.
class FakeTransport final : public http::Transport {
 public:
  // `view` may be null. REQUIRES: server and view outlive the transport.
  explicit FakeTransport(ApiServer& server, const CacheView* view = nullptr) : server_(server), view_(view) {}

  Result<http::Response> send(const http::Request& request, std::chrono::milliseconds timeout,
                              std::stop_token stop) override;
  Result<http::Response> stream(const http::Request& request, http::ByteSink& sink,
                                std::chrono::milliseconds idle_limit, std::stop_token stop) override;

 private:
  ApiServer& server_;
  const CacheView* view_;
};

}  // namespace sluice::kube::fake
