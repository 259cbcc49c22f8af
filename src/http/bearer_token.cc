#include "src/http/bearer_token.h"

#include <functional>
#include <utility>
#include <vector>

#include <openssl/evp.h>

namespace sluice::http {
namespace {

// The value of the header "Authorization" for a token or password.
using Authorization = std::function<std::string(const std::string& secret)>;

std::string base64(const std::string& text) {
  std::vector<unsigned char> encoded((text.size() + 2) / 3 * 4 + 1);
  const int size = EVP_EncodeBlock(encoded.data(), reinterpret_cast<const unsigned char*>(text.data()),
                                   static_cast<int>(text.size()));
  return {reinterpret_cast<const char*>(encoded.data()), static_cast<std::size_t>(size)};
}

class AuthenticatedTransport final : public Transport {
 public:
  AuthenticatedTransport(std::shared_ptr<Transport> inner, std::shared_ptr<TokenSource> source,
                         Authorization authorization)
      : inner_(std::move(inner)), source_(std::move(source)), authorization_(std::move(authorization)) {}

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
    request.headers["Authorization"] = authorization_(token);
    Result<Response> response = exchange(request);
    if (!response.ok() || response->status != 401) return response;

    source_->rejected(token);
    SLUICE_TRY(const std::string fresh, source_->token());
    if (fresh == token) return response;
    request.headers["Authorization"] = authorization_(fresh);
    return exchange(request);
  }

  std::shared_ptr<Transport> inner_;
  std::shared_ptr<TokenSource> source_;
  Authorization authorization_;
};

}  // namespace

std::shared_ptr<Transport> with_bearer_token(std::shared_ptr<Transport> inner, std::shared_ptr<TokenSource> source) {
  return std::make_shared<AuthenticatedTransport>(std::move(inner), std::move(source),
                                                  [](const std::string& token) { return "Bearer " + token; });
}

std::shared_ptr<Transport> with_basic_auth(std::shared_ptr<Transport> inner, std::string username,
                                           std::shared_ptr<TokenSource> passwords) {
  return std::make_shared<AuthenticatedTransport>(
      std::move(inner), std::move(passwords),
      [user = std::move(username)](const std::string& password) { return "Basic " + base64(user + ":" + password); });
}

}  // namespace sluice::http
