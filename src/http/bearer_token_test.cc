#include "src/http/bearer_token.h"

#include "src/base/testing/catch.h"
#include "src/http/testing/scripted_transport.h"

namespace sluice::http {
namespace {

using testing::ScriptedTransport;

// Hands out its tokens one after the other; the next one after a rejection.
class ListedTokens final : public TokenSource {
 public:
  explicit ListedTokens(std::vector<std::string> tokens) : tokens_(std::move(tokens)) {}
  Result<std::string> token() override {
    if (tokens_.empty()) return not_found("no token");
    return tokens_.front();
  }
  void rejected(const std::string& token) override {
    rejected_.push_back(token);
    if (tokens_.size() > 1) tokens_.erase(tokens_.begin());
  }
  std::vector<std::string> rejected_;

 private:
  std::vector<std::string> tokens_;
};

Result<Response> answer_of(Transport& transport) { return transport.send({}, std::chrono::seconds(1), {}); }

TEST_CASE("every request carries the token") {
  auto inner = std::make_shared<ScriptedTransport>();
  auto transport = with_bearer_token(inner, std::make_shared<ListedTokens>(std::vector<std::string>{"one"}));
  inner->answer(200, "yes");
  CHECK(answer_of(*transport)->body == "yes");
  CHECK(inner->requests().at(0).headers.at("authorization") == "Bearer one");
}

TEST_CASE("a password is sent as RFC 7617 has it, and a 401 asks for the new one") {
  auto inner = std::make_shared<ScriptedTransport>();
  auto tokens = std::make_shared<ListedTokens>(std::vector<std::string>{"old", "open sesame"});
  auto transport = with_basic_auth(inner, "Aladdin", tokens);
  inner->answer(401, "");
  inner->answer(200, "yes");
  CHECK(answer_of(*transport)->body == "yes");
  CHECK(inner->requests().at(1).headers.at("authorization") == "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
  CHECK(tokens->rejected_ == std::vector<std::string>{"old"});
}

TEST_CASE("a 401 fetches a new token and tries once more") {
  auto inner = std::make_shared<ScriptedTransport>();
  auto tokens = std::make_shared<ListedTokens>(std::vector<std::string>{"old", "new"});
  auto transport = with_bearer_token(inner, tokens);
  inner->answer(401, "");
  inner->answer(200, "yes");
  CHECK(answer_of(*transport)->status == 200);
  CHECK(tokens->rejected_ == std::vector<std::string>{"old"});
  CHECK(inner->requests().at(1).headers.at("authorization") == "Bearer new");
}

TEST_CASE("a 401 with no other token to try is the answer") {
  auto inner = std::make_shared<ScriptedTransport>();
  auto transport = with_bearer_token(inner, std::make_shared<ListedTokens>(std::vector<std::string>{"only"}));
  inner->answer(401, "");
  CHECK(answer_of(*transport)->status == 401);
  CHECK(inner->requests().size() == 1);
}

TEST_CASE("without a token nothing is sent") {
  auto inner = std::make_shared<ScriptedTransport>();
  auto transport = with_bearer_token(inner, std::make_shared<ListedTokens>(std::vector<std::string>{}));
  CHECK(answer_of(*transport).error().code() == ErrorCode::kNotFound);
  CHECK(inner->requests().empty());
}

TEST_CASE("a stream is authenticated the same way") {
  struct Sink final : ByteSink {
    Result<void> on_bytes(std::string_view bytes) override {
      text += bytes;
      return {};
    }
    std::string text;
  } sink;
  auto inner = std::make_shared<ScriptedTransport>();
  auto transport = with_bearer_token(inner, std::make_shared<ListedTokens>(std::vector<std::string>{"old", "new"}));
  inner->answer(401, "");
  inner->answer(testing::ScriptedStream{{"a", "b"}});
  CHECK(transport->stream({}, sink, std::chrono::seconds(1), {}).ok());
  CHECK(sink.text == "ab");
}

}  // namespace
}  // namespace sluice::http
