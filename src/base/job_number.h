// The number by which the caches of nodes know a training job (docs/designs/cache.md, "Which job asks"). The job's
// processes, the daemons and the operator make it alike.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <string_view>

namespace sluice {

// As the processes of the job say it.
std::uint64_t job_number(std::string_view job_namespace, std::string_view job);

// A number as its owner said it: no other owner can say the same one.
std::uint64_t number_of(std::string_view owner, std::uint64_t number);

}  // namespace sluice
