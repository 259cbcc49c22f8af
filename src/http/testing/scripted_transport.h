// A Transport that answers from a script and remembers the requests.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "src/http/transport.h"

namespace sluice::http::testing {

// What one stream() call does: hand over the chunks, then end cleanly, fail, or stay silent until stopped.
struct ScriptedStream {
  std::vector<std::string> chunks;
  enum class Ending { kClean, kFail, kSilence } ending = Ending::kClean;
  Error failure = unavailable("connection lost");  // with kFail
};

// Thread safety: all methods may be called from any thread. Answers are given in the order they were scripted;
// a request beyond the script fails with Internal, so that a test sees it. A responder, if set, answers instead of the
// script whatever it does not return nullopt for.
class ScriptedTransport final : public Transport {
 public:
  using Answer = std::variant<Response, Error, ScriptedStream>;
  using Responder = std::function<std::optional<Answer>(const Request&)>;

  void answer(Answer answer) {
    std::lock_guard lock(mutex_);
    script_.push_back(std::move(answer));
    changed_.notify_all();
  }
  void answer(int status, std::string body, Headers headers = {}) {
    answer(Response{status, std::move(headers), std::move(body)});
  }
  void respond_with(Responder responder) {
    std::lock_guard lock(mutex_);
    responder_ = std::move(responder);
  }

  std::vector<Request> requests() const {
    std::lock_guard lock(mutex_);
    return requests_;
  }

  // Blocks until `count` requests have been made in total (true), or ten seconds of real time have passed (false).
  bool wait_for_requests(std::size_t count) const {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(10), [&] { return requests_.size() >= count; });
  }

  Result<Response> send(const Request& request, std::chrono::milliseconds timeout, std::stop_token stop) override {
    if (stop.stop_requested()) return Error(ErrorCode::kCancelled, "stopped");
    Answer answer = take(request);
    if (auto* response = std::get_if<Response>(&answer)) return std::move(*response);
    if (auto* error = std::get_if<Error>(&answer)) return std::move(*error);
    const auto& script = std::get<ScriptedStream>(answer);
    if (script.ending == ScriptedStream::Ending::kFail) return script.failure;
    if (script.ending == ScriptedStream::Ending::kSilence) return wait_in_vain(timeout, stop);
    Response whole{200, {}, ""};
    for (const auto& chunk : script.chunks) whole.body += chunk;
    return whole;
  }

  Result<Response> stream(const Request& request, ByteSink& sink, std::chrono::milliseconds idle_limit,
                          std::stop_token stop) override {
    if (stop.stop_requested()) return Error(ErrorCode::kCancelled, "stopped");
    Answer answer = take(request);
    if (auto* response = std::get_if<Response>(&answer)) {
      if (response->succeeded()) SLUICE_TRY_VOID(sink.on_bytes(std::exchange(response->body, {})));
      return std::move(*response);
    }
    if (auto* error = std::get_if<Error>(&answer)) return std::move(*error);
    const auto& script = std::get<ScriptedStream>(answer);
    for (const auto& chunk : script.chunks) {
      if (auto taken = sink.on_bytes(chunk); !taken.ok()) return taken.error();
    }
    if (script.ending == ScriptedStream::Ending::kFail) return script.failure;
    if (script.ending == ScriptedStream::Ending::kSilence) return wait_in_vain(idle_limit, stop);
    return Response{200, {}, ""};
  }

 private:
  Error wait_in_vain(std::chrono::milliseconds limit, const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, stop, limit, [] { return false; });
    return stop.stop_requested() ? Error(ErrorCode::kCancelled, "stopped")
                                 : Error(ErrorCode::kDeadlineExceeded, "silent for too long");
  }

  Answer take(const Request& request) {
    std::unique_lock lock(mutex_);
    requests_.push_back(request);
    changed_.notify_all();
    if (responder_) {
      auto responder = responder_;
      lock.unlock();
      if (auto answer = responder(request)) return std::move(*answer);
      lock.lock();
    }
    if (script_.empty()) return internal_error("no answer scripted for " + request.method + " " + request.target);
    Answer answer = std::move(script_.front());
    script_.pop_front();
    return answer;
  }

  mutable std::mutex mutex_;
  mutable std::condition_variable_any changed_;
  std::deque<Answer> script_;
  Responder responder_;
  std::vector<Request> requests_;
};

}  // namespace sluice::http::testing
