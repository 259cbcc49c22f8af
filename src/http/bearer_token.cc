#include "src/http/bearer_token.h"

#include <utility>

namespace sluice::http {
namespace {

class BearerTokenTransport final : public Transport {
 public:
  BearerTokenTransport(std::shared_ptr<Transport> inner, std::shared_ptr<TokenSource> source)
      : inner_(std::move(inner)), source_(std::move(source)) {}

  Result<Response> send(const Request& request, std::chrono::milliseconds timeout, std::stop_token stop) override {
    return authenticated(request,
                         [&](const Request& signed_request) { return inner_->send(signed_request, timeout, stop); });
  }

  Result<Response> stream(const Request& request, ByteSink& sink, std::chrono::milliseconds idle_limit,
                          std::stop_token stop) override {
    return authenticated(
        request, [&](const Request& signed_request) { return inner_->stream(signed_request, sink, idle_limit, stop); });
  }

 private:
  // A 401 is an answer before anything was done (and before a stream's sink saw a byte), so asking again is safe.
  template <typename Exchange>
  Result<Response> authenticated(Request request, Exchange exchange) {
    SLUICE_TRY(const std::string token, source_->token());
    request.headers["Authorization"] = "Bearer " + token;
    Result<Response> response = exchange(request);
    if (!response.ok() || response->status != 401) return response;

    source_->rejected(token);
    SLUICE_TRY(const std::string fresh, source_->token());
    if (fresh == token) return response;
    request.headers["Authorization"] = "Bearer " + fresh;
    return exchange(request);
  }

  std::shared_ptr<Transport> inner_;
  std::shared_ptr<TokenSource> source_;
};

}  // namespace

std::shared_ptr<Transport> with_bearer_token(std::shared_ptr<Transport> inner, std::shared_ptr<TokenSource> source) {
  return std::make_shared<BearerTokenTransport>(std::move(inner), std::move(source));
}

}  // namespace sluice::http
