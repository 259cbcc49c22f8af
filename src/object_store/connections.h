// Connections to stores, kept for the next request of the same host.
//
// Thread safety: all on the thread of the network.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>

#include "src/object_store/beast_network.h"

namespace sluice::object_store {

// With TLS, `tls` is around the socket.
struct Connection {
  using Socket = boost::asio::ip::tcp::socket;

  // `trusted`: null without TLS.
  Connection(boost::asio::io_context& io, std::shared_ptr<boost::asio::ssl::context> trusted)
      : socket(io), context(std::move(trusted)) {
    if (context != nullptr) tls.emplace(socket, *context);
  }

  template <class Use>
  void with(Use&& use) {
    if (tls)
      use(*tls);
    else
      use(socket);
  }

  Socket socket;
  const std::shared_ptr<boost::asio::ssl::context> context;
  std::optional<boost::asio::ssl::stream<Socket&>> tls;
  Clock::TimePoint used_at{};
};

class Connections {
 public:
  using Key = std::tuple<bool, std::string, Trust>;  // with TLS or not, the authority, whose certificates are trusted

  Connections(boost::asio::io_context& io, const BeastOptions& options) : io_(io), options_(options) {}

  // One that was kept; null: there is none.
  std::unique_ptr<Connection> take(const Key& key);
  // One that is not connected yet.
  std::unique_ptr<Connection> open(const Key& key);
  void keep(const Key& key, std::unique_ptr<Connection> connection);

  boost::asio::io_context& io() { return io_; }
  const BeastOptions& options() const { return options_; }

 private:
  boost::asio::io_context& io_;
  const BeastOptions options_;
  std::map<Trust, std::shared_ptr<boost::asio::ssl::context>> contexts_;
  std::map<Key, std::vector<std::unique_ptr<Connection>>> idle_;
  std::size_t kept_ = 0;
};

}  // namespace sluice::object_store
