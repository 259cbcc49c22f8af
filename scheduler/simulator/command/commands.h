// The commands of sluice-sim.
//
// Exit codes: 0 done; 1 a goal was missed, or a run failed; 2 bad usage or bad input, said as FILE:LINE on `errors`.
// Thread safety: none.
#pragma once

#include <iosfwd>
#include <vector>

namespace sluice::simulator {

// words[0] is the program's name, words[1] the command.
int run_command(const std::vector<const char*>& words, std::ostream& output, std::ostream& errors);

}  // namespace sluice::simulator
