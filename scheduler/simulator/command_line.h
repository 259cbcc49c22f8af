// What the commands of sluice-sim share: their flags, and how scenarios and sources follow from them.
//
// Thread safety: free functions.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "scheduler/simulator/experiment.h"
#include "src/base/flags.h"

namespace sluice::simulator {

struct Command {
  const Flags& flags;
  std::ostream& output;
};

const std::vector<Flag>& known_flags();

// A whole number within bounds. Errors: InvalidArgument naming the flag.
Result<int> count_flag(const Flags& flags, std::string_view name, int least);
Result<GridOptions> grid_options(const Flags& flags);
Result<Sources> sources_of(const Flags& flags);
// The one file that is named after the command. Errors: InvalidArgument saying `what` was expected.
Result<std::string> only_file(const Flags& flags, const std::string& what);
Result<Scenario> read_scenario(const std::string& path);
// The file named after the command as a trace, on the cluster that --cluster names. A job list says all there is to say
// of its jobs, so one that cannot run is an error; from other traces what is too large is left out, and the summary
// says how much.
Result<Scenario> trace_scenario(const Flags& flags, const Profiles& profiles);
Result<void> write_file(const std::string& path, const std::string& text);

// The commands: commands.cc, and commands_judge.cc for those that compare with other than policies. The result is the
// exit code.
Result<int> run_scenario(const Command& command);
Result<int> run_trace(const Command& command);
Result<int> print_jobs(const Command& command);
Result<int> judge_catalogue(const Command& command);
Result<int> compare_with_oracle(const Command& command);
Result<int> calibrate_with_record(const Command& command);

}  // namespace sluice::simulator
