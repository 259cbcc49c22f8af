// An answer of a store: bytes are taken of the range that was asked for, in its state, and of nothing else. The same
// bytes as the answer of a lender of credentials, and as the shared file of them.
#include <algorithm>

#include "src/object_store/answer.h"
#include "src/object_store/fuzz/fuzz.h"
#include "src/object_store/lender.h"
#include "src/object_store/shared_credentials.h"

namespace sluice::object_store::fuzz {
namespace {

std::string_view take_line(std::string_view& text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(text.size(), line.size() + 1));
  return line;
}

HttpAnswer answer_of(std::string_view text) {
  HttpAnswer answer;
  for (const char c : take_line(text).substr(0, 3))
    if (c >= '0' && c <= '9') answer.status = answer.status * 10 + (c - '0');
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    const std::size_t colon = line.find(": ");
    if (colon == std::string_view::npos) break;
    answer.headers.emplace_back(line.substr(0, colon), line.substr(colon + 2));
  }
  answer.body.assign(text.begin(), text.end());
  return answer;
}

void check_store(const HttpAnswer& answer) {
  const ObjectRange range{"https://h/k", {"\"e\"", nullptr}, 1000, 10, 4};
  const Target plain{true, "h", "/k", ""}, bucket{true, "h", "/k", "eu-1"};
  for (const Target& target : {plain, bucket}) {
    const Verdict verdict = judge(answer, range, target);
    FUZZ_CHECK((verdict.meaning == Meaning::kFinal || verdict.meaning == Meaning::kExpired) ==
               verdict.error.has_value());
    FUZZ_CHECK((verdict.meaning == Meaning::kPassing) == !verdict.reason.empty());
    if (verdict.meaning != Meaning::kBytes) continue;
    FUZZ_CHECK(answer.status == 206 && answer.body.size() == 4);
    FUZZ_CHECK(answer.header("content-range").starts_with("bytes "));
  }
  const auto next = redirected(plain, answer.header("location"));
  FUZZ_CHECK(!next.ok() ||
             (next->is_tls && next->region.empty() && next->path.starts_with('/') && !next->host().empty()));
  if (next.ok()) FUZZ_CHECK(next->path.find_first_of(" \r\n") == std::string::npos);
}

void check_lender(const HttpAnswer& answer) {
  for (const auto kind : {Lender::Kind::kRole, Lender::Kind::kAgent}) {
    const Lender lender{kind, "https://h", "", "role", "session", "", {}};
    const auto lent = lent_by(lender, answer);
    FUZZ_CHECK(lent.ok() ? !lent->credentials.key_id.empty() && !lent->credentials.secret.empty()
                         : !lent.error().message().empty());
  }
}

}  // namespace

void store_answer(std::string_view input) {
  HttpAnswer answer = answer_of(input);
  check_store(answer);
  answer.status = 200;
  check_lender(answer);
  const std::string_view body(reinterpret_cast<const char*>(answer.body.data()), answer.body.size());
  const auto found = credentials_in(body, "default");
  if (found.ok() && *found) FUZZ_CHECK(!(*found)->key_id.empty() && !(*found)->secret.empty());
}

}  // namespace sluice::object_store::fuzz
