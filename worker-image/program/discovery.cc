#include "worker-image/program/discovery.h"

#include <netdb.h>
#include <sys/socket.h>

#include <condition_variable>
#include <mutex>
#include <thread>

#include "src/base/logging.h"

namespace sluice::program {

Result<Addresses> resolve_addresses(const HostPort& name) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const int status = ::getaddrinfo(name.host.c_str(), std::to_string(name.port).c_str(), &hints, &list);
  if (status == EAI_NONAME || status == EAI_NODATA) return Addresses();
  if (status != 0) return unavailable("resolving " + name.host + ": " + ::gai_strerror(status));
  Addresses addresses;
  for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
    char text[NI_MAXHOST];
    if (::getnameinfo(entry->ai_addr, entry->ai_addrlen, text, sizeof(text), nullptr, 0, NI_NUMERICHOST) != 0) continue;
    addresses.insert(HostPort{text, name.port}.to_string());
  }
  ::freeaddrinfo(list);
  return addresses;
}

struct Discovery::State {
  std::mutex mutex;
  std::condition_variable changed;
  bool stopped = false;
  Addresses addresses;
};

Discovery::Discovery(HostPort name, std::chrono::seconds interval, Resolve resolve)
    : state_(std::make_shared<State>()) {
  std::thread([state = state_, name = std::move(name), interval, resolve = std::move(resolve)] {
    bool failing = false;
    while (true) {
      auto found = resolve(name);
      if (failing == found.ok()) {
        if (!found.ok())
          log_warning("discovery", "a name cannot be looked up; the addresses that are known stay",
                      {{"name", name.host}, {"reason", found.error().message()}});
        failing = !found.ok();
      }
      std::unique_lock lock(state->mutex);
      if (found.ok()) state->addresses = std::move(found).value();
      if (state->changed.wait_for(lock, interval, [&] { return state->stopped; })) return;
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

}  // namespace sluice::program
