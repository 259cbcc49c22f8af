#include "worker-image/feeder/end_without_clients.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace sluice::feeder {

EndWithoutClients::EndWithoutClients(std::filesystem::path lock, std::function<std::size_t()> clients,
                                     const Clock& clock)
    : lock_path_(std::move(lock)),
      clients_(std::move(clients)),
      clock_(clock),
      first_client_due_(clock.now() + kFirstClientMax) {}

EndWithoutClients::~EndWithoutClients() {
  if (!lock_.valid()) return;
  ::unlink((lock_path_.parent_path() / "feeder.log").c_str());
  ::unlink(lock_path_.c_str());
  ::rmdir(lock_path_.parent_path().c_str());
}

bool EndWithoutClients::is_due() {
  if (clients_() > 0) {
    had_client_ = true;
    return false;
  }
  if (!had_client_ && clock_.now() < first_client_due_) return false;
  if (!take_lock()) return false;
  if (clients_() == 0) return true;
  lock_.reset();
  return false;
}

bool EndWithoutClients::take_lock() {
  transport::UniqueFd file(::open(lock_path_.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  if (!file.valid()) return true;
  struct flock all {};
  all.l_type = F_WRLCK;
  if (::fcntl(file.get(), F_SETLK, &all) != 0) return errno != EAGAIN && errno != EACCES;
  // Who removed the file had the lock of it; another file may have its name by now.
  struct stat held {
  }, named{};
  if (::fstat(file.get(), &held) != 0 || ::lstat(lock_path_.c_str(), &named) != 0 || held.st_ino != named.st_ino)
    return false;
  lock_ = std::move(file);
  return true;
}

}  // namespace sluice::feeder
