// The flags that the commands of sluice-sim share, and the scenarios and sources that follow from them.
//
// Thread safety: free functions.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "scheduler/simulator/report/experiment.h"
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
// The file named after the command as a trace, on the cluster that --cluster names. A job list says all of its jobs, so
// a job that cannot run is an error. Other traces lose the jobs that are too large, and the summary says how many.
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
