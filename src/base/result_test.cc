#include "src/base/result.h"

#include <cerrno>
#include <memory>
#include <string>

#include "src/base/testing/catch.h"

namespace sluice {
namespace {

Result<int> parse_digit(char c) {
  if (c < '0' || c > '9') return invalid_argument(std::string("not a digit: ") + c);
  return c - '0';
}

Result<int> sum_of_digits(const std::string& text) {
  int sum = 0;
  for (char c : text) {
    SLUICE_TRY(const int digit, parse_digit(c));
    sum += digit;
  }
  return sum;
}

Result<void> all_digits(const std::string& text) {
  SLUICE_TRY_VOID([&]() -> Result<void> {
    if (auto sum = sum_of_digits(text); !sum) return sum.error();
    return {};
  }());
  return {};
}

TEST_CASE("a result carries the value when every step succeeds") {
  REQUIRE(sum_of_digits("123").ok());
  CHECK(*sum_of_digits("123") == 6);
  CHECK(all_digits("42").ok());
}

TEST_CASE("the first error leaves the function and keeps its code and message") {
  const auto result = sum_of_digits("1x3");
  REQUIRE_FALSE(result.ok());
  CHECK(result.error() == invalid_argument("not a digit: x"));
  CHECK(all_digits("4z").error().to_string() == "InvalidArgument: not a digit: z");
  CHECK(result.value_or(7) == 7);
}

TEST_CASE("context is put before the message and the code stays") {
  const Error error = not_found("pod b").with_context("scale-in of pool a");
  CHECK(error.code() == ErrorCode::kNotFound);
  CHECK(error.message() == "scale-in of pool a: pod b");
}

TEST_CASE("a result can carry a value that only moves") {
  Result<std::unique_ptr<int>> result = std::make_unique<int>(5);
  auto owned = std::move(result).value();
  CHECK(*owned == 5);
}

TEST_CASE("errno maps to the code that tells the caller what to do") {
  struct Case {
    int number;
    ErrorCode want;
  };
  for (const auto& c : {Case{ENOENT, ErrorCode::kNotFound}, Case{EACCES, ErrorCode::kPermissionDenied},
                        Case{EPIPE, ErrorCode::kUnavailable}, Case{ENOMEM, ErrorCode::kResourceExhausted},
                        Case{EIO, ErrorCode::kInternal}}) {
    errno = c.number;
    CHECK(errno_error("open /a").code() == c.want);
  }
}

}  // namespace
}  // namespace sluice
