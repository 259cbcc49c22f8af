#include "worker-image/feeder/discovery.h"

#include <netdb.h>
#include <sys/socket.h>

#include <condition_variable>
#include <mutex>
#include <thread>

#include "src/base/logging.h"

namespace sluice::feeder {

Result<Addresses> resolve_addresses(const std::string& host, const std::string& port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const int status = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &list);
  if (status == EAI_NONAME || status == EAI_NODATA) return Addresses();
  if (status != 0) return unavailable("resolving " + host + ": " + ::gai_strerror(status));
  Addresses addresses;
  for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
    char text[NI_MAXHOST];
    if (::getnameinfo(entry->ai_addr, entry->ai_addrlen, text, sizeof(text), nullptr, 0, NI_NUMERICHOST) != 0) continue;
    addresses.insert((entry->ai_family == AF_INET6 ? "[" + std::string(text) + "]" : std::string(text)) + ":" + port);
  }
  ::freeaddrinfo(list);
  return addresses;
}

Result<HostPort> parse_host_port(const std::string& text) {
  const auto colon = text.rfind(':');
  HostPort result;
  if (colon != std::string::npos) {
    result = {text.substr(0, colon), text.substr(colon + 1)};
    if (result.host.starts_with('[') && result.host.ends_with(']'))
      result.host = result.host.substr(1, result.host.size() - 2);
  }
  const bool is_number = !result.port.empty() && result.port.find_first_not_of("0123456789") == std::string::npos;
  if (result.host.empty() || !is_number) return invalid_argument("--workers: '" + text + "' is not HOST:PORT");
  return result;
}

struct Discovery::State {
  std::mutex mutex;
  std::condition_variable changed;
  bool stopped = false;
  Addresses addresses;
};

Discovery::Discovery(HostPort name, Resolve resolve) : state_(std::make_shared<State>()) {
  std::thread([state = state_, name = std::move(name), resolve = std::move(resolve)] {
    bool failing = false;
    while (true) {
      auto found = resolve(name.host, name.port);
      if (failing == found.ok()) {
        if (!found.ok())
          log_warning("feeder", "workers cannot be looked up; those known stay", {{"reason", found.error().message()}});
        failing = !found.ok();
      }
      std::unique_lock lock(state->mutex);
      if (found.ok()) state->addresses = std::move(found).value();
      if (state->changed.wait_for(lock, kInterval, [&] { return state->stopped; })) return;
    }
  }).detach();
}

Discovery::~Discovery() {
  std::lock_guard lock(state_->mutex);
  state_->stopped = true;
  state_->changed.notify_all();
}

Addresses Discovery::addresses() const {
  std::lock_guard lock(state_->mutex);
  return state_->addresses;
}

}  // namespace sluice::feeder
