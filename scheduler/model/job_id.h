// The identity of a training job.
//
// Thread safety: plain value.
#pragma once

#include <compare>
#include <string>

namespace sluice::scheduler {

struct JobId {
  std::string job_namespace;
  std::string name;

  friend auto operator<=>(const JobId&, const JobId&) = default;
};

}  // namespace sluice::scheduler
