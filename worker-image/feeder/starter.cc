#include "worker-image/feeder/starter.h"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <string>

namespace sluice::feeder {

Starter::Starter(pid_t id) : id_(id) {
  if (id_ == 0) return;
  descriptor_ = transport::UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, id_, 0)));
  was_gone_ = descriptor_.get() < 0 && errno == ESRCH;
}

bool Starter::has_ended() const {
  if (id_ == 0) return false;
  if (descriptor_.get() < 0) return was_gone_ || (::kill(id_, 0) != 0 && errno == ESRCH);
  pollfd entry{descriptor_.get(), POLLIN, 0};
  return ::poll(&entry, 1, 0) > 0;
}

Result<void> leave_starter(int descriptor) {
  const transport::UniqueFd told(descriptor);
  const pid_t successor = ::fork();
  if (successor < 0) return errno_error("fork");
  if (successor == 0) return {};
  const std::string id = std::to_string(successor) + "\n";
  if (::write(told.get(), id.data(), id.size()) == static_cast<ssize_t>(id.size())) ::_exit(0);
  const Error error = errno_error("--detach");
  ::kill(successor, SIGKILL);
  return error;
}

}  // namespace sluice::feeder
