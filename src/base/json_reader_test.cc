#include "src/base/json_reader.h"

#include <functional>
#include <limits>

#include "src/base/testing/catch.h"

namespace sluice {
namespace {

using nlohmann::json;

// What `required` makes of the value in a field "f": "ok", or the error.
template <typename T>
std::string outcome(const json& value, T& out) {
  const json object = {{"f", value}};
  JsonReader reader(object, "message");
  reader.required("f", out);
  return reader.error() ? std::string(reader.error()->message()) : "ok";
}

template <typename T>
std::string outcome(const json& value) {
  T out{};
  return outcome(value, out);
}

TEST_CASE("numbers are read exactly up to their bounds and refused beyond, never wrapped") {
  const auto u64_max = std::numeric_limits<std::uint64_t>::max();
  const auto i64_min = std::numeric_limits<std::int64_t>::min(), i64_max = std::numeric_limits<std::int64_t>::max();
  std::uint64_t u64 = 0;
  CHECK(outcome(u64_max, u64) == "ok");
  CHECK(u64 == u64_max);
  std::int64_t i64 = 0;
  CHECK(outcome(i64_min, i64) == "ok");
  CHECK(i64 == i64_min);
  CHECK(outcome(i64_max, i64) == "ok");
  CHECK(i64 == i64_max);
  std::uint32_t u32 = 0;
  CHECK(outcome(0xFFFFFFFFu, u32) == "ok");
  CHECK(u32 == 0xFFFFFFFFu);
  int small = 0;
  CHECK(outcome(0x7FFFFFFFu, small) == "ok");
  CHECK(small == 0x7FFFFFFF);

  struct Case {
    const char* name;
    std::string got;
    const char* want;
  };
  const Case cases[] = {
      {"u64 below zero", outcome<std::uint64_t>(-1), "message.f: must be a whole number, not negative"},
      {"u64 with a fraction", outcome<std::uint64_t>(1.0), "message.f: must be a whole number, not negative"},
      {"u64 beyond its range", outcome<std::uint64_t>(json::parse("18446744073709551616")),
       "message.f: must be a whole number"},
      {"i64 beyond its range", outcome<std::int64_t>(u64_max), "message.f: must be a whole number of 64 bits"},
      {"i64 just beyond", outcome<std::int64_t>(std::uint64_t{1} << 63),
       "message.f: must be a whole number of 64 bits"},
      {"i64 with a fraction", outcome<std::int64_t>(0.5), "message.f: must be a whole number of 64 bits"},
      {"u32 beyond its range", outcome<std::uint32_t>(std::uint64_t{1} << 32), "message.f: is too large"},
      {"int beyond its range", outcome<int>(std::uint64_t{1} << 31), "message.f: is too large"},
      {"int below zero", outcome<int>(-1), "message.f: must be a whole number"},
      {"truth for a number", outcome<std::uint64_t>(true), "message.f: must be a whole number"},
      {"nothing for a number", outcome<std::uint64_t>(nullptr), "message.f: must be a whole number"},
      {"text for a double", outcome<double>("1"), "message.f: must be a number"},
      {"infinity", outcome<double>(std::numeric_limits<double>::infinity()), "message.f: must be a number"},
      {"not a number", outcome<double>(std::numeric_limits<double>::quiet_NaN()), "message.f: must be a number"},
      {"number for a truth", outcome<bool>(1), "message.f: must be true or false"},
      {"number for a text", outcome<std::string>(1), "message.f: must be a string"},
      {"object for a list", outcome<std::vector<std::int64_t>>(json::object()), "message.f: must be a list"},
      {"wrong entry", outcome<std::vector<std::int64_t>>(json{1, 2, "x", "y"}), "message.f[2]: must be a whole number"},
  };
  for (const Case& test : cases) {
    INFO(test.name);
    CHECK_THAT(test.got, Catch::StartsWith(test.want));
  }
}

TEST_CASE("a whole number is a number, and an empty list a list") {
  bool truth = false;
  CHECK((outcome(true, truth) == "ok" && truth));
  double seconds = 0;
  CHECK(outcome(3, seconds) == "ok");
  CHECK(seconds == 3.0);
  std::vector<std::uint64_t> list = {1, 2};
  CHECK(outcome(json::array(), list) == "ok");
  CHECK(list.empty());
}

TEST_CASE("an optional field may be absent or null, but not wrong") {
  const json object = {{"null", nullptr}, {"wrong", "x"}};
  JsonReader reader(object, "message");
  std::uint64_t number = 7;
  std::optional<std::uint64_t> perhaps;
  reader.optional("absent", number);
  reader.optional("null", number);
  reader.optional("absent", perhaps);
  reader.optional("null", perhaps);
  CHECK(!reader.error());
  CHECK(number == 7);
  CHECK(!perhaps);
  reader.optional("wrong", number);
  REQUIRE(reader.error());
  CHECK_THAT(std::string(reader.error()->message()), Catch::StartsWith("message.wrong"));
}

TEST_CASE("the first thing that is wrong is the one that is told") {
  const json object = {{"b", "text"}};
  JsonReader reader(object, "message");
  std::uint64_t a = 0, b = 0;
  reader.required("a", a);
  reader.required("b", b);
  CHECK(reader.error()->message() == "message.a: is missing");
}

TEST_CASE("what is no object has no fields") {
  for (const json& value : {json(1), json("x"), json::array({1}), json()}) {
    JsonReader reader(value, "message");
    std::uint64_t a = 0;
    reader.required("a", a);
    CHECK(reader.error()->message() == "message: must be an object");
    CHECK(reader.find("a") == nullptr);
  }
}

TEST_CASE("a part's error becomes that of the whole, with the part's path") {
  const json object = {{"part", {{"x", 1}}}};
  JsonReader whole(object, "message");
  JsonReader part(*whole.find("part"), "message.part[0]");
  std::string text;
  part.required("x", text);
  whole.fail(*part.error());
  CHECK(whole.error()->message() == "message.part[0].x: must be a string");
}

TEST_CASE("a bound is told with the field, and a value outside of it is not taken") {
  std::int64_t number = 7;
  double share = 0.5;
  std::array<double, 2> pair{};
  struct Case {
    json value;
    std::function<void(JsonReader&)> read;
    const char* want;
  };
  const auto whole = [&](JsonReader& r) { r.required("f", number, std::int64_t{1}, std::int64_t{9}); };
  const auto fraction = [&](JsonReader& r) { r.required("f", share, 0.0, 1.0); };
  const auto two = [&](JsonReader& r) { r.required("f", pair); };
  const Case cases[] = {
      {0, whole, "m.f: must be a whole number from 1 to 9"},
      {10, whole, "m.f: must be a whole number from 1 to 9"},
      {2.5, whole, "m.f: must be a whole number from 1 to 9"},
      {std::uint64_t{1} << 63, whole, "m.f: must be a whole number from 1 to 9"},
      {1.5, fraction, "m.f: must be a number from 0.0 to 1.0"},
      {"x", fraction, "m.f: must be a number from 0.0 to 1.0"},
      {json::array({1}), two, "m.f: must be 2 numbers"},
      {json::array({1, "x"}), two, "m.f: must be 2 numbers"},
  };
  for (const Case& test : cases) {
    CAPTURE(test.value);
    const json object = {{"f", test.value}};
    JsonReader reader(object, "m");
    test.read(reader);
    REQUIRE(reader.error());
    CHECK(reader.error()->message() == test.want);
  }
  CHECK(number == 7);
  CHECK(share == 0.5);
}

TEST_CASE("a strict reader refuses what was never asked for, and a document's fields have no prefix") {
  const json object = {{"a", 1}, {"b", 2}};
  JsonReader reader(object, "");
  std::int64_t a = 0;
  reader.required("a", a);
  reader.refuse_unknown_fields("is not known");
  CHECK(reader.error()->message() == "b: is not known");
}

}  // namespace
}  // namespace sluice
