#include "src/object_store/connections.h"

#include <sys/stat.h>

namespace sluice::object_store {
namespace {

namespace asio = boost::asio;

bool exists(const std::string& path) {
  struct stat status {};
  return !path.empty() && ::stat(path.c_str(), &status) == 0;
}

// OpenSSL as built for one system does not find the certificates of another one, whose image this may run in.
Trust system_trust() {
  for (const char* file :
       {"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem",
        "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "/etc/ssl/cert.pem"})
    if (exists(file)) return {file, ""};
  return {"", "/etc/ssl/certs"};
}

std::shared_ptr<asio::ssl::context> context_of(Trust trust) {
  auto context = std::make_shared<asio::ssl::context>(asio::ssl::context::tls_client);
  context->set_options(asio::ssl::context::default_workarounds | asio::ssl::context::no_tlsv1 |
                       asio::ssl::context::no_tlsv1_1);
  context->set_verify_mode(asio::ssl::verify_peer);
  if (!exists(trust.file) && !exists(trust.folder)) trust = system_trust();
  boost::system::error_code failed;  // A connection without certificates to trust fails with words of its own.
  if (exists(trust.file)) context->load_verify_file(trust.file, failed);
  if (exists(trust.folder)) context->add_verify_path(trust.folder, failed);
  return context;
}

}  // namespace

std::unique_ptr<Connection> Connections::take(const Key& key) {
  auto& idle = idle_[key];
  while (!idle.empty()) {
    auto connection = std::move(idle.back());  // the one that was used last
    idle.pop_back();
    --kept_;
    if (std::chrono::steady_clock::now() - connection->used_at < options_.idle) return connection;
  }
  return nullptr;
}

std::unique_ptr<Connection> Connections::open(const Key& key) {
  if (!std::get<0>(key)) return std::make_unique<Connection>(io_, nullptr);
  auto& context = contexts_[std::get<2>(key)];
  if (context == nullptr) context = context_of(std::get<2>(key));
  return std::make_unique<Connection>(io_, context);
}

void Connections::keep(const Key& key, std::unique_ptr<Connection> connection) {
  if (kept_ >= kIdleConnectionsMax) {  // of hosts that nothing is asked for any more, perhaps
    idle_.clear();
    kept_ = 0;
  }
  connection->used_at = std::chrono::steady_clock::now();
  idle_[key].push_back(std::move(connection));
  ++kept_;
}

}  // namespace sluice::object_store
