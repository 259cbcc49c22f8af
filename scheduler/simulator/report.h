// Results for people and programs: a table on the terminal, JSON, and one self-contained HTML page.
//
// Thread safety: pure functions.
#pragma once

#include <string>

#include "scheduler/simulator/experiment.h"
#include "scheduler/simulator/table.h"

namespace sluice::simulator {

// One row per policy, with 95 % confidence intervals, the ratio to the first policy, and the bound of what can be
// gained.
std::string text_report(const Scenario& scenario, const Grid& grid);

std::string json_report(const Scenario& scenario, const Grid& grid);

// Time lines of the first seed for every policy that recorded one; the same tables. No scripts, no references.
std::string html_report(const Scenario& scenario, const Grid& grid);

// One row per policy; utilisation and JCT are followed by the gains over the first policy.
Table policy_table(const Grid& grid);

// "8.2 h", "57 %", "12,345": a figure in its unit, to three significant digits.
std::string shown(Figure figure, double value);
std::string fixed(double value, int digits);  // "-": no number, as a ratio of nothing to nothing

// As text of a page: with entities for the characters that mean something there.
std::string escaped(const std::string& text);

// One sentence: what any policy can gain at most here.
std::string bound_sentence(const Bound& bound);

}  // namespace sluice::simulator
