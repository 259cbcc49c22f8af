#include "scheduler/simulator/report.h"
namespace sluice::simulator {
std::string html_report(const Scenario&, const Grid&) { return ""; }
}  // namespace sluice::simulator
