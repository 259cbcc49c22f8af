// Unix sockets that only the user of this process may use.
//
// Thread safety: pure functions.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "src/base/result.h"
#include "src/transport/unique_fd.h"

namespace sluice::transport {

// Listens on `path` without blocking, with mode 0600, in place of a socket that has no listener.
// Errors: AlreadyExists if another process listens there; InvalidArgument for a path that is too long; those of the
// system.
Result<UniqueFd> listen_on(const std::string& path);

// The process at the other end of a connection (0: of another PID namespace). nullopt: of a user that is neither the
// one that this process runs as, nor root.
std::optional<pid_t> process_of_own_user(int fd);

}  // namespace sluice::transport
