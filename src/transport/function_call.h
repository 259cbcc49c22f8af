// A call of a function that the user has marked as one whose results may be kept (docs/designs/cache.md, "Results of
// functions"), as a Python child tells its parent, and what its calls have taken.
//
// Thread safety: plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace sluice::transport {

// Equal calls have equal results, as long as the files are in the same states.
struct FunctionCall {
  std::string function;            // module and qualified name
  std::string version;             // the user's, and a digest of the function's code
  std::string arguments;           // python/sluice/cache/kept_keys.py; opaque here
  std::vector<std::string> files;  // absolute paths, in the order in which the arguments name them
};

inline constexpr std::size_t kFunctionBytesMax = 512;
inline constexpr std::size_t kFunctionVersionBytesMax = 256;
inline constexpr std::size_t kArgumentBytesMax = std::size_t{16} << 10;
inline constexpr std::size_t kFilesPerCallMax = 8;
inline constexpr std::size_t kFilePathBytesMax = 4096;

// What one process has seen of a function since it last told. Seconds are by the clock, of all together.
struct CallReport {
  std::string function;
  // Made, where each marked function within was found, or is not asked for: what a call takes as long as nothing
  // changes. The other ones had to make what will be found the next time.
  std::uint64_t calls = 0;
  double call_seconds = 0;
  std::uint64_t cold_calls = 0;
  double cold_seconds = 0;
  std::uint64_t hits = 0;
  double hit_seconds = 0;  // from the call to the value
  std::uint64_t hit_bytes = 0;
  // Of calls whose results were sent to be kept: beside the call itself.
  std::uint64_t stores = 0;
  double store_seconds = 0;
  std::uint64_t damaged = 0;  // values that could not be read
  std::uint64_t late = 0;     // answers that did not come in time

  bool operator==(const CallReport&) const = default;
};

// What a batch's calls of one function were, for people.
struct KeptCost {
  std::string function;
  std::uint64_t calls = 0;
  std::uint64_t hits = 0;    // of these
  double saved_seconds = 0;  // estimated: what the hits would have taken as calls
  std::uint64_t bytes = 0;   // of the hits

  bool operator==(const KeptCost&) const = default;
};

// A batch has at most so many; a process that names more speaks nonsense.
inline constexpr std::size_t kKeptFunctionsMax = 64;

}  // namespace sluice::transport
