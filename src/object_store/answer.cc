#include "src/object_store/answer.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace sluice::object_store {
namespace {

Verdict passing(std::string reason) { return {Meaning::kPassing, std::move(reason)}; }

Verdict final_error(ErrorCode code, std::string message) {
  return {.meaning = Meaning::kFinal, .error = Error(code, std::move(message))};
}

Verdict has_changed() {
  return final_error(ErrorCode::kDataLoss, "has changed since its index was made: make the data set anew");
}

// All of `text`; nullopt: it is no such number.
std::optional<std::uint64_t> number_of(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

struct ContentRange {
  std::uint64_t first = 0, last = 0, object_bytes = 0;
};

// "bytes 0-99/1000"
std::optional<ContentRange> content_range(std::string_view text) {
  constexpr std::string_view kUnit = "bytes ";
  const std::size_t dash = text.find('-');
  const std::size_t slash = text.find('/');
  if (!text.starts_with(kUnit) || dash == std::string_view::npos || slash == std::string_view::npos || slash < dash)
    return std::nullopt;
  const auto first = number_of(text.substr(kUnit.size(), dash - kUnit.size()));
  const auto last = number_of(text.substr(dash + 1, slash - dash - 1));
  const auto all = number_of(text.substr(slash + 1));
  if (!first || !last || !all) return std::nullopt;
  return ContentRange{*first, *last, *all};
}

Verdict judge_range(const HttpAnswer& answer, const ObjectRange& range) {
  const auto found = content_range(answer.header("Content-Range"));
  if (!found || found->first != range.offset || found->last + 1 != range.end())
    return passing("another range than was asked for");
  const std::string_view coding = answer.header("Content-Encoding");
  if (!coding.empty() && coding != "identity")
    return final_error(ErrorCode::kInvalidArgument, "the store compresses the object, so that its ranges are others");
  std::string_view name = answer.header("ETag");
  if (name.empty()) name = answer.header("Last-Modified");
  if (name.empty()) {
    return final_error(ErrorCode::kInvalidArgument,
                       "the store says neither ETag nor Last-Modified, so a change would not be seen");
  }
  if (found->object_bytes != range.object_bytes || name != range.access.etag) return has_changed();
  if (answer.is_cut_off || answer.body.size() > range.bytes) return passing("a body that is too long");
  if (answer.body.size() < range.bytes) return passing("a body that is cut off");
  return {};
}

std::string status_of(const HttpAnswer& answer) { return std::to_string(answer.status) + " " + answer.reason; }

bool says(const HttpAnswer& answer, std::string_view words) {
  return std::search(answer.body.begin(), answer.body.end(), words.begin(), words.end()) != answer.body.end();
}

Verdict judge_refusal(const HttpAnswer& answer, const Target& target) {
  const bool is_signed = !target.region.empty() && says(answer, "<Code>ExpiredToken");
  if (is_signed) {
    return {
        .meaning = Meaning::kExpired,
        .error = Error(ErrorCode::kPermissionDenied,
                       target.authority + " says that the credentials have expired: renew AWS_SESSION_TOKEN, or the "
                                          "file that it is from")};
  }
  return final_error(
      ErrorCode::kPermissionDenied,
      target.authority + " answers " + status_of(answer) +
          (target.region.empty() ? ", not signed"
                                 : ", signed for region " + target.region + " if there are credentials") +
          ": look at AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION and AWS_ENDPOINT_URL, at the rights of the "
          "pod's identity, or at the age of a presigned URL");
}

Verdict judge_redirect(const HttpAnswer& answer, const Target& target) {
  if (target.region.empty()) return {Meaning::kRedirected};
  // The signature names host and region.
  const std::string_view region = answer.header("x-amz-bucket-region");
  return final_error(ErrorCode::kInvalidArgument, "the bucket is in region " +
                                                      std::string(region.empty() ? "another" : region) + ", not " +
                                                      target.region + ": set AWS_REGION");
}

}  // namespace

Verdict judge(const HttpAnswer& answer, const ObjectRange& range, const Target& target) {
  switch (answer.status) {
    case 206: return judge_range(answer, range);
    case 200: return passing("the whole object in place of a range");
    case 301:
    case 302:
    case 303:
    case 307:
    case 308: return judge_redirect(answer, target);
    case 400:
    case 401:
    case 403: return judge_refusal(answer, target);
    case 404: return final_error(ErrorCode::kNotFound, target.authority + " answers " + status_of(answer));
    case 412:
    case 416: return has_changed();
    case 429:
    case 503: {
      Verdict verdict = passing(status_of(answer));
      verdict.is_throttled = true;
      constexpr std::uint64_t kSecondsMost = 99'999;
      const auto seconds = number_of(answer.header("Retry-After"));
      if (seconds && *seconds <= kSecondsMost) verdict.wait = std::chrono::seconds(*seconds);
      return verdict;
    }
    case 408:
    case 500:
    case 502:
    case 504: return passing(status_of(answer));
    default: return final_error(ErrorCode::kUnavailable, target.authority + " answers " + status_of(answer));
  }
}

}  // namespace sluice::object_store
