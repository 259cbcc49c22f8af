// The real client and informer, and between them and the fake API server what stands there in clusters: load balancers,
// proxies that hold bytes back, login pages, an etcd that was restored. For each: how late a change is seen, how much
// is asked, and the line of the log that names the trouble.
#include <map>
#include <optional>

#include "src/base/logging.h"
#include "src/base/testing/catch.h"
#include "src/kube/fake/fake_transport.h"
#include "src/kube/fake/watch_session.h"
#include "src/kube/informer.h"

namespace sluice::kube::fake {
namespace {

using std::chrono::seconds;

// Time in one thread: it passes second by second, and the world goes on in each.
class WorldClock final : public Clock {
 public:
  TimePoint now() const override { return TimePoint(seconds(second_)); }
  WallTimePoint wall_now() const override { return WallTimePoint(seconds(1767225600 + second_)); }
  bool sleep_until(TimePoint deadline, std::stop_token stop) const override {
    while (now() < deadline && !stop.stop_requested()) pass_second();
    return !stop.stop_requested();
  }
  void pass_second() const {
    ++second_;
    if (each_second) each_second(second_);
  }
  int second() const { return second_; }

  std::function<void(int second)> each_second;

 private:
  mutable int second_ = 0;
};

// What stands between client and server.
struct Trouble {
  const char* name;
  // Of watches.
  int cut_after_seconds = 0;   // 0: never
  bool ends_cleanly = false;   // when it cuts, or else the connection is lost
  int holds_back_seconds = 0;  // bytes; what it holds when the watch ends is lost
  bool cuts_lines = false;     // the last event before the end, in the middle
  std::optional<http::Response> in_place_of_watches;
  std::optional<http::Response> in_place_of_all;  // for the first ten minutes
  // What is asked of the client.
  int want_late_seconds = 0;          // at most, for any change
  double want_requests_a_minute = 0;  // at most
  const char* want_line = "";         // in the log
};

constexpr int kTroubledSeconds = 600;

class Proxy final : public http::Transport {
 public:
  Proxy(ApiServer& server, const WorldClock& clock, const Trouble& trouble)
      : server_(&server), clock_(clock), trouble_(trouble) {}

  // From now on this server answers, and what was open ends.
  void lead_to(ApiServer& server) { server_ = &server; }

  int requests = 0;

  Result<http::Response> send(const http::Request& request, std::chrono::milliseconds, std::stop_token) override {
    ++requests;
    if (trouble_.in_place_of_all && clock_.second() < kTroubledSeconds) return *trouble_.in_place_of_all;
    return server_->answer(request);
  }

  Result<http::Response> stream(const http::Request& request, http::ByteSink& sink,
                                std::chrono::milliseconds idle_limit, std::stop_token stop) override {
    ++requests;
    const bool nothing_passes = trouble_.in_place_of_all && clock_.second() < kTroubledSeconds;
    if (auto page = nothing_passes ? trouble_.in_place_of_all : trouble_.in_place_of_watches) {
      if (page->succeeded()) SLUICE_TRY_VOID(sink.on_bytes(std::exchange(page->body, {})));
      return *page;
    }
    ApiServer* const asked = server_;
    http::Response refusal;
    const auto session = asked->watch(request, nullptr, refusal);
    if (session == nullptr) return refusal;
    const int began = clock_.second();
    int heard = began;
    std::string held;
    for (;;) {
      while (const auto line = session->next_line()) held += *line;
      const int lived = clock_.second() - began;
      const bool cut = trouble_.cut_after_seconds > 0 && lived >= trouble_.cut_after_seconds;
      if (cut && trouble_.cuts_lines && !held.empty()) {
        SLUICE_TRY_VOID(sink.on_bytes(held.substr(0, held.size() / 2)));
        return http::Response{200, {}, ""};
      }
      const bool lets_through =
          trouble_.holds_back_seconds == 0 || (lived > 0 && lived % trouble_.holds_back_seconds == 0);
      if (lets_through && !held.empty()) {
        heard = clock_.second();
        SLUICE_TRY_VOID(sink.on_bytes(std::exchange(held, {})));
      }
      const bool open = session->state() == WatchSession::State::kOpen;
      if (!open || (cut && trouble_.ends_cleanly)) return http::Response{200, {}, ""};
      if ((cut && !trouble_.cuts_lines) || asked != server_) return unavailable("connection lost");
      if (seconds(clock_.second() - heard) >= idle_limit)
        return Error(ErrorCode::kDeadlineExceeded, "silent for too long");
      if (stop.stop_requested()) return Error(ErrorCode::kCancelled, "stopped");
      clock_.pass_second();
    }
  }

 private:
  ApiServer* server_;
  const WorldClock& clock_;
  const Trouble trouble_;
};

// An hour in which a client writes now and then.
class Hour {
 public:
  explicit Hour(const Trouble& trouble) : proxy_(std::make_shared<Proxy>(server_, clock_, trouble)) {
    set_log_sink([this](std::string_view line) { log_ += std::string(line) + "\n"; });
    clock_.each_second = [this](int second) { live(second); };
    informer_.add_handler([this](const Change& change) {
      if (change.after) seen_.try_emplace(change.key.name, clock_.second());
    });
  }
  ~Hour() { set_log_sink(nullptr); }

  // Writes each so many seconds: also in the quiet of a night a change must be seen.
  void run(int write_every_seconds) {
    write_every_ = write_every_seconds;
    std::stop_source end;
    end_ = &end;
    run_reflector(informer_.reflector(), client_, clock_, end.get_token());
  }

  // The API server's store comes back from a backup of this many objects, which lacks what was made since. Other kinds
  // have moved the versions on meanwhile.
  void restore_at(int second, int objects) {
    restore_at_ = second;
    restored_objects_ = objects;
    for (int version = 0; version < 1000; ++version)
      server_.create(kSecrets, {{"metadata", {{"generateName", "other-"}, {"namespace", "default"}}}});
  }

  int latest_seconds() const {
    int latest = 0;
    for (const auto& [name, second] : written_) {
      const auto seen = seen_.find(name);
      if (second + kPatience < kLength)
        latest = std::max(latest, seen == seen_.end() ? kLength : seen->second - second);
    }
    return latest;
  }
  double requests_a_minute() const { return proxy_->requests * 60.0 / kLength; }
  const std::string& log() const { return log_; }
  const Store& store() const { return informer_.store(); }
  ApiServer& last_server() { return restored_ ? *restored_ : server_; }

 private:
  static constexpr int kLength = 3600;
  static constexpr int kPatience = 900;  // what is written at the very end cannot be judged

  void live(int second) {
    if (second >= kLength) return void(end_->request_stop());
    if (second == restore_at_) restore();
    if (second % 60 == 59) last_server().send_bookmarks();
    if (second % write_every_ != 7 % write_every_) return;
    const std::string name = "written-" + std::to_string(second);
    last_server().create(kConfigMaps, {{"metadata", {{"name", name}, {"namespace", "default"}}}});
    written_[name] = second;
  }

  void restore() {
    restored_ = std::make_unique<ApiServer>(clock_);
    for (int version = 0; version < restored_objects_; ++version)
      restored_->create(
          kConfigMaps,
          {{"metadata", {{"name", "of-the-backup-" + std::to_string(version)}, {"namespace", "default"}}}});
    proxy_->lead_to(*restored_);
  }

  WorldClock clock_;
  ApiServer server_{clock_};
  std::unique_ptr<ApiServer> restored_;
  std::shared_ptr<Proxy> proxy_;
  Client client_{proxy_, clock_};
  Informer informer_{client_, clock_, [] { return 0.5; }, kConfigMaps};
  std::string log_;
  std::stop_source* end_ = nullptr;
  int write_every_ = 0;
  int restore_at_ = -1;
  int restored_objects_ = 0;
  std::map<std::string, int> written_;
  std::map<std::string, int> seen_;
};

const http::Response kLoginPage{200, {{"Content-Type", "text/html"}}, "<html><head><title>Sign in</title></head>"};
const http::Response kCompressed{
    200, {{"Content-Encoding", "gzip"}}, std::string("\x1f\x8b\x08\x00\x00\x00\xff\xfe", 8)};
const http::Response kHourOfPatience{
    429, {{"Retry-After", "3600"}}, R"({"kind":"Status","code":429,"message":"slow down"})"};
const http::Response kBadGateway{502, {{"Content-Type", "text/html"}}, "<html><title>502 Bad Gateway</title>"};

const Trouble kTroubles[] = {
    {.name = "none", .want_late_seconds = 1, .want_requests_a_minute = 1},
    {.name = "watches are cut every second",
     .cut_after_seconds = 1,
     .want_late_seconds = 60,
     .want_requests_a_minute = 3,
     .want_line = "connection lost"},
    {.name = "watches end cleanly every second",
     .cut_after_seconds = 1,
     .ends_cleanly = true,
     .want_late_seconds = 2,
     .want_requests_a_minute = 61},
    {.name = "watches end cleanly at once",
     .cut_after_seconds = 0,
     .in_place_of_watches = http::Response{200, {}, ""},
     .want_late_seconds = 120,
     .want_requests_a_minute = 3,
     .want_line = "ended"},
    {.name = "a load balancer cuts what is idle for 50 s",
     .cut_after_seconds = 50,
     .want_late_seconds = 2,
     .want_requests_a_minute = 2,
     .want_line = "connection lost"},
    {.name = "a proxy holds watches back for 30 s",
     .holds_back_seconds = 30,
     .want_late_seconds = 31,
     .want_requests_a_minute = 1},
    {.name = "a proxy holds watches back until they end",
     .holds_back_seconds = 100'000,
     .want_late_seconds = 200,
     .want_requests_a_minute = 1,
     .want_line = "silent for too long"},
    {.name = "events are cut in half",
     .cut_after_seconds = 30,
     .cuts_lines = true,
     .want_late_seconds = 120,
     .want_requests_a_minute = 2,
     .want_line = "middle of an event"},
    {.name = "watches meet a login page",
     .in_place_of_watches = kLoginPage,
     .want_late_seconds = 120,
     .want_requests_a_minute = 3,
     .want_line = "Sign in"},
    {.name = "watches meet bytes of gzip",
     .in_place_of_watches = kCompressed,
     .want_late_seconds = 120,
     .want_requests_a_minute = 3,
     .want_line = "gzip"},
    {.name = "watches are refused for an hour",
     .in_place_of_watches = kHourOfPatience,
     .want_late_seconds = 600,
     .want_requests_a_minute = 2,
     .want_line = "slow down"},
    {.name = "a proxy has no way for watches",
     .in_place_of_watches = kBadGateway,
     .want_late_seconds = 600,
     .want_requests_a_minute = 2,
     .want_line = "502"},
    {.name = "for ten minutes all meets a login page",
     .in_place_of_all = kLoginPage,
     .want_late_seconds = 660,
     .want_requests_a_minute = 1,
     .want_line = "list failed"},
    {.name = "for ten minutes all is refused for an hour",
     .in_place_of_all = kHourOfPatience,
     .want_late_seconds = 660,
     .want_requests_a_minute = 1,
     .want_line = "slow down"},
};

TEST_CASE("whatever stands before the API server: changes are seen in time, little is asked, and the log names it") {
  const int write_every_seconds = GENERATE(20, 300);
  for (const Trouble& trouble : kTroubles) {
    CAPTURE(trouble.name, write_every_seconds);
    Hour hour(trouble);
    hour.run(write_every_seconds);
    CHECK(hour.latest_seconds() <= trouble.want_late_seconds);
    CHECK(hour.requests_a_minute() <= trouble.want_requests_a_minute);
    CHECK_THAT(hour.log(), Catch::Contains(trouble.want_line));
  }
}

TEST_CASE("an etcd that was restored from a backup: what it lost is gone, and what comes is seen") {
  const int write_every_seconds = GENERATE(20, 300);
  CAPTURE(write_every_seconds);
  Hour hour({.name = "none"});
  hour.restore_at(1200, 3);
  hour.run(write_every_seconds);
  CHECK(hour.latest_seconds() <= 900);
  CHECK(hour.requests_a_minute() <= 3);
  CHECK_THAT(hour.log(), Catch::Contains("history has become shorter"));
  CHECK(hour.store().size() == hour.last_server().all(kConfigMaps).size());
}

}  // namespace
}  // namespace sluice::kube::fake
