// The common parts of the programs: flags, signals, pages, and the end.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "src/base/flags.h"
#include "src/executor/executor_metrics.h"

namespace prometheus {
class Registry;
}
namespace sluice::http {
class Server;
}

namespace sluice::program {

// The flags of serve_pages().
inline constexpr Flag kPageFlags[] = {
    {"metrics-address", "IP:PORT", "none", "where /metrics is served; none: nowhere"},
    {"probes-address", "IP:PORT", "none", "where /healthz and /readyz are served; none: nowhere"},
};

// `own` and the flags that both feeder and worker have. The names must outlive the result (literals do).
std::vector<Flag> with_shared_flags(std::vector<Flag> own);

// The value of --threads; 0: follow the CPU quota. Errors: InvalidArgument outside 0..1024.
Result<std::size_t> fixed_threads(const Flags& flags);
// `fixed`, or the number that the CPU quota allows at this moment.
std::size_t threads_now(std::size_t fixed);

executor::JobLabels job_labels(const Flags& flags);

// The programs' pages. Probes have a port and a thread of their own: they answer even if the metrics do not.
// Thread safety: a value.
class Pages {
 public:
  Pages(std::unique_ptr<http::Server> metrics, std::unique_ptr<http::Server> probes);
  Pages(Pages&&) noexcept;
  ~Pages();
  // 0: not served.
  std::uint16_t metrics_port() const;
  std::uint16_t probes_port() const;

 private:
  std::unique_ptr<http::Server> metrics_;
  std::unique_ptr<http::Server> probes_;
};

// Serves /metrics at --metrics-address, and /healthz and /readyz (503 with what `unready` says; "": ready) at
// --probes-address; nothing where that is "none". Errors: as http::Server::start.
Result<Pages> serve_pages(const Flags& flags, const std::shared_ptr<prometheus::Registry>& registry,
                          std::function<std::string()> unready);

// From here on SIGTERM and SIGINT are read from the descriptor that this returns. A peer that goes away is an error of
// the write. REQUIRES: called before any thread starts, so that all inherit it.
int block_signals();
// Waits so many milliseconds at most (-1: for ever), and no longer than until `other` is readable (-1: none). The
// signal's number, or 0.
int wait_for_signal(int signals, int milliseconds, int other = -1);

// Logs the error, if there is one. The exit status: 0, or `failed`.
int exit_status(std::string_view component, const Result<void>& result, int failed);

inline constexpr int kFailed = 1;
inline constexpr int kWrongUsage = 2;

}  // namespace sluice::program
