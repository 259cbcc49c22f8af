// The addresses behind a headless Service's name, asked for again and again.
//
// getaddrinfo cannot be interrupted and may take many seconds where DNS is broken, so it runs on a thread that no other
// thread waits for. A name without addresses is not an error: a pool may be empty. A resolver that fails is: then the
// last good answer stands, because servers that run do not vanish with their DNS server.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "src/base/host_port.h"
#include "src/base/result.h"

namespace sluice::program {

// "IP:PORT" or "[IPv6]:PORT".
using Addresses = std::set<std::string>;
using Resolve = std::function<Result<Addresses>(const HostPort& name)>;

// getaddrinfo. Errors: Unavailable, when the name server could not be asked; a name that does not exist has no
// addresses.
Result<Addresses> resolve_addresses(const HostPort& name);

// Thread safety: all methods may be called from any thread.
class Discovery {
 public:
  Discovery(HostPort name, std::chrono::seconds interval, Resolve resolve);
  ~Discovery();  // does not wait for a resolution in progress

  Addresses addresses() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace sluice::program
