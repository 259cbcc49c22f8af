// Structured log lines on stderr: `2026-11-21T08:00:00.123Z INFO feeder "worker connected" address=10.0.0.7:7471`.
//
// One line per event, key=value after the message, values quoted where they need it. Level from SLUICE_LOG
// (debug, info, warning, error; default info).
// Thread safety: all functions may be called from any thread; lines are never interleaved.
#pragma once

#include <concepts>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>

namespace sluice {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

struct LogField {
  std::string_view key;
  std::string value;

  LogField(std::string_view k, std::string_view v) : key(k), value(v) {}
  LogField(std::string_view k, const char* v) : key(k), value(v) {}
  LogField(std::string_view k, const std::string& v) : key(k), value(v) {}
  LogField(std::string_view k, bool v) : key(k), value(v ? "true" : "false") {}
  template <typename Number>
  requires std::integral<Number> || std::floating_point<Number> LogField(std::string_view k, Number v)
      : key(k), value(std::to_string(v)) {}
};

using LogFields = std::initializer_list<LogField>;

void log(LogLevel level, std::string_view component, std::string_view message, LogFields fields = {});

inline void log_debug(std::string_view component, std::string_view message, LogFields fields = {}) {
  log(LogLevel::kDebug, component, message, fields);
}
inline void log_info(std::string_view component, std::string_view message, LogFields fields = {}) {
  log(LogLevel::kInfo, component, message, fields);
}
inline void log_warning(std::string_view component, std::string_view message, LogFields fields = {}) {
  log(LogLevel::kWarning, component, message, fields);
}
inline void log_error(std::string_view component, std::string_view message, LogFields fields = {}) {
  log(LogLevel::kError, component, message, fields);
}

// Sends finished lines (without the newline) to `sink` instead of stderr; nullptr restores stderr. For tests.
void set_log_sink(std::function<void(std::string_view)> sink);

}  // namespace sluice
