#include "src/kube/watch.h"

#include "src/base/testing/catch.h"

namespace sluice::kube {
namespace {

std::vector<std::string> frame(const std::vector<std::string>& pieces, bool* partial = nullptr) {
  std::vector<std::string> lines;
  LineFramer framer(100, [&](std::string_view line) {
    lines.emplace_back(line);
    return Result<void>();
  });
  for (const auto& piece : pieces) REQUIRE(framer.on_bytes(piece).ok());
  if (partial != nullptr) *partial = !framer.partial_line().empty();
  return lines;
}

TEST_CASE("lines are the same however the bytes are cut") {
  const std::string text = "{\"a\":1}\n{\"b\":2}\r\n\n{\"c\":3}\n";
  const std::vector<std::string> want{"{\"a\":1}", "{\"b\":2}", "{\"c\":3}"};
  CHECK(frame({text}) == want);
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    INFO(cut);
    CHECK(frame({text.substr(0, cut), text.substr(cut)}) == want);
  }
  std::vector<std::string> bytes;
  for (const char c : text) bytes.emplace_back(1, c);
  CHECK(frame(bytes) == want);
}

TEST_CASE("an unfinished line is known as such") {
  bool partial = false;
  CHECK(frame({"a\nb"}, &partial) == std::vector<std::string>{"a"});
  CHECK(partial);
  frame({"a\nb", "\n"}, &partial);
  CHECK_FALSE(partial);
}

TEST_CASE("a line has a bound, and the handler's error ends the stream") {
  LineFramer framer(
      10, [](std::string_view line) { return line == "bad" ? Result<void>(invalid_argument("no")) : Result<void>(); });
  CHECK(framer.on_bytes("0123456789\n").ok());
  CHECK(framer.on_bytes("bad\nnever").error().message() == "no");
  LineFramer bounded(10, [](std::string_view) { return Result<void>(); });
  CHECK(bounded.on_bytes("012345").ok());
  CHECK(bounded.on_bytes("678901").error().code() == ErrorCode::kDataLoss);
}

TEST_CASE("events are parsed, and an ERROR event is its Status") {
  CHECK(parse_watch_event(R"({"type":"ADDED","object":{"a":1}})")->type == WatchEventType::kAdded);
  CHECK(parse_watch_event(R"({"type":"MODIFIED","object":{}})")->type == WatchEventType::kModified);
  CHECK(parse_watch_event(R"({"type":"DELETED","object":{}})")->type == WatchEventType::kDeleted);
  CHECK(parse_watch_event(R"({"type":"BOOKMARK","object":{}})")->type == WatchEventType::kBookmark);
  CHECK(parse_watch_event(R"({"type":"ADDED","object":{"a":1}})")->object == Json{{"a", 1}});
  const auto gone = parse_watch_event(R"({"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}})");
  REQUIRE_FALSE(gone.ok());
  CHECK(gone.error().code() == ErrorCode::kGone);
  for (const char* line : {"", "nonsense", "[]", R"({"type":"ADDED"})", R"({"type":1,"object":{}})",
                           R"({"type":"OTHER","object":{}})", R"({"type":"ADDED","object":[]})"}) {
    INFO(line);
    const auto event = parse_watch_event(line);
    REQUIRE_FALSE(event.ok());
    CHECK(event.error().code() == ErrorCode::kDataLoss);
  }
}

}  // namespace
}  // namespace sluice::kube
