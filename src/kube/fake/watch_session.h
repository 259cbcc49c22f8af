// One open watch of the fake API server.
//
// The server never blocks in it. The connection asks for the next line when it likes, so that a test decides when each
// event arrives. Events of one watch come in the order of their revisions.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "src/kube/fake/api_server.h"

namespace sluice::kube::fake {

// Thread safety: all methods may be called from any thread. REQUIRES: the server outlives the session.
class WatchSession {
 public:
  enum class State { kOpen, kEnded, kBroken };

  ~WatchSession();

  // The next event as a line of JSON with its end; nullopt when there is none (yet).
  std::optional<std::string> next_line();
  bool has_line();

  // After kEnded or kBroken no more lines come.
  State state() const;

  // The server ends the watch: cleanly (its time is over), in the middle of nothing, or with an ERROR event.
  void end();
  void break_off();
  void fail(const Reply& status);
  void bookmark();

 private:
  friend class ApiServer;
  WatchSession(ApiServer& server, const Call& call, Selector selector, const CacheView* view);

  bool begin(bool says_where_they_end);
  void look_from(std::uint64_t revision);
  void enqueue(const char* type, const std::string& object);
  void enqueue_bookmark(Json metadata);
  void pull();
  bool has_line_locked();

  ApiServer& server_;
  const Kind& kind_;
  const std::string namespace_;
  const Selector selector_;
  const CacheView* view_;
  const bool wants_bookmarks_;
  bool waits_to_begin_ = false;  // until the view is as recent as was asked for
  std::uint64_t position_ = 0;   // revision up to which history has been looked at
  std::size_t next_change_ = 0;
  std::deque<std::string> lines_;
  State state_ = State::kOpen;
};

}  // namespace sluice::kube::fake
