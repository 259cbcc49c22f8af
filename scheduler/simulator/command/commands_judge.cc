// The commands that compare with something other than a policy: goals, limits, and a recorded run.
#include <algorithm>
#include <ostream>

#include "scheduler/simulator/command/catalogue.h"
#include "scheduler/simulator/command/command_line.h"
#include "scheduler/simulator/report/calibration.h"

namespace sluice::simulator {

Result<int> judge_catalogue(const Command& command) {
  const Flags& flags = command.flags;
  if (flags.positional().size() > 1)
    return invalid_argument("catalogue judges all scenarios of --catalogue FOLDER, and takes no file");
  SLUICE_TRY(const auto files, scenario_files(flags.text("catalogue")));
  SLUICE_TRY(const Sources sources, sources_of(flags));
  SLUICE_TRY(GridOptions options, grid_options(flags));
  for (const char* needed : {"sluice", "perfect", "no-stall"})
    if (std::find(options.policies.begin(), options.policies.end(), needed) == options.policies.end())
      options.policies.emplace_back(needed);
  command.output
      << (sources.lists_folder.empty()
              ? "Jobs: generated (--job-lists FOLDER takes published lists; the prototype's values are theirs)\n\n"
              : "Jobs: lists in " + sources.lists_folder + "\n\n");
  const Provenance provenance = provenance_now();
  std::vector<Verdict> verdicts;
  for (const std::string& file : files) {
    SLUICE_TRY(const Scenario scenario, read_scenario(file));
    if (!flags.given("policy")) options.policies = judged_policies(scenario);
    SLUICE_TRY(Verdict verdict, run_verdict(scenario, sources, options));
    command.output << verdict_table(verdict) << std::flush;
    verdicts.push_back(std::move(verdict));
    // After each: the grid takes long, and the rows so far can be read meanwhile.
    if (flags.given("json")) SLUICE_TRY_VOID(write_file(flags.text("json"), verdicts_json(verdicts, provenance)));
  }
  command.output << summary_table(verdicts);
  return all_reached(verdicts) ? 0 : 1;
}

Result<int> compare_with_oracle(const Command& command) {
  SLUICE_TRY(const Sources sources, sources_of(command.flags));
  const auto read = [&]() -> Result<Scenario> {
    if (command.flags.given("cluster")) return trace_scenario(command.flags, sources.profiles);
    SLUICE_TRY(const std::string path, only_file(command.flags, "SCENARIO.yaml"));
    return read_scenario(path);
  };
  SLUICE_TRY(const Scenario scenario, read());
  SLUICE_TRY(GridOptions options, grid_options(command.flags));
  for (const char* limit : {"perfect", "no-stall"})
    if (std::find(options.policies.begin(), options.policies.end(), limit) == options.policies.end())
      options.policies.emplace_back(limit);
  Verdict verdict;
  verdict.scenario = scenario;
  SLUICE_TRY(verdict.grid, run_grid(scenario, sources, options));
  SLUICE_TRY(verdict.lower_bounds, lower_bounds_of(scenario, verdict.grid, options.threads));
  command.output << oracle_table(verdict);
  return 0;
}

Result<int> calibrate_with_record(const Command& command) {
  const Flags& flags = command.flags;
  SLUICE_TRY(const std::string path, only_file(flags, "SCENARIO.yaml"));
  SLUICE_TRY(const Scenario scenario, read_scenario(path));
  SLUICE_TRY(const std::string text, read_file(flags.text("record")));
  SLUICE_TRY(const auto record, parse_record(text, flags.text("record"), flags.text("phase")));
  RunOptions options;
  options.timeline = true;
  SLUICE_TRY(const RunRecord run, run_policy("sluice", scenario.cluster, scenario.jobs, options));
  const double worker_cores = static_cast<double>(scenario.cluster.physics.worker_millicores) / 1000;
  SLUICE_TRY(const auto jobs, calibrate(record, run, scenario.jobs, worker_cores));
  command.output << scenario.name << ": " << scenario.summary << "\n" << calibration_table(jobs);
  return 0;
}

}  // namespace sluice::simulator
