// Results for people and programs: a table on the terminal, and JSON, of which page.py makes an HTML page.
//
// Thread safety: pure functions.
#pragma once

#include <string>

#include "scheduler/simulator/report/experiment.h"
#include "src/base/table.h"

namespace sluice::simulator {

// One row per policy, with 95 % confidence intervals, the ratio to the first policy, and the bound of the
// gain.
std::string text_report(const Scenario& scenario, const Grid& grid);

// Every figure by policy and seed, the same table, and the time lines of the first seed for policies that recorded one.
std::string json_report(const Scenario& scenario, const Grid& grid);

// One row per policy; utilisation and JCT are followed by the gains over the first policy.
Table policy_table(const Grid& grid);

// "8.2 h", "57 %", "12,345": a figure in its unit, to three significant digits.
std::string shown(Figure figure, double value);
std::string fixed(double value, int digits);  // "-": no number, as a ratio of nothing to nothing

// One sentence: the most that any policy can gain here.
std::string bound_sentence(const Bound& bound);

}  // namespace sluice::simulator
