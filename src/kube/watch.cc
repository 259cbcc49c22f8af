#include "src/kube/watch.h"

#include <optional>
#include <utility>

#include "src/base/utf8.h"
#include "src/kube/json_text.h"
#include "src/kube/status.h"

namespace sluice::kube {
namespace {

// An object may have 1.5 MiB in etcd (its default request limit) and a little more as JSON.
constexpr std::size_t kMaxLineBytes = 16u << 20;

}  // namespace

LineFramer::LineFramer(std::size_t max_line_bytes, std::function<Result<void>(std::string_view)> on_line)
    : max_line_bytes_(max_line_bytes), on_line_(std::move(on_line)) {}

Result<void> LineFramer::on_bytes(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    const std::string_view piece = bytes.substr(0, end);
    if (partial_.size() + piece.size() > max_line_bytes_) {
      return Error(ErrorCode::kDataLoss,
                   "a line of the watch is longer than " + std::to_string(max_line_bytes_) + " bytes");
    }
    if (end == std::string_view::npos) {
      partial_.append(piece);
      return {};
    }
    bytes.remove_prefix(end + 1);
    if (partial_.empty()) {  // the common case: the line lies in the piece as a whole
      SLUICE_TRY_VOID(emit(piece));
      continue;
    }
    partial_.append(piece);
    const std::string line = std::exchange(partial_, {});
    SLUICE_TRY_VOID(emit(line));
  }
  return {};
}

Result<void> LineFramer::emit(std::string_view line) {
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  return line.empty() ? Result<void>() : on_line_(line);
}

Result<WatchEvent> parse_watch_event(std::string_view line) {
  const auto malformed = [line] { return Error(ErrorCode::kDataLoss, "no watch event: " + quote_body(line, 200)); };
  std::optional<Json> parsed = parse_json(line, kManagedFieldsOfEvent);
  if (!parsed || !parsed->is_object()) return malformed();
  const auto type = parsed->find("type");
  const auto object = parsed->find("object");
  if (type == parsed->end() || !type->is_string() || object == parsed->end() || !object->is_object())
    return malformed();

  const auto& name = type->get_ref<const std::string&>();
  if (name == "ERROR") return error_of_status("watch", *object);
  WatchEvent event;
  if (name == "ADDED") {
    event.type = WatchEventType::kAdded;
  } else if (name == "MODIFIED") {
    event.type = WatchEventType::kModified;
  } else if (name == "DELETED") {
    event.type = WatchEventType::kDeleted;
  } else if (name == "BOOKMARK") {
    event.type = WatchEventType::kBookmark;
  } else {
    return malformed();
  }
  event.object = std::move(*object);
  return event;
}

WatchDecoder::WatchDecoder(std::string what, WatchHandler handler)
    : what_(std::move(what)),
      handler_(std::move(handler)),
      framer_(kMaxLineBytes, [this](std::string_view line) -> Result<void> {
        SLUICE_TRY(WatchEvent event, parse_watch_event(line));
        return handler_(std::move(event));
      }) {}

Result<void> WatchDecoder::on_bytes(std::string_view bytes) { return framer_.on_bytes(bytes); }

Result<void> WatchDecoder::end(const Result<http::Response>& response) const {
  if (!response.ok()) return response.error().with_context(what_);
  if (!response->succeeded()) return error_of_response(what_, response->status, response->body);
  if (framer_.partial_line().empty()) return {};
  // A page of a proxy, whose status is 200 and which has no line's end.
  if (!framer_.partial_line().starts_with('{'))
    return Error(ErrorCode::kDataLoss, what_ + ": no watch event: " + quote_body(framer_.partial_line(), 200));
  return unavailable(what_ + ": ended in the middle of an event");
}

}  // namespace sluice::kube
