// What an answer of a store means for the range that was asked for.
//
// Every answer must be of the state that the range was found in, and of the right place and length: anything else is
// asked for again, or an error. Thread safety: pure functions and values.
#pragma once

#include <optional>
#include <string>

#include "src/object_store/network.h"
#include "src/object_store/object_range.h"

namespace sluice::object_store {

enum class Meaning {
  kBytes,       // the range's
  kPassing,     // worth another attempt
  kRedirected,  // to another place
  kExpired,     // the credentials have: renewed ones may be shown once more
  kFinal,       // an error
};

struct Verdict {
  Meaning meaning = Meaning::kBytes;
  std::string reason = {};          // kPassing: for people
  bool is_throttled = false;        // kPassing: the store says that it is too much
  Clock::Duration wait{0};          // kPassing: what Retry-After says
  std::optional<Error> error = {};  // kFinal: without the range; kExpired: what it is if renewing does not help
};

Verdict judge(const HttpAnswer& answer, const ObjectRange& range, const Target& target);

}  // namespace sluice::object_store
