// What went over a transport, kept as data: to see in a test what was asked, to write a server's behaviour down once
// and play it back without the server.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "src/http/transport.h"

namespace sluice::http {

struct RecordedExchange {
  Request request;  // without its Authorization header
  bool streamed = false;
  std::vector<std::string> pieces;  // of a stream's body, as they reached the sink
  Result<Response> outcome = Response{};
};

// Thread safety: all methods may be called from any thread. Invariant: holds at most max_bytes of bodies; what comes
// after that is counted and thrown away.
class Recording {
 public:
  explicit Recording(std::size_t max_bytes = 64u << 20) : max_bytes_(max_bytes) {}

  void add(RecordedExchange exchange);
  std::vector<RecordedExchange> exchanges() const;
  std::size_t dropped() const;

  // One JSON object per line. Bodies are text: bytes that are no UTF-8 are replaced.
  std::string to_json_lines() const;

  // Errors: DataLoss with the number of a line that is none of to_json_lines().
  static Result<std::shared_ptr<Recording>> parse(std::string_view json_lines);

 private:
  const std::size_t max_bytes_;
  mutable std::mutex mutex_;
  std::vector<RecordedExchange> exchanges_;
  std::size_t bytes_ = 0;
  std::size_t dropped_ = 0;
};

// Sends through `inner` and writes down every exchange when it has ended.
std::shared_ptr<Transport> with_recording(std::shared_ptr<Transport> inner, std::shared_ptr<Recording> recording);

// Answers each request as the first unused exchange of the same method, target and body was answered; a stream in the
// same pieces (a unary answer in one). Internal for a request that was not recorded.
std::shared_ptr<Transport> replay(const Recording& recording);

}  // namespace sluice::http
