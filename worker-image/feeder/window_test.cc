#include "worker-image/feeder/window.h"

#include "src/base/testing/catch.h"

namespace sluice::feeder {
namespace {

constexpr std::size_t kMebibyte = std::size_t{1} << 20;

TEST_CASE("the window covers the executors and fits in the arena") {
  struct Case {
    const char* name;
    WindowInputs inputs;
    std::size_t want;
  };
  const Case cases[] = {
      {"two local threads, small batches", {2, 1, 0, 512 * kMebibyte, 1 * kMebibyte}, 5},
      {"the client prefers more", {2, 1, 16, 512 * kMebibyte, 1 * kMebibyte}, 16},
      {"eight workers with two credits", {17, 1, 4, 512 * kMebibyte, 1 * kMebibyte}, 27},
      {"the arena bounds it: 448 MiB may be lent", {100, 1, 4, 512 * kMebibyte, 40 * kMebibyte}, 11},
      {"two ranks share the arena", {100, 2, 4, 512 * kMebibyte, 40 * kMebibyte}, 5},
      {"one batch fills the arena: it is copied out", {100, 1, 4, 100 * kMebibyte, 100 * kMebibyte}, kWindowMin},
      {"batch size not known yet: an eighth of the arena", {100, 1, 4, 512 * kMebibyte, 0}, 7},
      {"no executor yet", {0, 1, 0, 512 * kMebibyte, 1 * kMebibyte}, 2},
      {"bounded", {5000, 1, 0, 512 * kMebibyte, 4096}, kWindowMax},
  };
  for (const Case& test : cases) {
    INFO(test.name);
    CHECK(window_batches(test.inputs) == test.want);
  }
}

TEST_CASE("the arena that is wanted is the smallest that holds what clients would like") {
  struct Case {
    const char* name;
    WindowInputs inputs;
    std::size_t want_window;
  };
  const Case cases[] = {
      {"sixteen ahead", {100, 1, 16, 0, 150 * kMebibyte}, 16},
      {"few large ones: a whole batch stays free", {100, 1, 3, 0, 150 * kMebibyte}, 3},
      {"four ranks", {100, 4, 16, 0, 1000}, 16},
      {"no wish", {100, 1, 0, 0, 1000}, kWindowMin},
      {"more than any window", {5000, 1, 5000, 0, 10}, kWindowMax},
  };
  for (Case test : cases) {
    INFO(test.name);
    test.inputs.arena_bytes = arena_bytes_wanted(test.inputs);
    CHECK(window_batches(test.inputs) >= test.want_window);
    test.inputs.arena_bytes -= test.inputs.arena_bytes / 50 + 1;
    const std::size_t lendable = test.inputs.arena_bytes - keep_bytes(test.inputs.arena_bytes, test.inputs.batch_bytes);
    CHECK(lendable / test.inputs.clients / test.inputs.batch_bytes < test.want_window);
  }
}

TEST_CASE("room for the next batch is kept free of lent slots") {
  CHECK(keep_bytes(512 * kMebibyte, 1 * kMebibyte) == 64 * kMebibyte);
  CHECK(keep_bytes(512 * kMebibyte, 150 * kMebibyte) == 150 * kMebibyte);
  CHECK(keep_bytes(100 * kMebibyte, 150 * kMebibyte) == 100 * kMebibyte);
}

}  // namespace
}  // namespace sluice::feeder
