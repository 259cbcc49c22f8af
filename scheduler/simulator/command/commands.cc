#include "scheduler/simulator/command/commands.h"

#include <algorithm>
#include <array>
#include <ostream>

#include "scheduler/simulator/command/command_line.h"
#include "scheduler/simulator/report/report.h"

namespace sluice::simulator {
namespace {

constexpr std::string_view kUsage =
    R"(sluice-sim run SCENARIO.yaml [flags]                              policies on a scenario, one row each
sluice-sim trace FILE --format FORMAT --cluster CLUSTER.yaml [flags]  the same on a trace
sluice-sim oracle SCENARIO.yaml [flags]                           policies beside what no policy can beat
sluice-sim oracle FILE --format FORMAT --cluster CLUSTER.yaml [flags] the same on a trace
sluice-sim catalogue [flags]                                      all scenarios of the catalogue against their goals
sluice-sim calibrate SCENARIO.yaml [flags]                        the simulator against a recorded real run
sluice-sim generate SCENARIO.yaml [--seed N]                      a scenario's random jobs, as a job list)";

struct Entry {
  std::string_view name;
  Result<int> (*run)(const Command&);
};

constexpr std::array kCommands = {
    Entry{"run", run_scenario},          Entry{"trace", run_trace},     Entry{"oracle", compare_with_oracle},
    Entry{"catalogue", judge_catalogue}, Entry{"generate", print_jobs}, Entry{"calibrate", calibrate_with_record},
};

Result<int> report(const Command& command, const Scenario& scenario, const Sources& sources) {
  SLUICE_TRY(const GridOptions options, grid_options(command.flags));
  SLUICE_TRY(const Grid grid, run_grid(scenario, sources, options));
  command.output << text_report(scenario, grid);
  if (command.flags.given("json")) SLUICE_TRY_VOID(write_file(command.flags.text("json"), json_report(scenario, grid)));
  return 0;
}

}  // namespace

Result<int> run_scenario(const Command& command) {
  SLUICE_TRY(const std::string path, only_file(command.flags, "SCENARIO.yaml"));
  SLUICE_TRY(const Scenario scenario, read_scenario(path));
  SLUICE_TRY(const Sources sources, sources_of(command.flags));
  return report(command, scenario, sources);
}

Result<int> run_trace(const Command& command) {
  SLUICE_TRY(const Sources sources, sources_of(command.flags));
  SLUICE_TRY(const Scenario scenario, trace_scenario(command.flags, sources.profiles));
  return report(command, scenario, sources);
}

Result<int> print_jobs(const Command& command) {
  SLUICE_TRY(const std::string path, only_file(command.flags, "SCENARIO.yaml"));
  SLUICE_TRY(const Scenario scenario, read_scenario(path));
  SLUICE_TRY(Sources sources, sources_of(command.flags));
  sources.lists_folder.clear();
  SLUICE_TRY(const int seed, count_flag(command.flags, "seed", 0));
  SLUICE_TRY(const Workload jobs, workload_of(scenario, sources, static_cast<std::uint64_t>(seed)));
  for (const JobSpec& job : jobs)
    command.output << fixed(job.arrival_seconds, 3) << ' ' << job.gpus << ' ' << fixed(job.ideal_seconds, 3) << ' '
                   << fixed(job.knee_cores_per_gpu, 5) << ' ' << fixed(job.network_gbps_per_gpu, 3) << '\n';
  return 0;
}

int run_command(const std::vector<const char*>& words, std::ostream& output, std::ostream& errors) {
  const Result<Flags> flags = Flags::parse(known_flags(), static_cast<int>(words.size()), words.data());
  if (!flags.ok()) {
    errors << flags.error().message() << "\n";
    return 2;
  }
  const std::string name = flags->positional().empty() ? "" : flags->positional()[0];
  const auto found = std::find_if(kCommands.begin(), kCommands.end(), [&](const Entry& e) { return e.name == name; });
  const bool help = flags->given("help");
  if (help || found == kCommands.end()) {
    (help ? output : errors) << Flags::help(known_flags(), kUsage);
    return help ? 0 : 2;
  }
  const Result<int> code = found->run({*flags, output});
  if (code.ok()) return *code;
  errors << code.error().message() << "\n";
  const ErrorCode why = code.error().code();
  return why == ErrorCode::kInvalidArgument || why == ErrorCode::kNotFound ? 2 : 1;
}

}  // namespace sluice::simulator
