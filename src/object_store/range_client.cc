#include "src/object_store/range_client.h"

#include <algorithm>

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
    job->wanted.is_urgent ? waiting_.push_front(job) : waiting_.push_back(job);
    pump();
  });
}

void RangeClient::pump() {
  while (!waiting_.empty()) {
    const JobHandle job = waiting_.front();
    if (job->wanted.is_wanted && !job->wanted.is_wanted()) {
      waiting_.pop_front();
      continue;
    }
    if (!pace_.may_enter(job->wanted.range.bytes)) return;
    waiting_.pop_front();
    pace_.enter(job->wanted.range.bytes);
    attempt(job);
  }
}

void RangeClient::attempt(const JobHandle& job) {
  ++job->attempts;
  job->redirects = 0;
  const ObjectRange& range = job->wanted.range;
  auto target = target_of(range.url, environment_of(range.access));
  if (!target.ok()) return finish(job, target.error());
  if (target->region.empty()) return ask(job, *std::move(target), std::nullopt);
  identity_.credentials(range.access.environment, nullptr, [this, job, target = *target](const auto& known) {
    if (known.ok()) return ask(job, target, *known);
    if (known.error().code() != ErrorCode::kUnavailable) return finish(job, known.error());
    passed(job, {Meaning::kPassing, known.error().message()});
  });
}

void RangeClient::ask(const JobHandle& job, Target target, const std::optional<Credentials>& credentials) {
  const ObjectRange& range = job->wanted.range;
  Headers headers = headers_of(range, target);
  if (credentials)
    headers = signed_headers(target.path, std::move(headers), *credentials, target.region, clock_.wall_now());
  HttpRequest request{.target = target,
                      .trust = {range.access.variable("SSL_CERT_FILE"), range.access.variable("SSL_CERT_DIR")},
                      .headers = std::move(headers),
                      .answer_bytes_max = std::max(range.bytes, kRefusalBytesMost),
                      .time = time_for(range.bytes)};
  network_->ask(std::move(request), [this, job, target = std::move(target), credentials](Result<HttpAnswer> answer) {
    answered(job, target, credentials, std::move(answer));
  });
}

void RangeClient::answered(const JobHandle& job, const Target& target, const std::optional<Credentials>& credentials,
                           Result<HttpAnswer> answer) {
  if (!answer.ok()) return passed(job, {Meaning::kPassing, answer.error().message()});
  const Verdict verdict = judge(*answer, job->wanted.range, target);
  switch (verdict.meaning) {
    case Meaning::kBytes: return finish(job, std::move(answer->body));
    case Meaning::kPassing: return passed(job, verdict);
    case Meaning::kFinal: return finish(job, *verdict.error);
    case Meaning::kExpired:
      if (credentials && !job->has_renewed) return renew(job, *credentials, *verdict.error);
      return finish(job, *verdict.error);
    case Meaning::kRedirected: break;
  }
  if (++job->redirects > kRedirectsMost)
    return finish(job, unavailable("more than " + std::to_string(kRedirectsMost) + " redirects"));
  auto next = redirected(target, answer->header("Location"));
  if (!next.ok()) return finish(job, next.error());
  ask(job, *std::move(next), std::nullopt);
}

// The lender may have been late.
void RangeClient::renew(const JobHandle& job, const Credentials& expired, const Error& otherwise) {
  job->has_renewed = true;
  const auto renewed = [this, job, expired, otherwise](const Result<std::optional<Credentials>>& known) {
    if (!known.ok() || !*known || **known == expired) return finish(job, otherwise);
    passed(job, {Meaning::kPassing, "credentials that have expired"});
  };
  identity_.credentials(job->wanted.range.access.environment, &expired, renewed);
}

void RangeClient::passed(const JobHandle& job, const Verdict& verdict) {
  ++job->reasons[verdict.reason];
  if (job->attempts >= kAttemptsMost) {
    std::string told = "not read in " + std::to_string(kAttemptsMost) + " attempts: ";
    for (const auto& [reason, count] : job->reasons)
      told += (told.ends_with(": ") ? "" : ", ") + reason + " (" + std::to_string(count) + " times)";
    return finish(job, unavailable(told), verdict.is_throttled);
  }
  pace_.leave(job->wanted.range.bytes, verdict.is_throttled);
  const Clock::Duration longest = std::min(kPauseMost, kFirstPause * (1 << (job->attempts - 1)));
  const auto drawn = std::chrono::duration_cast<Clock::Duration>(random_() * std::chrono::duration<double>(longest));
  network_->after(std::max(std::min(verdict.wait, kAskedPauseMost), drawn), [this, job] {
    waiting_.push_front(job);
    pump();
  });
  pump();
}

void RangeClient::finish(const JobHandle& job, Result<Bytes> result, bool is_throttled) {
  pace_.leave(job->wanted.range.bytes, is_throttled);
  if (!result.ok()) result = result.error().with_context(job->wanted.range.in_words());
  job->wanted.done(std::move(result));
  pump();
}

}  // namespace sluice::object_store
