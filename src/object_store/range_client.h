// Ranges of objects, many at a time, for one process (docs/designs/object-stores.md).
//
// Requests in flight are bounded in number and in bytes (pace.h); what comes beyond waits in a queue, which the callers
// bound. A failure that may pass is tried again behind a random pause. A request that is late (late_requests.h) is sent
// once more while it is waited for, on another connection: the first good answer counts, and the other is cancelled.
// Where one of the two fails, the other one decides.
// Thread safety: get(), reuse(), end() and counters() may be called from any thread. Answers are told on the network's
// thread.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>

#include "src/object_store/answer.h"
#include "src/object_store/counters.h"
#include "src/object_store/identity.h"
#include "src/object_store/late_requests.h"
#include "src/object_store/network.h"
#include "src/object_store/object_range.h"
#include "src/object_store/pace.h"
#include "src/object_store/spare_buffers.h"

namespace sluice::object_store {

inline constexpr int kAttemptsMost = 10;
inline constexpr int kRedirectsMost = 3;
inline constexpr Clock::Duration kFirstPause = std::chrono::milliseconds(50);
inline constexpr Clock::Duration kPauseMost = std::chrono::seconds(10);
inline constexpr Clock::Duration kAskedPauseMost = std::chrono::seconds(30);  // that Retry-After may ask for
inline constexpr Clock::Duration kAnswerTime = std::chrono::seconds(30);      // and so much for each byte:
inline constexpr std::size_t kBytesPerSecondLeast = 64 << 10;
inline constexpr std::size_t kRefusalBytesMost = 16 << 10;

class RangeClient {
 public:
  using Bytes = std::vector<std::uint8_t>;
  using Done = std::function<void(Result<Bytes>)>;

  // REQUIRES: clock outlives this. `random`: from 0 to 1, on the network's thread.
  RangeClient(std::unique_ptr<Network> network, const Clock& clock, std::function<double()> random, ReadText read_text);
  ~RangeClient();

  struct Wanted {
    ObjectRange range;
    bool is_urgent = false;           // a thread waits for it: it goes before all that wait
    std::function<bool()> is_wanted;  // false: it is not asked for any more, and `done` not called. Null: it stays so
    Done done;                        // Errors name object and range, and what the store answered
  };
  void get(Wanted wanted);

  // Bytes that are not needed any more, for answers to come.
  void reuse(Bytes bytes) { spare_.keep(std::move(bytes)); }

  // Nothing is answered from here on, and what was to be told is forgotten.
  void end();

  const Counters& counters() const { return counters_; }

  // On the network's thread.
  const Pace& pace() const { return pace_; }

 private:
  struct Attempt;
  struct Job {
    Wanted wanted;
    int attempts = 0;                                  // without those that were late requests, once more
    bool has_renewed = false;                          // the credentials, as the store had called them expired
    std::map<std::string, int> reasons = {};           // why attempts have failed
    std::vector<std::weak_ptr<Attempt>> started = {};  // two at most that have not ended
  };
  // One request, which waits for its place, then is under way, then has ended.
  struct Attempt {
    const std::shared_ptr<Job> job;
    const bool is_hedge;
    bool is_under_way = false;
    bool has_ended = false;
    int redirects = 0;
    Clock::TimePoint began{};
    Network::Cancel cancel = nullptr;  // null: nothing is asked for yet
  };
  using JobHandle = std::shared_ptr<Job>;
  using AttemptHandle = std::shared_ptr<Attempt>;

  AttemptHandle new_attempt(const JobHandle& job, bool is_hedge);
  void pump();
  void begin(const AttemptHandle& attempt);
  void ask(const AttemptHandle& attempt, Target target, const std::optional<Credentials>& credentials);
  void watch(const AttemptHandle& attempt);
  void answered(const AttemptHandle& attempt, const Target& target, const std::optional<Credentials>& credentials,
                Result<HttpAnswer> answer);
  void renew(const AttemptHandle& attempt, const Credentials& expired, const Error& otherwise);
  // Each ends the attempt.
  void passed(const AttemptHandle& attempt, const Verdict& verdict);
  void refuse(const AttemptHandle& attempt, const Error& error, bool is_throttled = false);
  void succeed(const AttemptHandle& attempt, Bytes bytes);
  // Whether another attempt of the job goes on.
  bool end(const AttemptHandle& attempt, bool is_throttled);
  void give_up(Attempt& attempt);

  const Clock& clock_;
  const std::function<double()> random_;
  Pace pace_;
  LateRequests late_;
  Counters counters_;
  SpareBuffers spare_;
  std::deque<AttemptHandle> waiting_;
  const std::unique_ptr<Network> network_;  // ended before the rest is destroyed
  Identity identity_;
};

}  // namespace sluice::object_store
