// Where and when figures were made: without that, a file of results says nothing.
//
// Thread safety: free function; reads the clock and the machine's own description.
#pragma once

#include <string>

namespace sluice::simulator {

struct Provenance {
  std::string date;      // ISO 8601, UTC
  std::string machine;   // processors, load
  std::string versions;  // of this program, its compiler and the kernel
};

Provenance provenance_now();

}  // namespace sluice::simulator
