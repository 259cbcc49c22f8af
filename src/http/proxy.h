// Through which proxy a program's requests go, by the variables of its environment that curl and kubectl read.
//
// Thread safety: values and pure functions.
#pragma once

#include <string>

namespace sluice::http {

struct ProxyEnvironment {
  std::string http_proxy;   // $http_proxy, else $HTTP_PROXY; as "http://proxy.example:3128", or without the scheme
  std::string https_proxy;  // the same, for URLs with https
  std::string no_proxy;     // hosts that are asked directly: see asked_directly()

  static ProxyEnvironment current();
};

// The URL of the proxy for requests to `url`; empty: there is none, and for loopback there is never one.
std::string proxy_for(const std::string& url, const ProxyEnvironment& environment);

// Whether the comma-separated list names the host. An entry is "*", an address, a network in CIDR notation, a name with
// all below it, or with a leading dot all below a name; one that ends in ":PORT" is for that port alone.
bool asked_directly(const std::string& host, int port, const std::string& no_proxy);

}  // namespace sluice::http
