// How log lines (logging.h) are written: as text, or with SLUICE_LOG_FORMAT=json as objects for log stores:
//   {"time":"2026-11-21T08:00:00.123Z","level":"INFO","component":"feeder","message":"...","fields":{"address":"..."}}
// All values are texts.
#pragma once

namespace sluice {

enum class LogFormat { kText, kJson };

// Instead of the environment's, for tests. Thread safety: may be called from any thread.
void set_log_format(LogFormat format);

}  // namespace sluice
