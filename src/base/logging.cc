#include "src/base/logging.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <mutex>

namespace sluice {
namespace {

std::mutex sink_mutex;
std::function<void(std::string_view)> sink_override;

LogLevel threshold() {
  static const LogLevel level = [] {
    const char* text = std::getenv("SLUICE_LOG");
    const std::string_view name = text ? text : "info";
    if (name == "debug") return LogLevel::kDebug;
    if (name == "warning") return LogLevel::kWarning;
    if (name == "error") return LogLevel::kError;
    return LogLevel::kInfo;
  }();
  return level;
}

std::string_view name_of(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug: return "DEBUG";
    case LogLevel::kInfo: return "INFO";
    case LogLevel::kWarning: return "WARNING";
    case LogLevel::kError: return "ERROR";
  }
  return "?";
}

std::string timestamp() {
  const auto now = std::chrono::system_clock::now();
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  const auto milliseconds =
      std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count() % 1000;
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char date[32];
  std::strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &parts);
  char text[48];
  std::snprintf(text, sizeof text, "%s.%03dZ", date, static_cast<int>(milliseconds));
  return text;
}

// A quote or a newline in a value must not be able to forge a second field or line.
void append_quoted(std::string& line, std::string_view text) {
  line += '"';
  for (char c : text) {
    if (c == '"' || c == '\\') line += '\\';
    if (c == '\n') {
      line += "\\n";
    } else {
      line += c;
    }
  }
  line += '"';
}

bool needs_quotes(std::string_view text) {
  return text.empty() || text.find_first_of(" \"\\\n=") != std::string_view::npos;
}

}  // namespace

void log(LogLevel level, std::string_view component, std::string_view message, LogFields fields) {
  if (level < threshold()) return;
  std::string line = timestamp();
  line.append(" ").append(name_of(level)).append(" ").append(component).append(" ");
  append_quoted(line, message);
  for (const LogField& field : fields) {
    line.append(" ").append(field.key).append("=");
    if (needs_quotes(field.value)) {
      append_quoted(line, field.value);
    } else {
      line += field.value;
    }
  }
  std::lock_guard lock(sink_mutex);
  if (sink_override) {
    sink_override(line);
  } else {
    line += '\n';
    std::fwrite(line.data(), 1, line.size(), stderr);
  }
}

void set_log_sink(std::function<void(std::string_view)> sink) {
  std::lock_guard lock(sink_mutex);
  sink_override = std::move(sink);
}

}  // namespace sluice
