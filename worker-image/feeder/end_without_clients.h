// The end of a feeder that the ranks of a host share: when the last of them has gone, or when none has come.
//
// The folder of its socket has a lock. A rank that looks for a feeder there, or starts one, holds it. So does a feeder
// from its decision to end until the folder is gone. So no second feeder starts in the folder of one that ends. A
// client that connects in that moment gets no answer, and looks again (docs/designs/shared-feeder.md).
// Thread safety: none.
#pragma once

#include <filesystem>
#include <functional>

#include "src/base/clock.h"
#include "src/transport/unique_fd.h"

namespace sluice::feeder {

class EndWithoutClients {
 public:
  // So long a feeder waits for its first client: the rank that started it may have died.
  static constexpr std::chrono::seconds kFirstClientMax{10};

  // `lock` is locked as by fcntl(F_SETLK), which dies with the process. `clients` tells how many there are.
  EndWithoutClients(std::filesystem::path lock, std::function<std::size_t()> clients, const Clock& clock);
  // After is_due() was true: removes lock, log and folder. REQUIRES: the socket is gone by then.
  ~EndWithoutClients();
  EndWithoutClients(const EndWithoutClients&) = delete;
  EndWithoutClients& operator=(const EndWithoutClients&) = delete;

  // Whether to end now: no client is left, and no rank holds the lock. True at most once.
  bool is_due();

 private:
  // Also true where there is no lock to take any more: an end cannot wait for that.
  bool take_lock();

  const std::filesystem::path lock_path_;
  const std::function<std::size_t()> clients_;
  const Clock& clock_;
  const Clock::TimePoint first_client_due_;
  bool had_client_ = false;
  transport::UniqueFd lock_;
};

}  // namespace sluice::feeder
