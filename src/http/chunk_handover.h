// Private to cpprest_transport.cc: a cpprestsdk stream buffer without a buffer.
//
// cpprestsdk writes a response's body into a stream buffer as fast as the network delivers it. Its own buffers grow
// without bound when the reader is slow. This one has a bound. Pieces go into a buffer of 256 KiB, from which the
// reader takes everything at once: waking it for every piece would cost more than most events do. A piece that does not
// fit is handed over in place, and its write completes only when the reader is done with it. Only then cpprestsdk asks
// the socket for more, so TCP slows the server down. The buffer and one piece (one chunk of a chunked body, else 64
// KiB) are in memory, no more.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

#include <cpprest/astreambuf.h>

#include "src/base/result.h"
#include "src/http/transport.h"

namespace sluice::http {

// What cpprestsdk's threads tell the thread that waits in send() or stream().
// Thread safety: all methods may be called from any thread; next() from one only.
class Exchange {
 public:
  using Deadline = std::chrono::steady_clock::time_point;
  struct Piece {
    const std::uint8_t* data = nullptr;
    std::size_t size = 0;
    pplx::task_completion_event<std::size_t> taken;

    std::string_view bytes() const { return {reinterpret_cast<const char*>(data), size}; }
  };
  // What next() waited for: the head is there before any piece; the end after all of them.
  struct Progress {
    enum class Kind { kHead, kBytes, kPiece, kEnd, kFailed, kDeadline, kStopped } kind;
    std::string bytes = {};           // kBytes
    std::optional<Piece> piece = {};  // kPiece; its `taken` must be set
  };

  // Status and headers. Not cpprestsdk's response: it holds the stream buffer, which holds this Exchange.
  void on_head(Response head) {
    std::lock_guard lock(mutex_);
    head_ = std::move(head);
    changed_.notify_all();
  }

  void on_end() {
    std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }

  void on_failure(Error error) {
    std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::move(error);
    changed_.notify_all();
  }

  // The returned task completes when there is room for more: at once but for a reader that is slow.
  pplx::task<std::size_t> on_piece(const std::uint8_t* data, std::size_t size) {
    std::lock_guard lock(mutex_);
    if (abandoned_) return pplx::task_from_result(size);
    const bool fits = size <= kMaxBufferedBytes - buffered_.size();
    const bool is_first = buffered_.empty();  // else the reader knows already
    if (fits) buffered_.append(reinterpret_cast<const char*>(data), size);
    if (!fits) piece_ = Piece{data, size, {}};
    if (is_first) changed_.notify_all();
    return fits ? pplx::task_from_result(size) : pplx::create_task(piece_->taken);
  }

  Progress next(Deadline deadline, std::stop_token stop) {
    using Kind = Progress::Kind;
    std::unique_lock lock(mutex_);
    changed_.wait_until(lock, stop, deadline, [this] { return ready(); });
    if (stop.stop_requested()) return {Kind::kStopped};
    if (!ready()) return {Kind::kDeadline};
    if (head_ && !head_taken_) {
      head_taken_ = true;
      return {Kind::kHead};
    }
    if (!buffered_.empty() && head_) return {Kind::kBytes, std::exchange(buffered_, {})};
    if (piece_ && head_) return {Kind::kPiece, {}, std::exchange(piece_, std::nullopt)};
    return {failure_ ? Kind::kFailed : Kind::kEnd};
  }

  // REQUIRES: next() returned kHead.
  const Response& head() const { return *head_; }

  Error failure() const {
    std::lock_guard lock(mutex_);
    return failure_.value_or(internal_error("no failure"));
  }

  // The reader leaves: pieces that still come are thrown away, so that cpprestsdk's side can finish.
  void abandon() {
    std::optional<Piece> piece;
    {
      std::lock_guard lock(mutex_);
      abandoned_ = true;
      piece = std::exchange(piece_, std::nullopt);
      buffered_ = {};
    }
    if (piece) piece->taken.set(piece->size);
  }

 private:
  static constexpr std::size_t kMaxBufferedBytes = 256u << 10;

  bool ready() const { return (head_ && (!head_taken_ || !buffered_.empty() || piece_ || ended_)) || failure_; }

  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::optional<Response> head_;
  bool head_taken_ = false;
  std::string buffered_;
  std::optional<Piece> piece_;  // the piece after buffered_
  bool ended_ = false;
  bool abandoned_ = false;
  std::optional<Error> failure_;
};

// The write end as cpprestsdk wants to see it. Everything but writing is refused.
class ChunkHandover final : public Concurrency::streams::details::streambuf_state_manager<std::uint8_t> {
 public:
  explicit ChunkHandover(std::shared_ptr<Exchange> exchange)
      : streambuf_state_manager(std::ios_base::out), exchange_(std::move(exchange)) {}

  bool can_seek() const override { return false; }
  bool has_size() const override { return false; }
  std::size_t buffer_size(std::ios_base::openmode) const override { return 0; }
  void set_buffer_size(std::size_t, std::ios_base::openmode) override {}
  std::size_t in_avail() const override { return 0; }
  pos_type getpos(std::ios_base::openmode) const override { return static_cast<pos_type>(traits::eof()); }
  pos_type seekpos(pos_type, std::ios_base::openmode) override { return static_cast<pos_type>(traits::eof()); }
  pos_type seekoff(off_type, std::ios_base::seekdir, std::ios_base::openmode) override {
    return static_cast<pos_type>(traits::eof());
  }
  bool acquire(std::uint8_t*& data, std::size_t& count) override {
    data = nullptr;
    count = 0;
    return false;
  }
  void release(std::uint8_t*, std::size_t) override {}

 protected:
  pplx::task<std::size_t> _putn(const std::uint8_t* data, std::size_t count) override {
    return exchange_->on_piece(data, count);
  }
  pplx::task<bool> _sync() override { return pplx::task_from_result(true); }
  std::uint8_t* _alloc(std::size_t) override { return nullptr; }
  void _commit(std::size_t) override {}

  pplx::task<int_type> _putc(std::uint8_t) override { return refused(); }
  pplx::task<int_type> _bumpc() override { return refused(); }
  int_type _sbumpc() override { return traits::eof(); }
  pplx::task<int_type> _getc() override { return refused(); }
  int_type _sgetc() override { return traits::eof(); }
  pplx::task<int_type> _nextc() override { return refused(); }
  pplx::task<int_type> _ungetc() override { return refused(); }
  pplx::task<std::size_t> _getn(std::uint8_t*, std::size_t) override { return pplx::task_from_result<std::size_t>(0); }
  std::size_t _scopy(std::uint8_t*, std::size_t) override { return 0; }

 private:
  static pplx::task<int_type> refused() { return pplx::task_from_result<int_type>(traits::eof()); }

  std::shared_ptr<Exchange> exchange_;
};

}  // namespace sluice::http
