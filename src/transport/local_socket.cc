#include "src/transport/local_socket.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace sluice::transport {
namespace {

constexpr int kBacklog = 64;

bool has_listener(const sockaddr_un& address) {
  const UniqueFd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  return ::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 || errno == EAGAIN;
}

}  // namespace

Result<UniqueFd> listen_on(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    return invalid_argument("--socket: the path is longer than " + std::to_string(sizeof(address.sun_path) - 1) +
                            " bytes");
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener.valid()) return errno_error("socket");
  struct stat status {};
  if (::lstat(path.c_str(), &status) == 0 && S_ISSOCK(status.st_mode)) {
    if (has_listener(address)) return Error(ErrorCode::kAlreadyExists, "another process listens on " + path);
    ::unlink(path.c_str());
  }
  if (::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return errno_error("bind " + path);
  }
  if (::chmod(path.c_str(), 0600) != 0) return errno_error("chmod " + path);
  if (::listen(listener.get(), kBacklog) != 0) return errno_error("listen on " + path);
  return listener;
}

std::optional<pid_t> process_of_own_user(int fd) {
  ucred peer{};
  socklen_t bytes = sizeof(peer);
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0) return std::nullopt;
  if (peer.uid != ::geteuid() && peer.uid != 0) return std::nullopt;
  return peer.pid;
}

}  // namespace sluice::transport
