#include "src/base/result.h"

#include <cerrno>
#include <system_error>

namespace sluice {

std::string_view to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument: return "InvalidArgument";
    case ErrorCode::kNotFound: return "NotFound";
    case ErrorCode::kAlreadyExists: return "AlreadyExists";
    case ErrorCode::kConflict: return "Conflict";
    case ErrorCode::kGone: return "Gone";
    case ErrorCode::kPermissionDenied: return "PermissionDenied";
    case ErrorCode::kUnauthenticated: return "Unauthenticated";
    case ErrorCode::kResourceExhausted: return "ResourceExhausted";
    case ErrorCode::kUnavailable: return "Unavailable";
    case ErrorCode::kDeadlineExceeded: return "DeadlineExceeded";
    case ErrorCode::kCancelled: return "Cancelled";
    case ErrorCode::kDataLoss: return "DataLoss";
    case ErrorCode::kInternal: return "Internal";
  }
  return "Unknown";
}

Error Error::with_context(std::string_view context) const { return {code_, std::string(context) + ": " + message_}; }

std::string Error::to_string() const { return std::string(sluice::to_string(code_)) + ": " + message_; }

namespace {

ErrorCode code_of_errno(int number) {
  switch (number) {
    case ENOENT: return ErrorCode::kNotFound;
    case EEXIST: return ErrorCode::kAlreadyExists;
    case EACCES:
    case EPERM: return ErrorCode::kPermissionDenied;
    case EINVAL: return ErrorCode::kInvalidArgument;
    case ENOMEM:
    case ENOSPC:
    case EMFILE:
    case ENFILE: return ErrorCode::kResourceExhausted;
    case EPIPE:
    case ECONNREFUSED:
    case ECONNRESET:
    case EAGAIN: return ErrorCode::kUnavailable;
    case ETIMEDOUT: return ErrorCode::kDeadlineExceeded;
    default: return ErrorCode::kInternal;
  }
}

}  // namespace

Error errno_error(std::string_view what) {
  const int number = errno;
  return {code_of_errno(number), std::string(what) + ": " + std::generic_category().message(number)};
}

}  // namespace sluice
