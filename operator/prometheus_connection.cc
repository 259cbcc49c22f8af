#include "operator/prometheus_connection.h"

#include <fstream>
#include <mutex>
#include <sstream>
#include <utility>

#include "src/http/bearer_token.h"
#include "src/http/cpprest_transport.h"
#include "src/kube/config.h"

namespace sluice::control {
namespace {

// Answers are one series for each job, a few hundred bytes each.
constexpr http::CpprestOptions kLimits{.max_body_bytes = 64u << 20};

struct PemField {
  const char* name;
  std::string PrometheusConnection::*path;
  std::string http::Endpoint::*pem;
};
constexpr PemField kPemFields[] = {
    {"caFile", &PrometheusConnection::ca_file, &http::Endpoint::ca_pem},
    {"certificateFile", &PrometheusConnection::certificate_file, &http::Endpoint::client_certificate_pem},
    {"keyFile", &PrometheusConnection::key_file, &http::Endpoint::client_key_pem}};

// Whether any field of `endpoint` is now another. The kubelet replaces all files of a Secret at once.
Result<bool> read_changes(const PrometheusConnection& connection, http::Endpoint& endpoint) {
  bool changed = false;
  for (const PemField& field : kPemFields) {
    const std::string& path = connection.*field.path;
    if (path.empty()) continue;
    std::ifstream file(path);
    std::stringstream text;
    if (file) text << file.rdbuf();
    std::string& held = endpoint.*field.pem;
    if (text.str().empty() && held.empty())
      return invalid_argument(std::string("metrics.connection.") + field.name + ": " + path +
                              " is empty or cannot be read; is the key in the Secret or ConfigMap?");
    if (text.str().empty() || text.str() == held) continue;
    held = text.str();
    changed = true;
  }
  return changed;
}

// Opens anew when a certificate has changed, and adds the fixed headers.
class PrometheusTransport final : public http::Transport {
 public:
  PrometheusTransport(const MetricsSource& config, std::shared_ptr<http::Transport> without_files)
      : connection_(config.connection), inner_(std::move(without_files)) {
    endpoint_.base_url = config.url;
    endpoint_.server_name = config.connection.server_name;
    endpoint_.proxy_url = config.connection.proxy_url;
  }

  Result<http::Response> send(const http::Request& request, std::chrono::milliseconds timeout,
                              std::stop_token stop) override {
    SLUICE_TRY(const auto inner, current());
    http::Request completed = request;
    for (const auto& [name, value] : connection_.headers) completed.headers[name] = value;
    auto answer = inner->send(completed, timeout, std::move(stop));
    if (answer.ok() || answer.error().code() != ErrorCode::kUnavailable || !endpoint_.base_url.starts_with("https://"))
      return answer;
    // What goes wrong in TLS reads like a server that is away: "Failed to read HTTP status line".
    return Error(ErrorCode::kUnavailable, answer.error().message() +
                                              "; is it up, and do caSecret or caConfigMap, serverName and "
                                              "clientCertificateSecret of metrics.connection fit it?");
  }

  Result<http::Response> stream(const http::Request&, http::ByteSink&, std::chrono::milliseconds,
                                std::stop_token) override {
    return internal_error("Prometheus is not streamed from");
  }

 private:
  Result<std::shared_ptr<http::Transport>> current() {
    std::lock_guard lock(mutex_);
    SLUICE_TRY(const bool changed, read_changes(connection_, endpoint_));
    if (changed || must_open_) {
      must_open_ = true;  // until it succeeds: half of a rotation may be on the disk
      auto opened = http::make_cpprest_transport(endpoint_, kLimits);
      if (!opened.ok()) return opened.error().with_context("metrics.connection");
      inner_ = *opened;
      must_open_ = false;
    }
    return inner_;
  }

  const PrometheusConnection connection_;
  std::mutex mutex_;
  http::Endpoint endpoint_;
  bool must_open_ = false;
  std::shared_ptr<http::Transport> inner_;
};

}  // namespace

Result<std::shared_ptr<http::Transport>> open_prometheus(const MetricsSource& config, const Clock& clock) {
  const PrometheusConnection& connection = config.connection;
  auto plain = http::make_cpprest_transport(
      {.base_url = config.url, .server_name = connection.server_name, .proxy_url = connection.proxy_url}, kLimits);
  if (!plain.ok()) return plain.error().with_context("metrics.url and metrics.connection.proxyUrl");
  std::shared_ptr<http::Transport> transport = std::make_shared<PrometheusTransport>(config, *plain);
  if (!connection.bearer_token_file.empty())
    return http::with_bearer_token(std::move(transport), kube::token_from_file(connection.bearer_token_file, clock));
  if (!connection.username.empty())
    return http::with_basic_auth(std::move(transport), connection.username,
                                 kube::token_from_file(connection.password_file, clock));
  return transport;
}

}  // namespace sluice::control
