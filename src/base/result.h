// Errors as values.
//
// Every fallible function of Sluice returns Result<T>: either a T or an Error. Its code tells the caller whether to
// retry, give up or look elsewhere; its message tells a person the object, the field and the way out of the failure.
// Exceptions never cross a library boundary; code that calls a throwing library catches at the call.
//
// Thread safety: values; as thread-safe as T.
#pragma once

#include <cassert>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace sluice {

// The kinds of errors, by the caller's next step. The set is closed on purpose: a new code needs a new reaction.
enum class ErrorCode {
  kInvalidArgument,    // the input is wrong; retrying the same call cannot help
  kNotFound,           // the object does not exist
  kAlreadyExists,      // another client created it first
  kConflict,           // a precondition (uid, resourceVersion) no longer holds: read again, decide again
  kGone,               // the history asked for is no longer kept (HTTP 410): list again
  kPermissionDenied,   // authenticated, but not allowed
  kUnauthenticated,    // credentials missing or expired
  kResourceExhausted,  // a bound was reached (memory, slots, HTTP 429)
  kUnavailable,        // the other side is away: retry later
  kDeadlineExceeded,   // no answer in time; the outcome is unknown
  kCancelled,          // we were asked to stop
  kDataLoss,           // the bytes are damaged (truncated JPEG, broken frame)
  kInternal,           // a bug or an unexpected answer
};

std::string_view to_string(ErrorCode code);

class [[nodiscard]] Error {
 public:
  Error(ErrorCode code, std::string message) : code_(code), message_(std::move(message)) {}

  ErrorCode code() const { return code_; }
  const std::string& message() const { return message_; }

  // The same error with "context: " put before the message; for adding the object or file on the way up.
  Error with_context(std::string_view context) const;

  // "NotFound: pod a/b does not exist"
  std::string to_string() const;

  friend bool operator==(const Error&, const Error&) = default;

 private:
  ErrorCode code_;
  std::string message_;
};

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT(google-explicit-constructor)
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  // REQUIRES: ok()
  T& value() & { return *checked(); }
  const T& value() const& { return *checked(); }
  T&& value() && { return std::move(*checked()); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return checked(); }
  const T* operator->() const { return checked(); }

  T value_or(T fallback) const& { return ok() ? value() : std::move(fallback); }

  // REQUIRES: !ok()
  const Error& error() const {
    assert(!ok());
    return std::get<1>(state_);
  }

 private:
  T* checked() {
    assert(ok());
    return &std::get<0>(state_);
  }
  const T* checked() const {
    assert(ok());
    return &std::get<0>(state_);
  }

  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }

  // REQUIRES: !ok()
  const Error& error() const {
    assert(!ok());
    return *error_;
  }

 private:
  std::optional<Error> error_;
};

inline Error invalid_argument(std::string message) { return {ErrorCode::kInvalidArgument, std::move(message)}; }
inline Error not_found(std::string message) { return {ErrorCode::kNotFound, std::move(message)}; }
inline Error unavailable(std::string message) { return {ErrorCode::kUnavailable, std::move(message)}; }
inline Error internal_error(std::string message) { return {ErrorCode::kInternal, std::move(message)}; }

// Error of the current errno: "open /a/b: No such file or directory". The code follows from the errno.
Error errno_error(std::string_view what);

}  // namespace sluice

#define SLUICE_CONCAT_INNER(a, b) a##b
#define SLUICE_CONCAT(a, b) SLUICE_CONCAT_INNER(a, b)

// SLUICE_TRY(auto spec, parse(text));  declares `spec`, or returns parse's error from the enclosing function.
#define SLUICE_TRY(declaration, expression)                                                            \
  auto SLUICE_CONCAT(sluice_try_, __LINE__) = (expression);                                            \
  if (!SLUICE_CONCAT(sluice_try_, __LINE__).ok()) return SLUICE_CONCAT(sluice_try_, __LINE__).error(); \
  declaration = std::move(SLUICE_CONCAT(sluice_try_, __LINE__)).value()

// SLUICE_TRY_VOID(write(file));  returns write's error from the enclosing function, if any.
#define SLUICE_TRY_VOID(expression)                                                                       \
  do {                                                                                                    \
    if (auto sluice_try_result = (expression); !sluice_try_result.ok()) return sluice_try_result.error(); \
  } while (false)
