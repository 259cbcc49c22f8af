#include "src/kube/fake/fake_transport.h"

#include "src/kube/fake/watch_session.h"

namespace sluice::kube::fake {

Result<http::Response> FakeTransport::send(const http::Request& request, std::chrono::milliseconds,
                                           std::stop_token stop) {
  if (stop.stop_requested()) return Error(ErrorCode::kCancelled, "stopped");
  return server_.answer(request, view_);
}

Result<http::Response> FakeTransport::stream(const http::Request& request, http::ByteSink& sink,
                                             std::chrono::milliseconds, std::stop_token stop) {
  http::Response refusal;
  const auto session = server_.watch(request, view_, refusal);
  if (session == nullptr) return refusal;
  while (!stop.stop_requested()) {
    const std::uint64_t seen = server_.changes();
    while (const auto line = session->next_line()) SLUICE_TRY_VOID(sink.on_bytes(*line));
    if (session->state() == WatchSession::State::kBroken) return unavailable("connection lost");
    if (session->state() == WatchSession::State::kEnded) return http::Response{200, {}, ""};
    server_.wait_for_change(seen, stop);
  }
  return Error(ErrorCode::kCancelled, "stopped");
}

}  // namespace sluice::kube::fake
