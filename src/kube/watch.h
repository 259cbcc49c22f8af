// The wire format of a watch: JSON objects, one per line, split over reads wherever the network likes.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "src/base/result.h"
#include "src/http/transport.h"
#include "src/kube/client.h"

namespace sluice::kube {

struct WatchEvent {
  WatchEventType type = WatchEventType::kAdded;
  Json object;  // of a bookmark only metadata.resourceVersion matters
};

// Cuts a byte stream into lines. Work and memory are linear in the bytes: no byte is searched twice.
// Thread safety: none. Invariant: holds at most one unfinished line, never longer than max_line_bytes.
class LineFramer final : public http::ByteSink {
 public:
  // `on_line` gets each line without its end ("\n" or "\r\n"); empty lines are skipped. Its error ends the stream.
  LineFramer(std::size_t max_line_bytes, std::function<Result<void>(std::string_view)> on_line);

  // Errors: DataLoss for a line beyond the bound; on_line's own.
  Result<void> on_bytes(std::string_view bytes) override;

  // What has come of a line that has no end yet.
  const std::string& partial_line() const { return partial_; }

 private:
  Result<void> emit(std::string_view line);

  std::size_t max_line_bytes_;
  std::function<Result<void>(std::string_view)> on_line_;
  std::string partial_;
};

// One line of a watch, without the object's metadata.managedFields. An ERROR event is the error of its Status (Gone for
// 410).
// Errors: DataLoss for a line that is no event.
Result<WatchEvent> parse_watch_event(std::string_view line);

// A watch's bytes as events: what Client::watch puts between its transport and its handler.
// Thread safety: none.
class WatchDecoder final : public http::ByteSink {
 public:
  // `what` names the watch in errors: "watch Pod a/*".
  WatchDecoder(std::string what, WatchHandler handler);

  // Errors: DataLoss for a line that is no event, an ERROR event's own, the handler's.
  Result<void> on_bytes(std::string_view bytes) override;

  // The meaning of such an end of a watch: ok when the server ended it between two events.
  Result<void> end(const Result<http::Response>& response) const;

 private:
  std::string what_;
  WatchHandler handler_;
  LineFramer framer_;
};

}  // namespace sluice::kube
