// An HTTP proxy on 127.0.0.1 that leads every connection to one server of the test, whatever host is asked for.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace sluice::http::testing {

// Thread safety: all methods may be called from any thread. Every connection has a thread of its own.
class ProxyServer {
 public:
  explicit ProxyServer(std::uint16_t target_port);
  ~ProxyServer();  // hangs up on every connection and joins its thread

  std::uint16_t port() const;
  // The first head of each connection: "CONNECT host:443 HTTP/1.1\r\n...", or a whole request where nothing is
  // encrypted. Such a request goes to the server as it is.
  std::vector<std::string> heads() const;

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace sluice::http::testing
