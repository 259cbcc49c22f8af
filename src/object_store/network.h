// HTTP and time as the client of object stores sees them: one thread, on which everything is called back.
//
// Thread safety: post() may be called from any thread; all other methods on the network's thread only, which is the one
// that calls back.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/clock.h"
#include "src/base/result.h"
#include "src/object_store/object_url.h"
#include "src/object_store/sigv4.h"

namespace sluice::object_store {

// Whose certificates are trusted; "": the system's.
struct Trust {
  std::string file;    // of certificates, PEM
  std::string folder;  // of certificates by their hashes

  friend auto operator<=>(const Trust&, const Trust&) = default;
};

struct HttpRequest {
  Target target;
  Trust trust;
  std::string method = "GET";
  Headers headers = {};  // with Host
  std::string body = {};
  std::vector<std::uint8_t> room = {};  // any bytes, in whose place the answer's may be: fresh memory costs its zeroing
  std::size_t answer_bytes_max = 0;     // of the body; an answer that says or has more is cut off
  Clock::Duration time = std::chrono::seconds(30);  // for all of the answer
};

struct HttpAnswer {
  int status = 0;
  std::string reason = {};
  Headers headers = {};
  std::vector<std::uint8_t> body = {};
  bool is_cut_off = false;  // there was more than answer_bytes_max, or it said so

  // "" where there is none; names in any case.
  std::string_view header(std::string_view name) const;
};

class Network {
 public:
  using Done = std::function<void(Result<HttpAnswer>)>;
  // Ends a request that is under way: its `done` is not called, and its connection not used again. Afterwards nothing.
  using Cancel = std::function<void()>;

  virtual ~Network() = default;

  // Calls `done` once, not within ask(), unless it is cancelled or the network ends before. Unavailable: no whole
  // answer came; the message says what happened and nothing of the request.
  virtual Cancel ask(HttpRequest request, Done done) = 0;

  virtual void after(Clock::Duration wait, std::function<void()> then) = 0;

  virtual void post(std::function<void()> work) = 0;

  // Nothing is called back from here on, and all that was to be called is forgotten. Not on the network's thread.
  virtual void end() = 0;
};

}  // namespace sluice::object_store
