// All scenarios of a folder, judged: what `make sim-report` prints.
//
// Thread safety: free functions.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "scheduler/simulator/report/goals.h"
#include "scheduler/simulator/report/provenance.h"

namespace sluice::simulator {

struct Verdict {
  Scenario scenario;
  Grid grid;
  std::vector<double> lower_bounds;  // by seed
  std::vector<Judged> judged;
};

// The scenarios of a folder: files whose names are a capital letter and a number, as P1.yaml. By name.
// Errors: NotFound when there is none.
Result<std::vector<std::string>> scenario_files(const std::string& folder);

Result<Verdict> run_verdict(const Scenario& scenario, const Sources& sources, const GridOptions& options);

// One line per figure: value, interval, the prototype's value, goal, `ok` or `falls short`.
std::string verdict_table(const Verdict& verdict);
// Geometric means of the gains over the scenarios that the prototype ran, and how many goals of all were reached.
std::string summary_table(const std::vector<Verdict>& verdicts);
std::string verdicts_json(const std::vector<Verdict>& verdicts, const Provenance& provenance);

bool all_reached(const std::vector<Verdict>& verdicts);

// Every policy beside the limits: Sluice with perfect information, and the bound of all schedules.
std::string oracle_table(const Verdict& verdict);

}  // namespace sluice::simulator
