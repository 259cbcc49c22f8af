#include "src/transport/server_credentials.h"

#include <grpc/grpc_security.h>

#include <mutex>

namespace sluice::transport {
namespace {

// gRPC's C interface asks for the certificates of each connection; its C++ interface has no such credentials.
class RenewedServerCredentials final : public grpc::ServerCredentials {
 public:
  RenewedServerCredentials(const Credentials& credentials, Clients clients)
      : credentials_(credentials), clients_(clients) {}

  void SetAuthMetadataProcessor(const std::shared_ptr<grpc::AuthMetadataProcessor>&) override {}

 private:
  // REQUIRES: this object outlives the server.
  int AddPortToServer(const std::string& address, grpc_server* server) override {
    const auto asks = clients_ == Clients::kShowNone ? GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE
                                                     : GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY;
    grpc_server_credentials* port = grpc_ssl_server_credentials_create_with_options(
        grpc_ssl_server_credentials_create_options_using_config_fetcher(asks, &fetch, this));
    const int number = grpc_server_add_http2_port(server, address.c_str(), port);
    grpc_server_credentials_release(port);
    return number;
  }

  static grpc_ssl_certificate_config_reload_status fetch(void* self, grpc_ssl_server_certificate_config** config) {
    return static_cast<RenewedServerCredentials*>(self)->fetch_for_connection(config);
  }

  grpc_ssl_certificate_config_reload_status fetch_for_connection(grpc_ssl_server_certificate_config** config) {
    std::lock_guard lock(mutex_);
    TlsMaterial now = credentials_.now();
    if (now == told_) return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
    told_ = std::move(now);
    const grpc_ssl_pem_key_cert_pair pair{told_.key.c_str(), told_.certificate.c_str()};
    *config = grpc_ssl_server_certificate_config_create(told_.authority.c_str(), &pair, 1);
    return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
  }

  const Credentials credentials_;
  const Clients clients_;
  std::mutex mutex_;
  TlsMaterial told_;
};

}  // namespace

std::shared_ptr<grpc::ServerCredentials> server_credentials(const Credentials& credentials, Clients clients) {
  if (!credentials.encrypted()) return grpc::InsecureServerCredentials();
  return std::make_shared<RenewedServerCredentials>(credentials, clients);
}

}  // namespace sluice::transport
