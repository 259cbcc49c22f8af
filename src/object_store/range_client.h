// Ranges of objects, many at a time, for one process (docs/designs/object-stores.md).
//
// Requests in flight are bounded in number and in bytes (pace.h); what comes beyond waits in a queue, which the callers
// bound. A failure that may pass is tried again behind a random pause.
// Thread safety: get() and end() may be called from any thread. Answers are told on the network's thread.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>

#include "src/object_store/answer.h"
#include "src/object_store/identity.h"
#include "src/object_store/network.h"
#include "src/object_store/object_range.h"
#include "src/object_store/pace.h"

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

  // Nothing is answered from here on, and what was to be told is forgotten.
  void end();

  // On the network's thread.
  const Pace& pace() const { return pace_; }

 private:
  struct Job {
    Wanted wanted;
    int attempts = 0;
    int redirects = 0;
    bool has_renewed = false;                 // the credentials, as the store had called them expired
    std::map<std::string, int> reasons = {};  // why the attempts have failed
  };
  using JobHandle = std::shared_ptr<Job>;

  void pump();
  void attempt(const JobHandle& job);
  void ask(const JobHandle& job, Target target, const std::optional<Credentials>& credentials);
  void answered(const JobHandle& job, const Target& target, const std::optional<Credentials>& credentials,
                Result<HttpAnswer> answer);
  void renew(const JobHandle& job, const Credentials& expired, const Error& otherwise);
  // Ends the attempt.
  void passed(const JobHandle& job, const Verdict& verdict);
  void finish(const JobHandle& job, Result<Bytes> result, bool is_throttled = false);

  const Clock& clock_;
  const std::function<double()> random_;
  Pace pace_;
  std::deque<JobHandle> waiting_;
  const std::unique_ptr<Network> network_;  // ended before the rest is destroyed
  Identity identity_;
};

}  // namespace sluice::object_store
