#include "src/kube/fake/watch_session.h"

#include <algorithm>
#include <charconv>

#include "src/kube/json_text.h"

namespace sluice::kube::fake {

WatchSession::WatchSession(ApiServer& server, const Call& call, Selector selector, const CacheView* view)
    : server_(server),
      kind_(*call.kind),
      namespace_(call.key.namespace_),
      selector_(std::move(selector)),
      view_(view),
      wants_bookmarks_(call.option("allowWatchBookmarks") == "true") {
  const std::string from = call.option("resourceVersion");
  std::from_chars(from.data(), from.data() + from.size(), position_);
  const bool streams_list = call.option("sendInitialEvents") == "true";
  server_.sessions_.push_back(this);
  if (!streams_list && position_ != 0 && position_ < server_.storage_.compacted_revision()) {
    fail(history_expired("too old resource version: " + from + " (" +
                         std::to_string(server_.storage_.compacted_revision()) + ")"));
    return;
  }
  if (streams_list || position_ == 0)
    waits_to_begin_ = !begin(streams_list);
  else
    look_from(position_);
}

WatchSession::~WatchSession() {
  std::lock_guard lock(server_.mutex_);
  server_.sessions_.remove(this);
}

// The current state as ADDED events; a watch that replaces a list says where they end. False: not yet, because this
// replica is behind the most recent state.
bool WatchSession::begin(bool says_where_they_end) {
  position_ = server_.storage_.revision();
  if (view_ != nullptr && view_->frozen_at && *view_->frozen_at < position_) {
    if (says_where_they_end && !view_->lies) return false;
    position_ = *view_->frozen_at;
  }
  look_from(position_);
  for (const auto& [key, object] : server_.storage_.state_at(kind_, position_)) {
    const bool inside = namespace_.empty() || key.namespace_ == namespace_;
    if (inside && selector_.matches(*object)) enqueue("ADDED", text_of(*object));
  }
  if (!says_where_they_end) return true;
  enqueue_bookmark({{"annotations", {{"k8s.io/initial-events-end", "true"}}}});
  return true;
}

void WatchSession::look_from(std::uint64_t revision) {
  const auto& history = server_.storage_.history();
  const auto first =
      std::upper_bound(history.begin(), history.end(), revision,
                       [](std::uint64_t wanted, const StoredChange& change) { return wanted < change.revision; });
  next_change_ = static_cast<std::size_t>(first - history.begin());
}

void WatchSession::enqueue(const char* type, const std::string& object) {
  lines_.push_back(std::string("{\"type\":\"") + type + "\",\"object\":" + object + "}\n");
}

void WatchSession::enqueue_bookmark(Json metadata) {
  metadata["resourceVersion"] = std::to_string(position_);
  const Json object = {{"kind", kind_.name}, {"apiVersion", kind_.api_version()}, {"metadata", std::move(metadata)}};
  enqueue("BOOKMARK", text_of(object));
}

// Looks through the history until there is something to say.
void WatchSession::pull() {
  if (waits_to_begin_) waits_to_begin_ = !begin(true);
  if (waits_to_begin_) return;
  const auto& history = server_.storage_.history();
  while (lines_.empty() && state_ == State::kOpen && next_change_ < history.size()) {
    const StoredChange& change = history[next_change_];
    if (view_ != nullptr && view_->frozen_at && change.revision > *view_->frozen_at) return;
    ++next_change_;
    position_ = change.revision;
    if (change.kind != &kind_ || (!namespace_.empty() && change.key.namespace_ != namespace_)) continue;
    const bool before = change.before != nullptr && selector_.matches(*change.before);
    const bool after = !change.deleted && selector_.matches(*change.after);
    if (after)
      enqueue(before ? "MODIFIED" : "ADDED", change.after_text());
    else if (before)
      enqueue("DELETED", change.after_text());
  }
}

bool WatchSession::has_line_locked() {
  if (lines_.empty()) pull();
  return !lines_.empty();
}

bool WatchSession::has_line() {
  std::lock_guard lock(server_.mutex_);
  return has_line_locked();
}

std::optional<std::string> WatchSession::next_line() {
  std::lock_guard lock(server_.mutex_);
  if (!has_line_locked()) return std::nullopt;
  std::string line = std::move(lines_.front());
  lines_.pop_front();
  return line;
}

WatchSession::State WatchSession::state() const {
  std::lock_guard lock(server_.mutex_);
  return state_;
}

void WatchSession::end() {
  std::lock_guard lock(server_.mutex_);
  if (state_ == State::kOpen) state_ = State::kEnded;
  server_.changed();
}

void WatchSession::break_off() {
  std::lock_guard lock(server_.mutex_);
  state_ = State::kBroken;
  lines_.clear();
  server_.changed();
}

void WatchSession::fail(const Reply& status) {
  enqueue("ERROR", text_of(*status.body));
  state_ = State::kEnded;
}

void WatchSession::bookmark() {
  if (!wants_bookmarks_ || state_ != State::kOpen) return;
  pull();
  if (!lines_.empty()) return;  // it would overtake an event
  enqueue_bookmark(Json::object());
}

std::unique_ptr<WatchSession> ApiServer::watch(const http::Request& request, const CacheView* view,
                                               http::Response& refusal) {
  std::lock_guard lock(mutex_);
  const Result<Call> call = understand(request, kinds_);
  Reply reply = refuse(404, "NotFound", "the server could not find the requested resource");
  if (call.ok() && call->is_watch()) {
    Result<Selector> selector = Selector::parse(call->option("labelSelector"), call->option("fieldSelector"));
    if (selector.ok()) return std::unique_ptr<WatchSession>(new WatchSession(*this, *call, *selector, view));
    reply = refuse(400, "BadRequest", selector.error().message());
  }
  refusal = {reply.status, {{"Content-Type", "application/json"}}, text_of(*reply.body)};
  return nullptr;
}

void ApiServer::send_bookmarks() {
  std::lock_guard lock(mutex_);
  for (WatchSession* session : sessions_) session->bookmark();
  changed();
}

}  // namespace sluice::kube::fake
