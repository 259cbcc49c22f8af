#include "src/object_store/late_requests.h"

#include "src/base/testing/catch.h"

namespace sluice::object_store {
namespace {

using std::chrono::milliseconds;

LateRequests known(int answers, Clock::Duration time = milliseconds(100), std::size_t bytes = 0) {
  LateRequests late;
  for (int i = 0; i < answers; ++i) late.took(bytes, time);
  return late;
}

int asked_again(LateRequests& late, int tries) {
  int count = 0;
  for (int i = 0; i < tries; ++i) count += late.may_ask_again() ? 1 : 0;
  return count;
}

TEST_CASE("a request is late when it takes longer than others of its size") {
  struct Case {
    const char* title;
    LateRequests late;
    std::size_t bytes;
    std::optional<Clock::Duration> want;
  };
  const Case cases[] = {
      {"too few are known", known(31), 0, std::nullopt},
      {"as the others", known(32), 0, milliseconds(100)},
      {"a mebibyte takes twice as long", known(32), 1 << 20, milliseconds(200)},
      {"known from large ones", known(32, milliseconds(300), 2 << 20), 0, milliseconds(100)},
      {"so short a wait costs less than a request", known(32, milliseconds(3)), 0, milliseconds(20)},
  };
  for (const Case& each : cases) {
    CAPTURE(each.title);
    const auto after = each.late.late_after(each.bytes);
    REQUIRE(after.has_value() == each.want.has_value());
    if (after) CHECK(std::chrono::abs(*after - *each.want) < std::chrono::microseconds(1));
  }
}

TEST_CASE("one slow answer of a hundred makes no other late, and the newest answers count") {
  LateRequests late = known(254);
  for (int i = 0; i < 2; ++i) late.took(0, std::chrono::seconds(9));
  CHECK(*late.late_after(0) == milliseconds(100));
  for (int i = 0; i < 256; ++i) late.took(0, std::chrono::seconds(9));
  CHECK(*late.late_after(0) == std::chrono::seconds(9));
}

TEST_CASE("one request of twenty is asked for again, and none after the store has said that it is too much") {
  LateRequests late;
  int again = 0;
  for (int i = 0; i < 1000; ++i) {
    late.took(0, milliseconds(100));
    again += asked_again(late, 1);
  }
  CHECK(again == Approx(50).margin(1));
  for (int i = 0; i < 1000; ++i) late.took(0, milliseconds(100));
  CHECK(asked_again(late, 100) == 12);  // what was not used does not pile up
  for (int i = 0; i < 100; ++i) late.took(0, milliseconds(100));
  late.store_is_busy();
  CHECK(asked_again(late, 1) == 0);
  for (int i = 0; i < 21; ++i) late.took(0, milliseconds(100));
  CHECK(asked_again(late, 1) == 1);
}

}  // namespace
}  // namespace sluice::object_store
