#include "src/base/logging.h"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <mutex>
#include <utility>

#include "src/base/log_format.h"
#include "src/base/utf8.h"

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

std::atomic<LogFormat>& log_format() {
  static std::atomic<LogFormat> format = [] {
    const char* text = std::getenv("SLUICE_LOG_FORMAT");
    return text != nullptr && std::string_view(text) == "json" ? LogFormat::kJson : LogFormat::kText;
  }();
  return format;
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

std::string text_line(LogLevel level, std::string_view component, std::string_view message, LogFields fields) {
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
  return line;
}

// A byte that is part of no character becomes one of three bytes.
void append_json(std::string& line, std::string_view text) {
  line += '"';
  for (const char c : cut_text(text, 3 * text.size())) {
    if (c == '"' || c == '\\') line += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(c));
      line += escaped;
    } else {
      line += c;
    }
  }
  line += '"';
}

std::string json_line(LogLevel level, std::string_view component, std::string_view message, LogFields fields) {
  std::string line =
      "{\"time\":\"" + timestamp() + "\",\"level\":\"" + std::string(name_of(level)) + "\",\"component\":";
  append_json(line, component);
  line += ",\"message\":";
  append_json(line, message);
  line += ",\"fields\":{";
  const char* separator = "";
  for (const LogField& field : fields) {
    line += std::exchange(separator, ",");
    append_json(line, field.key);
    line += ':';
    append_json(line, field.value);
  }
  return line + "}}";
}

}  // namespace

void log(LogLevel level, std::string_view component, std::string_view message, LogFields fields) {
  if (level < threshold()) return;
  std::string line = log_format() == LogFormat::kJson ? json_line(level, component, message, fields)
                                                      : text_line(level, component, message, fields);
  std::lock_guard lock(sink_mutex);
  if (sink_override) {
    sink_override(line);
  } else {
    line += '\n';
    std::fwrite(line.data(), 1, line.size(), stderr);
  }
}

void set_log_format(LogFormat format) { log_format() = format; }

void set_log_sink(std::function<void(std::string_view)> sink) {
  std::lock_guard lock(sink_mutex);
  sink_override = std::move(sink);
}

}  // namespace sluice
