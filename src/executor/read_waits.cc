#include "src/executor/read_waits.h"

#include <algorithm>
#include <mutex>
#include <utility>

namespace sluice::executor {

class ReadWaits::Count {
 public:
  Count(std::function<std::size_t()> threads, std::function<void(double)> blocked, Now now)
      : threads_(std::move(threads)), blocked_(std::move(blocked)), now_(std::move(now)), since_(now_()) {}

  void begin() { change(+1); }
  void end() { change(-1); }
  void close() {
    std::lock_guard lock(mutex_);
    is_closed_ = true;
  }

 private:
  void change(int more) {
    std::lock_guard lock(mutex_);
    if (is_closed_) return;
    const auto now = now_();
    const double seconds = std::chrono::duration<double>(now - std::exchange(since_, now)).count();
    if (waiting_ > 0) blocked_(seconds * static_cast<double>(std::min(waiting_, threads_())));
    waiting_ += static_cast<std::size_t>(more);
  }

  const std::function<std::size_t()> threads_;
  const std::function<void(double)> blocked_;
  const Now now_;
  std::mutex mutex_;
  std::chrono::steady_clock::time_point since_;  // the last change
  std::size_t waiting_ = 0;
  bool is_closed_ = false;
};

class ReadWaits::Counted final : public pipeline::ReadAhead {
 public:
  Counted(std::shared_ptr<ReadAhead> ahead, std::shared_ptr<Count> count)
      : ahead_(std::move(ahead)), count_(std::move(count)) {}

  bool when_come(std::function<void()> come) override {
    count_->begin();
    const bool is_coming = ahead_->when_come([count = count_, come = std::move(come)] {
      count->end();
      come();
    });
    if (!is_coming) count_->end();
    return is_coming;
  }

 private:
  const std::shared_ptr<ReadAhead> ahead_;
  const std::shared_ptr<Count> count_;
};

ReadWaits::ReadWaits(std::function<std::size_t()> threads, std::function<void(double)> blocked, Now now)
    : count_(std::make_shared<Count>(std::move(threads), std::move(blocked), std::move(now))) {}

ReadWaits::~ReadWaits() { count_->close(); }

std::shared_ptr<pipeline::ReadAhead> ReadWaits::counted(std::shared_ptr<pipeline::ReadAhead> ahead) const {
  if (ahead == nullptr) return nullptr;
  return std::make_shared<Counted>(std::move(ahead), count_);
}

}  // namespace sluice::executor
