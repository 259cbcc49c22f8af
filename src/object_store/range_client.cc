#include "src/object_store/range_client.h"

#include <algorithm>
#include <utility>

namespace sluice::object_store {
namespace {

constexpr std::string_view kStrongEtag = "\"";

Headers headers_of(const ObjectRange& range, const Target& target) {
  Headers headers{{"Host", target.authority},
                  {"Accept-Encoding", "identity"},
                  {"Range", "bytes=" + std::to_string(range.offset) + "-" + std::to_string(range.end() - 1)}};
  // A weak name is good for no condition.
  if (range.access.etag.starts_with(kStrongEtag)) headers.emplace_back("If-Match", range.access.etag);
  return headers;
}

Clock::Duration time_for(std::size_t bytes) {
  return kAnswerTime + std::chrono::duration_cast<Clock::Duration>(std::chrono::duration<double>(
                           static_cast<double>(bytes) / static_cast<double>(kBytesPerSecondLeast)));
}

Error all_failed(const std::map<std::string, int>& reasons) {
  std::string told = "not read in " + std::to_string(kAttemptsMost) + " attempts: ";
  for (const auto& [reason, count] : reasons)
    told += (told.ends_with(": ") ? "" : ", ") + reason + " (" + std::to_string(count) + " times)";
  return unavailable(told);
}

}  // namespace

RangeClient::RangeClient(std::unique_ptr<Network> network, const Clock& clock, std::function<double()> random,
                         ReadText read_text)
    : clock_(clock),
      random_(std::move(random)),
      pace_(clock),
      network_(std::move(network)),
      identity_(*network_, clock, std::move(read_text)) {}

RangeClient::~RangeClient() { end(); }

void RangeClient::end() {
  network_->end();
  waiting_.clear();
}

void RangeClient::get(Wanted wanted) {
  auto job = std::make_shared<Job>(Job{std::move(wanted)});
  network_->post([this, job] {
    auto first = new_attempt(job, /*is_hedge=*/false);
    job->wanted.is_urgent ? waiting_.push_front(std::move(first)) : waiting_.push_back(std::move(first));
    pump();
  });
}

RangeClient::AttemptHandle RangeClient::new_attempt(const JobHandle& job, bool is_hedge) {
  auto attempt = std::make_shared<Attempt>(Attempt{job, is_hedge});
  job->started.push_back(attempt);
  return attempt;
}

void RangeClient::pump() {
  while (!waiting_.empty()) {
    const AttemptHandle attempt = waiting_.front();
    const Wanted& wanted = attempt->job->wanted;
    if (attempt->has_ended || (wanted.is_wanted && !wanted.is_wanted())) {
      attempt->has_ended = true;
      waiting_.pop_front();
      continue;
    }
    if (!pace_.may_enter(wanted.range.bytes)) return;
    waiting_.pop_front();
    pace_.enter(wanted.range.bytes);
    begin(attempt);
  }
}

void RangeClient::begin(const AttemptHandle& attempt) {
  attempt->is_under_way = true;
  if (attempt->is_hedge)
    ++counters_.hedged;
  else
    ++attempt->job->attempts;
  const ObjectRange& range = attempt->job->wanted.range;
  auto target = target_of(range.url, environment_of(range.access));
  if (!target.ok()) return refuse(attempt, target.error());
  if (target->region.empty()) return ask(attempt, *std::move(target), std::nullopt);
  identity_.credentials(range.access.environment, nullptr, [this, attempt, target = *target](const auto& known) {
    if (attempt->has_ended) return;
    if (known.ok()) return ask(attempt, target, *known);
    if (known.error().code() != ErrorCode::kUnavailable) return refuse(attempt, known.error());
    passed(attempt, {Meaning::kPassing, known.error().message()});
  });
}

void RangeClient::ask(const AttemptHandle& attempt, Target target, const std::optional<Credentials>& credentials) {
  const ObjectRange& range = attempt->job->wanted.range;
  Headers headers = headers_of(range, target);
  if (credentials)
    headers = signed_headers(target.path, std::move(headers), *credentials, target.region, clock_.wall_now());
  HttpRequest request{.target = target,
                      .trust = {range.access.variable("SSL_CERT_FILE"), range.access.variable("SSL_CERT_DIR")},
                      .headers = std::move(headers),
                      .room = spare_.take(range.bytes),
                      .answer_bytes_max = std::max(range.bytes, kRefusalBytesMost),
                      .time = time_for(range.bytes)};
  if (attempt->redirects == 0) watch(attempt);
  ++counters_.requests;
  attempt->cancel = network_->ask(std::move(request),
                                  [this, attempt, target = std::move(target), credentials](Result<HttpAnswer> answer) {
                                    answered(attempt, target, credentials, std::move(answer));
                                  });
}

// Another request goes before all that wait for a place: what is late holds up a batch already.
void RangeClient::watch(const AttemptHandle& attempt) {
  attempt->began = clock_.now();
  const auto time = late_.late_after(attempt->job->wanted.range.bytes);
  if (attempt->is_hedge || !time) return;
  network_->after(*time, [this, watched = std::weak_ptr(attempt)] {
    const AttemptHandle late = watched.lock();
    if (late == nullptr || late->has_ended || !late_.may_ask_again()) return;
    waiting_.push_front(new_attempt(late->job, /*is_hedge=*/true));
    pump();
  });
}

void RangeClient::answered(const AttemptHandle& attempt, const Target& target,
                           const std::optional<Credentials>& credentials, Result<HttpAnswer> answer) {
  if (!answer.ok()) return passed(attempt, {Meaning::kPassing, answer.error().message()});
  const Verdict verdict = judge(*answer, attempt->job->wanted.range, target);
  switch (verdict.meaning) {
    case Meaning::kBytes: return succeed(attempt, std::move(answer->body));
    case Meaning::kPassing: return passed(attempt, verdict);
    case Meaning::kFinal: return refuse(attempt, *verdict.error);
    case Meaning::kExpired:
      if (credentials && !attempt->job->has_renewed) return renew(attempt, *credentials, *verdict.error);
      return refuse(attempt, *verdict.error);
    case Meaning::kRedirected: break;
  }
  if (++attempt->redirects > kRedirectsMost)
    return refuse(attempt, unavailable("more than " + std::to_string(kRedirectsMost) + " redirects"));
  auto next = redirected(target, answer->header("Location"));
  if (!next.ok()) return refuse(attempt, next.error());
  ask(attempt, *std::move(next), std::nullopt);
}

// The lender may have been late.
void RangeClient::renew(const AttemptHandle& attempt, const Credentials& expired, const Error& otherwise) {
  attempt->job->has_renewed = true;
  const auto renewed = [this, attempt, expired, otherwise](const Result<std::optional<Credentials>>& known) {
    if (attempt->has_ended) return;
    if (!known.ok() || !*known || **known == expired) return refuse(attempt, otherwise);
    passed(attempt, {Meaning::kPassing, "credentials that have expired"});
  };
  identity_.credentials(attempt->job->wanted.range.access.environment, &expired, renewed);
}

void RangeClient::passed(const AttemptHandle& attempt, const Verdict& verdict) {
  const JobHandle job = attempt->job;
  ++job->reasons[verdict.reason];
  ++(verdict.is_throttled ? counters_.refused : counters_.failed);
  if (verdict.is_throttled) late_.store_is_busy();
  if (job->attempts >= kAttemptsMost) return refuse(attempt, all_failed(job->reasons), verdict.is_throttled);
  if (end(attempt, verdict.is_throttled)) return pump();
  const Clock::Duration longest = std::min(kPauseMost, kFirstPause * (1 << (job->attempts - 1)));
  const auto drawn = std::chrono::duration_cast<Clock::Duration>(random_() * std::chrono::duration<double>(longest));
  network_->after(std::max(std::min(verdict.wait, kAskedPauseMost), drawn), [this, job] {
    waiting_.push_front(new_attempt(job, /*is_hedge=*/false));
    pump();
  });
  pump();
}

void RangeClient::refuse(const AttemptHandle& attempt, const Error& error, bool is_throttled) {
  const JobHandle job = attempt->job;
  if (!end(attempt, is_throttled)) job->wanted.done(error.with_context(job->wanted.range.in_words()));
  pump();
}

void RangeClient::succeed(const AttemptHandle& attempt, Bytes bytes) {
  const JobHandle job = attempt->job;
  counters_.bytes += bytes.size();
  if (attempt->is_hedge) ++counters_.hedges_useful;
  late_.took(bytes.size(), clock_.now() - attempt->began);
  end(attempt, /*is_throttled=*/false);
  for (const auto& other : std::exchange(job->started, {}))
    if (const AttemptHandle slower = other.lock()) give_up(*slower);
  job->wanted.done(std::move(bytes));
  pump();
}

// A second attempt that still waits for its place ends with the first one, whose pause may be what the store needs.
bool RangeClient::end(const AttemptHandle& attempt, bool is_throttled) {
  attempt->has_ended = true;
  pace_.leave(attempt->job->wanted.range.bytes, is_throttled);
  std::erase_if(attempt->job->started, [](const std::weak_ptr<Attempt>& started) {
    const AttemptHandle other = started.lock();
    if (other != nullptr && !other->is_under_way) other->has_ended = true;
    return other == nullptr || other->has_ended;
  });
  return !attempt->job->started.empty();
}

// A late request has taken so long at least: without its time, the slowest of a hundred would be known too fast.
void RangeClient::give_up(Attempt& attempt) {
  attempt.has_ended = true;
  const std::size_t bytes = attempt.job->wanted.range.bytes;
  if (!attempt.is_hedge) late_.took(bytes, clock_.now() - attempt.began);
  pace_.give_up(bytes);
  if (attempt.cancel != nullptr) attempt.cancel();
}

}  // namespace sluice::object_store
