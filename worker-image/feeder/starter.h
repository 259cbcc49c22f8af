// The process that has started a feeder of its own: the feeder ends with it, and yet is no child of it.
//
// A program that waits for its children with wait() would also wait for a feeder among them, which never ends before
// it. Thread safety: none.
#pragma once

#include <sys/types.h>

#include "src/base/result.h"
#include "src/transport/unique_fd.h"

namespace sluice::feeder {

class Starter {
 public:
  // 0: there is none, and it never ends. It is told, not asked for: one that was killed before we ask has left us to
  // another parent.
  explicit Starter(pid_t id);

  bool has_ended() const;
  // Readable once it has ended; -1 where there is none, or where the kernel (before 5.3) does not tell.
  int descriptor() const { return descriptor_.get(); }

 private:
  const pid_t id_;
  transport::UniqueFd descriptor_;
  bool was_gone_ = false;
};

// Goes on in a process that is no child of the caller's parent. The caller itself writes the id of that process, as
// text, to `descriptor`, and ends here with status 0. REQUIRES: no thread has been started.
Result<void> leave_starter(int descriptor);

}  // namespace sluice::feeder
