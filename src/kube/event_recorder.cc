#include "src/kube/event_recorder.h"

#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <tuple>
#include <utility>

#include <nlohmann/json.hpp>

#include "src/base/guarded.h"
#include "src/base/logging.h"
#include "src/base/utf8.h"
#include "src/kube/timestamp.h"

namespace sluice::kube {
namespace {

constexpr std::size_t kMaxNoteBytes = 1024;  // of the API
constexpr std::size_t kMaxSeries = 4096;     // remembered at once
constexpr auto kSeriesWriteInterval = std::chrono::minutes(1);

const char* name_of(EventType type) { return type == EventType::kWarning ? "Warning" : "Normal"; }

}  // namespace

class EventRecorder::Implementation {
 public:
  Implementation(const Client& client, const Clock& clock, EventRecorderOptions options)
      : client_(client), clock_(clock), options_(std::move(options)) {}

  void start() {
    thread_ = std::jthread([this](std::stop_token stop) { run(stop); });
  }

  bool step(std::stop_token stop) {
    Pending pending;
    {
      std::lock_guard lock(mutex_);
      if (queue_.empty()) return false;
      pending = std::move(queue_.front());
      queue_.pop_front();
    }
    write(pending, std::move(stop));
    return true;
  }

  void record(Event event) {
    Pending pending{std::move(event), clock_.now(), clock_.wall_now()};
    std::lock_guard lock(mutex_);
    if (queue_.size() >= options_.queue_capacity) {
      ++dropped_;
      return;
    }
    queue_.push_back(std::move(pending));
    changed_.notify_one();
  }

  std::uint64_t dropped() const { return dropped_; }

 private:
  struct Pending {
    Event event;
    Clock::TimePoint time;
    Clock::WallTimePoint wall_time;
  };
  // What makes two events repetitions of each other. The note may differ: numbers in it change.
  using Kind = std::tuple<std::string, ObjectKey, std::string, EventType, std::string, std::string>;
  struct Series {
    ObjectKey key;  // of the Event object
    int count = 1;
    int written_count = 1;
    Clock::TimePoint last_seen;
    Clock::TimePoint last_written;
  };

  void run(std::stop_token stop) {
    for (;;) {
      {
        std::unique_lock lock(mutex_);
        if (!changed_.wait(lock, stop, [this] { return !queue_.empty(); }) || stop.stop_requested()) return;
      }
      const auto written = guarded(ErrorCode::kInternal, "event", [&] { step(stop); });
      if (!written.ok()) log_warning("kube", "event not written", {{"error", written.error().to_string()}});
    }
  }

  void write(const Pending& pending, std::stop_token stop) {
    const Event& event = pending.event;
    const Kind kind{event.resource.kind, event.key, event.uid, event.type, event.reason, event.action};
    const auto known = series_.find(kind);
    if (known != series_.end() && pending.time - known->second.last_seen < options_.series_idle) {
      return repeat(known->second, pending, stop);
    }
    forget_idle(pending.time);
    const Json object = first_event(pending);
    const ObjectKey key{event_namespace(event), key_of(object).name};
    const auto created = client_.create(kEvents, key.namespace_, object, "", stop);
    if (!created.ok()) {
      if (!stop.stop_requested()) log_warning("kube", "event not written", {{"error", created.error().to_string()}});
      return;  // the next one of this kind is a first one again
    }
    series_.insert_or_assign(kind, Series{key, 1, 1, pending.time, pending.time});
  }

  void repeat(Series& series, const Pending& pending, std::stop_token stop) {
    ++series.count;
    series.last_seen = pending.time;
    const bool is_second = series.written_count == 1;
    if (!is_second && pending.time - series.last_written < kSeriesWriteInterval) return;
    // Everything else of an event is immutable, its note included.
    const Json patch{{"series", {{"count", series.count}, {"lastObservedTime", format_microtime(pending.wall_time)}}}};
    const auto patched = client_.merge_patch(kEvents, series.key, patch, "", "", stop);
    if (patched.ok()) {
      series.written_count = series.count;
      series.last_written = pending.time;
    } else if (!stop.stop_requested()) {
      log_warning("kube", "event series not written", {{"error", patched.error().to_string()}});
    }
  }

  void forget_idle(Clock::TimePoint now) {
    std::erase_if(series_, [&](const auto& entry) { return now - entry.second.last_seen >= options_.series_idle; });
    if (series_.size() >= kMaxSeries) series_.clear();
  }

  // Cluster-scoped objects have their events in "default".
  static std::string event_namespace(const Event& event) {
    return event.key.namespace_.empty() ? "default" : event.key.namespace_;
  }

  Json first_event(const Pending& pending) {
    const Event& event = pending.event;
    char suffix[24];
    const auto nanos =
        std::chrono::duration_cast<std::chrono::nanoseconds>(pending.wall_time.time_since_epoch()).count();
    std::snprintf(suffix, sizeof suffix, ".%016llx", static_cast<unsigned long long>(nanos) + names_++);
    Json regarding{
        {"apiVersion", event.resource.api_version()}, {"kind", event.resource.kind}, {"name", event.key.name}};
    if (!event.key.namespace_.empty()) regarding["namespace"] = event.key.namespace_;
    if (!event.uid.empty()) regarding["uid"] = event.uid;
    return {{"metadata", {{"name", event.key.name + suffix}, {"namespace", event_namespace(event)}}},
            {"eventTime", format_microtime(pending.wall_time)},
            {"reportingController", options_.controller},
            {"reportingInstance", options_.instance},
            {"regarding", std::move(regarding)},
            {"type", name_of(event.type)},
            {"reason", event.reason},
            {"action", event.action},
            {"note", cut_text(event.note, kMaxNoteBytes)}};
  }

  const Client& client_;
  const Clock& clock_;
  const EventRecorderOptions options_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Pending> queue_;
  std::atomic<std::uint64_t> dropped_ = 0;
  std::map<Kind, Series> series_;  // of the thread that calls step()
  std::uint64_t names_ = 0;        // the same: keeps names of the same instant apart
  std::jthread thread_;            // last: it uses the rest
};

EventRecorder::EventRecorder(const Client& client, const Clock& clock, EventRecorderOptions options)
    : implementation_(std::make_unique<Implementation>(client, clock, std::move(options))) {}
EventRecorder::~EventRecorder() = default;

void EventRecorder::start() { implementation_->start(); }
bool EventRecorder::step(std::stop_token stop) { return implementation_->step(std::move(stop)); }
void EventRecorder::record(Event event) { implementation_->record(std::move(event)); }
std::uint64_t EventRecorder::dropped() const { return implementation_->dropped(); }

}  // namespace sluice::kube
