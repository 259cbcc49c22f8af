#include "src/kube/json_text.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "src/base/testing/catch.h"

namespace sluice::kube {
namespace {

Json reference(std::string_view text) { return Json::parse(text, nullptr, false); }

std::string nested(int depth) { return std::string(depth, '[') + std::string(depth, ']'); }

TEST_CASE("values are those of nlohmann's parser, types included") {
  for (const std::string text : {
           R"({})",
           R"([])",
           R"(null)",
           R"("text")",
           R"(true)",
           R"({"a":{"b":[1,-2,3.5,1e3,true,false,null,"x"]},"":""})",
           R"({"int64":-9223372036854775808,"uint64":18446744073709551615,"zero":0,"negative zero":-0.0})",
           R"({"escapes":"\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00","utf8":"é😀"})",
           R"({"twice":1,"twice":2})",
           "\n\t {\"blanks\" : [ 1 , 2 ] } \r\n",
       }) {
    INFO(text);
    const auto parsed = parse_json(text);
    REQUIRE(parsed.has_value());
    CHECK(*parsed == reference(text));
    CHECK(parsed->dump() == reference(text).dump());
  }
}

TEST_CASE("what is no JSON is none") {
  for (const std::string text :
       {"",       " ",       "{",           "}",        "[1,]",  "{\"a\":}", "{\"a\" 1}",
        "{a:1}",  "nul",     "01",          "1.",       "+1",    "NaN",      "'x'",
        "\"\t\"", "\"\\x\"", "\"\\ud83d\"", "\"\xff\"", "{} {}", "[1 2]",    "18446744073709551616"}) {
    INFO(text);
    CHECK_FALSE(parse_json(text).has_value());
  }
}

TEST_CASE("the size of a text does not matter, nor what the thread has parsed before") {
  for (const int kib : {1, 15, 16, 17, 5000, 1}) {
    const Json want = {{"text", std::string(kib << 10, 'x')}, {"list", std::vector<int>(10, kib)}};
    CHECK(parse_json(want.dump()) == want);
    CHECK_FALSE(parse_json(want.dump() + "}").has_value());
  }
}

TEST_CASE("nesting is bounded, however long the text is") {
  CHECK(parse_json(nested(900)).has_value());
  CHECK_FALSE(parse_json(nested(1100)).has_value());
  CHECK_FALSE(parse_json(nested(100'000)).has_value());
}

TEST_CASE("members are left out where their path says, and nowhere else") {
  struct Case {
    const char* text;
    MemberPath left_out;
    const char* want;
  };
  const Case cases[] = {
      {R"({"type":"ADDED","object":{"kind":"Pod","metadata":{"name":"a","managedFields":[{"a":"]}\""},[]],"uid":"u"}}})",
       kManagedFieldsOfEvent, R"({"type":"ADDED","object":{"kind":"Pod","metadata":{"name":"a","uid":"u"}}})"},
      {R"({"object":{"metadata":{"managedFields":null}},"type":"ADDED"})", kManagedFieldsOfEvent,
       R"({"object":{"metadata":{}},"type":"ADDED"})"},
      {R"({"object": {"metadata": {"managedFields": [1]}}})", kManagedFieldsOfEvent, R"({"object":{"metadata":{}}})"},
      {R"({"items":[{"metadata":{"managedFields":[1],"name":"a"}},{"metadata":{"managedFields":[]}},{}]})",
       kManagedFieldsOfList, R"({"items":[{"metadata":{"name":"a"}},{"metadata":{}},{}]})"},
      // No object's metadata.managedFields:
      {R"({"object":{"spec":{"managedFields":[1]}}})", kManagedFieldsOfEvent, nullptr},
      {R"({"object":{"metadata":{"annotations":{"managedFields":"x"}}}})", kManagedFieldsOfEvent, nullptr},
      {R"({"object":{"spec":{"metadata":{"managedFields":"x"}}}})", kManagedFieldsOfEvent, nullptr},
      {R"({"object":{"metadata":{"name":"\"managedFields\":[1]"}}})", kManagedFieldsOfEvent, nullptr},
      {R"({"object":{"metadata":[{"managedFields":[1]}]}})", kManagedFieldsOfEvent, nullptr},
      {R"({"metadata":{"managedFields":[1]}})", kManagedFieldsOfEvent, nullptr},
      {R"({"items":{"*":{"metadata":{"managedFields":[1]}}},"metadata":{"managedFields":[1]}})", {}, nullptr},
      {R"({"object":{"metadata":{"managedFields":[1]}}})", kManagedFieldsOfList, nullptr},
      {R"({"object":{"metadata":{"managedFields":[1]}}})", {}, nullptr},
  };
  for (const Case& c : cases) {
    INFO(c.text);
    CHECK(parse_json(c.text, c.left_out) == reference(c.want != nullptr ? c.want : c.text));
  }
}

TEST_CASE("threads parse beside each other") {
  std::vector<int> sums(4);
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([t, &sums] {
        for (int i = 0; i < 200; ++i) sums[t] += parse_json("{\"n\":" + std::to_string(t) + "}")->at("n").get<int>();
      });
  }
  for (int t = 0; t < 4; ++t) CHECK(sums[t] == 200 * t);
}

// Fingerprints of such texts are kept in the cluster.
TEST_CASE("a value is written to the byte as the JSON library writes it") {
  for (const char* text :
       {"null", "true", "[]", "{}", R"("")", R"([[],{},[null,false]])", R"({"b":1,"a":{"\u0000\u001f\u007f":"x"}})",
        R"("a\"b\\c/d\b\f\n\r\t")", R"("ä € \ud83d\ude00")", R"({"ä\n":"\u2028"})", "0", "-1", "1.0", "0.1", "1e300",
        "-2.5e-8", "9223372036854775807", "-9223372036854775808", "18446744073709551615"}) {
    INFO(text);
    CHECK(text_of(reference(text)) == reference(text).dump());
  }
  CHECK(text_of(std::numeric_limits<double>::infinity()) == "null");
}

TEST_CASE("a text that is not UTF-8 is written with replacements, not thrown out") {
  CHECK(text_of({{"note",
                  "\xFC"
                  "ber"}}) ==
        "{\"note\":\"\xEF\xBF\xBD"
        "ber\"}");
  CHECK(parse_json(text_of({{"note",
                             "\xFC"
                             "ber"}}))
            .has_value());
}

}  // namespace
}  // namespace sluice::kube
