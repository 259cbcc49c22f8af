#include "src/kube/leader_election.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "src/base/logging.h"
#include "src/kube/json_member.h"
#include "src/kube/timestamp.h"

namespace sluice::kube {
namespace {

constexpr std::string_view kFieldManager = "sluice-leader-election";
constexpr double kRetryJitter = 1.2;
constexpr int kMaxReleaseTries = 3;

std::int64_t integer_at(const Json& object, const char* outer, const char* inner) {
  const auto found = object.find(outer);
  if (found == object.end() || !found->is_object()) return 0;
  const auto value = found->find(inner);
  return value != found->end() && value->is_number_integer() ? value->get<std::int64_t>() : 0;
}

}  // namespace

class LeaderElector::Implementation {
 public:
  Implementation(const Client& client, const Clock& clock, UniformRandom random, LeaderElectionOptions options,
                 Callbacks callbacks)
      : client_(client),
        clock_(clock),
        random_(std::move(random)),
        options_(std::move(options)),
        callbacks_(std::move(callbacks)) {}

  Result<void> run(std::stop_token stop) {
    while (!stop.stop_requested()) {
      SLUICE_TRY(const auto pause, step(stop));
      clock_.sleep_for(pause, stop);
    }
    release();  // a successor can lead at once
    return {};
  }

  Result<std::chrono::milliseconds> step(std::stop_token stop) {
    return is_leader_ ? hold(std::move(stop)) : apply_for(std::move(stop));
  }

  void release() {
    if (is_leader_.exchange(false)) give_up();
  }

  bool is_leader() const { return is_leader_ && clock_.now() < renewed_at_.load() + options_.lease_duration; }

 private:
  std::chrono::milliseconds apply_for(std::stop_token stop) {
    const Clock::TimePoint asked_at = clock_.now();  // others count from when they see it, which is later
    if (!try_to_lead(stop)) {
      // Jitter keeps candidates from asking at the same moment.
      return std::chrono::duration_cast<std::chrono::milliseconds>(options_.retry_period *
                                                                   (1.0 + kRetryJitter * random_()));
    }
    renewed_at_ = asked_at;
    is_leader_ = true;
    log_info("kube", "leading", {{"lease", options_.lease.to_string()}, {"identity", options_.identity}});
    callbacks_.on_acquired();
    return options_.retry_period;
  }

  // A leader gives up when no renewal succeeded for renew_deadline, well before others may take the lease.
  Result<std::chrono::milliseconds> hold(std::stop_token stop) {
    const Clock::TimePoint asked_at = clock_.now();
    if (asked_at < give_up_at() && (renew(stop) || try_to_lead(stop))) {
      renewed_at_ = asked_at;
    } else if (!stop.stop_requested() && (taken_over() || clock_.now() >= give_up_at())) {
      is_leader_ = false;
      log_error("kube", "lease lost", {{"lease", options_.lease.to_string()}});
      callbacks_.on_lost();
      return unavailable("the lease " + options_.lease.to_string() + " was lost");
    }
    return std::chrono::milliseconds(options_.retry_period);
  }

  Clock::TimePoint give_up_at() const { return renewed_at_.load() + options_.renew_deadline; }

  // A client whose requests end in time. A leader must know before give_up_at() that it could not renew; a candidate
  // must not hang on one connection. Only these loops retry.
  Client client() const {
    auto timeout = std::chrono::milliseconds(options_.renew_deadline) / 2;
    if (is_leader_) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(give_up_at() - clock_.now());
      timeout = std::clamp(left, std::chrono::milliseconds(1), timeout);
    }
    return client_.with_options({.timeout = timeout, .max_retries = 0});
  }

  // One round: true when we hold the lease as of now.
  bool try_to_lead(std::stop_token stop) {
    const Result<Json> found = client().get(kLeases, options_.lease, stop);
    if (!found.ok()) {
      if (found.error().code() == ErrorCode::kNotFound) return note(create(stop));
      return note(found.error());
    }
    observe(*found);
    if (taken_over() && clock_.now() - changed_at_ < seen_duration_) return false;
    return note(claim(*found, stop));
  }

  // The usual case for a leader: the lease is as we left it, one request is enough.
  bool renew(std::stop_token stop) {
    const Json patch{{"metadata", {{"resourceVersion", seen_version_}}},
                     {"spec", {{"renewTime", format_microtime(clock_.wall_now())}}}};
    return note(client().merge_patch(kLeases, options_.lease, patch, kFieldManager, "", std::move(stop)));
  }

  // Remembers when, by our clock, the lease last looked different.
  void observe(const Json& lease) {
    const std::string version = text_at(lease, "metadata", "resourceVersion");
    if (version != seen_version_) {
      seen_version_ = version;
      changed_at_ = clock_.now();
    }
    seen_holder_ = text_at(lease, "spec", "holderIdentity");
    // The holder's own promise counts, which may differ during an upgrade.
    const auto promised = integer_at(lease, "spec", "leaseDurationSeconds");
    seen_duration_ = promised > 0 ? std::chrono::seconds(promised) : options_.lease_duration;
  }

  bool taken_over() const { return !seen_holder_.empty() && seen_holder_ != options_.identity; }

  Json spec(std::int64_t transitions, const std::string& acquired) const {
    return {{"holderIdentity", options_.identity},
            {"leaseDurationSeconds", options_.lease_duration.count()},
            {"acquireTime", acquired},
            {"renewTime", format_microtime(clock_.wall_now())},
            {"leaseTransitions", transitions}};
  }

  Result<Json> create(std::stop_token stop) {
    const Json lease{{"metadata", {{"name", options_.lease.name}}},
                     {"spec", spec(0, format_microtime(clock_.wall_now()))}};
    return client().create(kLeases, options_.lease.namespace_, lease, kFieldManager, std::move(stop));
  }

  // Takes over, or goes on with a lease of our own. The resourceVersion makes it a compare-and-swap: of two claimants
  // one gets a conflict.
  Result<Json> claim(const Json& lease, std::stop_token stop) {
    const bool renews = seen_holder_ == options_.identity;
    const std::int64_t transitions = integer_at(lease, "spec", "leaseTransitions") + (renews ? 0 : 1);
    const std::string acquired = text_at(lease, "spec", "acquireTime");
    const Json patch{
        {"metadata", {{"resourceVersion", seen_version_}}},
        {"spec", spec(transitions, renews && !acquired.empty() ? acquired : format_microtime(clock_.wall_now()))}};
    return client().merge_patch(kLeases, options_.lease, patch, kFieldManager, "", std::move(stop));
  }

  bool note(const Result<Json>& written) {
    if (written.ok()) {
      observe(*written);
      return true;
    }
    const ErrorCode code = written.error().code();
    const bool is_race = code == ErrorCode::kConflict || code == ErrorCode::kAlreadyExists;
    if (!is_race && code != ErrorCode::kCancelled) {
      log_warning("kube", "leader election", {{"error", written.error().to_string()}});
    }
    return false;
  }

  void give_up() {
    Result<Json> released = free_lease();
    for (int tries = 1; tries < kMaxReleaseTries && is_conflict(released); ++tries) {
      // A renewal that the stop cut off may have been stored all the same; or another replica leads already.
      const Result<Json> found = client().get(kLeases, options_.lease);
      if (!found.ok()) break;
      observe(*found);
      if (seen_holder_ != options_.identity) return;
      released = free_lease();
    }
    if (!released.ok()) log_warning("kube", "lease not released", {{"error", released.error().to_string()}});
  }

  static bool is_conflict(const Result<Json>& written) {
    return !written.ok() && written.error().code() == ErrorCode::kConflict;
  }

  Result<Json> free_lease() {
    // The lease says "free", and short, for candidates that trust the duration in it.
    const Json patch{
        {"metadata", {{"resourceVersion", seen_version_}}},
        {"spec",
         {{"holderIdentity", ""}, {"leaseDurationSeconds", 1}, {"renewTime", format_microtime(clock_.wall_now())}}}};
    return client().merge_patch(kLeases, options_.lease, patch, kFieldManager);
  }

  const Client& client_;
  const Clock& clock_;
  const UniformRandom random_;
  const LeaderElectionOptions options_;
  const Callbacks callbacks_;
  std::atomic<bool> is_leader_ = false;
  std::atomic<Clock::TimePoint> renewed_at_ = Clock::TimePoint();  // a leader's
  std::string seen_version_;
  std::string seen_holder_;
  std::chrono::seconds seen_duration_{0};
  Clock::TimePoint changed_at_;
};

LeaderElector::LeaderElector(const Client& client, const Clock& clock, UniformRandom random,
                             LeaderElectionOptions options, Callbacks callbacks)
    : implementation_(std::make_unique<Implementation>(client, clock, std::move(random), std::move(options),
                                                       std::move(callbacks))) {}
LeaderElector::~LeaderElector() = default;

Result<void> LeaderElector::run(std::stop_token stop) { return implementation_->run(std::move(stop)); }
Result<std::chrono::milliseconds> LeaderElector::step(std::stop_token stop) {
  return implementation_->step(std::move(stop));
}
void LeaderElector::release() { implementation_->release(); }
bool LeaderElector::is_leader() const { return implementation_->is_leader(); }

}  // namespace sluice::kube
