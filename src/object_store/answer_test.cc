#include "src/object_store/answer.h"

#include "src/base/testing/catch.h"

namespace sluice::object_store {
namespace {

const ObjectRange kRange{"s3://b/k", {"\"e\"", nullptr}, 1000, 10, 4};
const Target kBucket{true, "h", "/k", "eu-1"};
const Target kPlain{true, "h", "/k", ""};

HttpAnswer good() {
  return {206, "Partial Content", {{"content-range", "bytes 10-13/1000"}, {"ETag", "\"e\""}}, {1, 2, 3, 4}};
}

HttpAnswer with(const char* name, const char* value) {
  HttpAnswer answer = good();
  std::erase_if(answer.headers, [&](const auto& one) { return one.first == name; });
  if (*value != 0) answer.headers.emplace_back(name, value);
  return answer;
}

HttpAnswer of_body(std::size_t bytes, bool is_cut_off = false) {
  HttpAnswer answer = good();
  answer.body.resize(bytes);
  answer.is_cut_off = is_cut_off;
  return answer;
}

HttpAnswer of_status(int status, const Headers& headers = {}, std::string_view body = "") {
  return {status, "Words", headers, {body.begin(), body.end()}};
}

TEST_CASE("what the answers of stores mean") {
  const std::tuple<const char*, HttpAnswer, Meaning, const char*> cases[] = {
      {"the range", good(), Meaning::kBytes, ""},
      {"a body that ends early", of_body(3), Meaning::kPassing, "a body that is cut off"},
      {"a body that goes on", of_body(5), Meaning::kPassing, "a body that is too long"},
      {"a body without end", of_body(4, true), Meaning::kPassing, "a body that is too long"},
      {"another range", with("content-range", "bytes 11-14/1000"), Meaning::kPassing, "another range"},
      {"a shorter range", with("content-range", "bytes 10-12/1000"), Meaning::kPassing, "another range"},
      {"no range", with("content-range", ""), Meaning::kPassing, "another range"},
      {"a range without size", with("content-range", "bytes 10-13/*"), Meaning::kPassing, "another range"},
      {"half a range", with("content-range", "bytes 10/13-1000"), Meaning::kPassing, "another range"},
      {"another size", with("content-range", "bytes 10-13/1001"), Meaning::kFinal, "has changed since its index"},
      {"another ETag", with("ETag", "\"f\""), Meaning::kFinal, "has changed since its index"},
      {"no ETag", with("ETag", ""), Meaning::kFinal, "neither ETag nor Last-Modified"},
      {"compressed", with("Content-Encoding", "gzip"), Meaning::kFinal, "compresses the object"},
      {"said to be as it is", with("Content-Encoding", "identity"), Meaning::kBytes, ""},
      {"the whole object", of_status(200), Meaning::kPassing, "the whole object in place of a range"},
      {"too much", of_status(503), Meaning::kPassing, "503 Words"},
      {"too much, otherwise", of_status(429), Meaning::kPassing, "429 Words"},
      {"broken", of_status(500), Meaning::kPassing, "500 Words"},
      {"slow", of_status(408), Meaning::kPassing, "408 Words"},
      {"gone", of_status(404), Meaning::kFinal, "h answers 404 Words"},
      {"the condition does not hold", of_status(412), Meaning::kFinal, "has changed since its index"},
      {"shorter than the range", of_status(416), Meaning::kFinal, "has changed since its index"},
      {"what no store says", of_status(418), Meaning::kFinal, "h answers 418 Words"},
      {"not allowed", of_status(403), Meaning::kFinal, "signed for region eu-1"},
      {"expired", of_status(400, {}, "<Error><Code>ExpiredToken</Code></Error>"), Meaning::kExpired, "have expired"},
      {"elsewhere", of_status(301, {{"x-amz-bucket-region", "us-9"}}), Meaning::kFinal, "in region us-9, not eu-1"},
  };
  for (const auto& [name, answer, meaning, words] : cases) {
    CAPTURE(name);
    const Verdict verdict = judge(answer, kRange, kBucket);
    CHECK(verdict.meaning == meaning);
    CHECK_THAT(verdict.reason + (verdict.error ? verdict.error->message() : ""), Catch::Contains(words));
    CHECK(verdict.is_throttled == (answer.status == 429 || answer.status == 503));
  }
}

TEST_CASE("a plain URL may be redirected, and its credentials cannot expire") {
  CHECK(judge(of_status(307), kRange, kPlain).meaning == Meaning::kRedirected);
  const Verdict verdict = judge(of_status(403, {}, "<Code>ExpiredToken</Code>"), kRange, kPlain);
  CHECK(verdict.meaning == Meaning::kFinal);
  CHECK_THAT(verdict.error->message(), Catch::Contains("not signed") && Catch::Contains("age of a presigned URL"));
  CHECK(verdict.error->code() == ErrorCode::kPermissionDenied);
}

TEST_CASE("a store may ask for a pause in whole seconds") {
  const std::pair<const char*, int> cases[] = {{"7", 7},      {"", 0},  {"soon", 0}, {"99999999999999999999", 0},
                                               {"100000", 0}, {"-1", 0}};
  for (const auto& [text, seconds] : cases) {
    CAPTURE(text);
    CHECK(judge(of_status(503, {{"retry-after", text}}), kRange, kPlain).wait == std::chrono::seconds(seconds));
  }
}

TEST_CASE("a time of modification is the state where there is no ETag") {
  HttpAnswer answer = with("ETag", "");
  answer.headers.emplace_back("last-modified", "Thu, 26 Nov 2026 08:00:00 GMT");
  ObjectRange range = kRange;
  range.access.etag = "Thu, 26 Nov 2026 08:00:00 GMT";
  CHECK(judge(answer, range, kPlain).meaning == Meaning::kBytes);
  CHECK(judge(answer, kRange, kPlain).meaning == Meaning::kFinal);
}

}  // namespace
}  // namespace sluice::object_store
