// Prometheus' instant query. A missing value is never zero: it is absent, with the reason.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.h"

namespace sluice::http {
class Transport;
}

namespace sluice::prom {

using Labels = std::map<std::string, std::string>;

struct Sample {
  Labels labels;
  double value = 0;              // finite
  double timestamp_seconds = 0;  // of the evaluation (Unix time), not of the scrape
};

// A series that the server answered with a value that is no finite number.
struct AbsentSample {
  Labels labels;
  std::string reason;  // "NaN", "+Inf", "-Inf"
};

struct InstantVector {
  std::vector<Sample> samples;  // may be empty: the query is answered, by nothing
  std::vector<AbsentSample> absent;
  std::vector<std::string> warnings;  // of the server: the answer may be partial
};

// Thread safety: all methods may be called from any thread.
class Client {
 public:
  explicit Client(std::shared_ptr<http::Transport> transport,
                  std::chrono::milliseconds timeout = std::chrono::seconds(5));

  // Evaluates `expression` (PromQL yielding a vector or a scalar) now, by the server's clock. Takes `timeout` at most
  // where that is less than the client's own.
  // Errors, by code:
  //   Unavailable         no server answers at the address, or HTTP 502 or 503
  //   DeadlineExceeded    no answer in time, or the server gave the query up ("timeout")
  //   Unauthenticated, PermissionDenied   HTTP 401, 403
  //   InvalidArgument     the server refuses the expression ("bad_data"), or its result is no vector
  //   Internal            another HTTP status or another error of the query engine
  //   DataLoss            the answer is not the JSON that Prometheus' API promises
  //   Cancelled           `stop`
  Result<InstantVector> query(std::string_view expression, std::stop_token stop = {},
                              std::chrono::milliseconds timeout = std::chrono::milliseconds::max()) const;

 private:
  std::shared_ptr<http::Transport> transport_;
  std::chrono::milliseconds timeout_;
};

}  // namespace sluice::prom
