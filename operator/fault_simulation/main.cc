// sluice-simulation: runs Sluice's control plane against faults, in virtual time.
//
//   --seed N            one run, with its trace
//   --scenario FILE     the same, of a plan in a file
//   --runs N            N seeds, from --first on
//   --minutes M         as many seeds as fit, from --first on (the soak)
//   --theme NAME        every run of an enumerated campaign (campaign_themes.h), or of `all`
//   --save DIRECTORY    where failures become scenario files
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <sstream>

#include "operator/fault_simulation/campaign.h"
#include "operator/fault_simulation/campaign_themes.h"
#include "src/base/flags.h"
#include "src/base/logging.h"

namespace sluice::simulation {
namespace {

const std::vector<Flag> kFlags = {{"seed", "N", "", "one run, with its trace"},
                                  {"scenario", "FILE", "", "one run of the plan in the file, with its trace"},
                                  {"runs", "N", "1000", "how many seeds"},
                                  {"first", "N", "1", "the first seed"},
                                  {"minutes", "M", "", "run seeds for this long"},
                                  {"theme", "NAME", "", "every run of orders, clocks, drains, upgrades, sieve, or all"},
                                  {"save", "DIRECTORY", "", "where failures become scenario files"},
                                  {"help", "", "", "show this text"}};

int run_one(const FaultPlan& plan) {
  RunOptions options;
  options.trace = true;
  const Outcome outcome = simulate_and_compare(plan, options);
  for (const std::string& line : outcome.trace) std::cout << line << "\n";
  std::cout << plan.to_json().dump() << "\n";
  for (const std::string& violation : outcome.violations) std::cout << "VIOLATION " << violation << "\n";
  std::cout << (outcome.violations.empty() ? "as it should be" : "failed") << ", " << outcome.operator_writes
            << " writes in " << outcome.seconds << " virtual seconds\n";
  return outcome.violations.empty() ? 0 : 1;
}

// As plan and violations; the second time without what it fails without as well.
void show(const char* what, const FaultPlan& plan, const std::vector<std::string>& violations) {
  std::cout << what << " " << plan.to_json().dump() << "\n";
  for (const std::string& violation : violations) std::cout << "  " << violation << "\n";
}

int report(const CampaignResult& result, std::chrono::steady_clock::time_point began, const std::string& directory) {
  int number = 0;
  for (const Failure& failure : result.failures) {
    show("FAILED", failure.plan, failure.violations);
    const FaultPlan simplest = simplest_failing(
        failure.plan, [](const FaultPlan& plan) { return !simulate_and_compare(plan).violations.empty(); });
    if (simplest.to_json() != failure.plan.to_json())
      show("  fails as", simplest, simulate_and_compare(simplest).violations);
    // A plan that was drawn from its seed; another one needs a file (--save).
    if (random_plan(failure.plan.seed).to_json() == failure.plan.to_json())
      std::cout << "  again, with its trace: sluice-simulation --seed " << failure.plan.seed << "\n";
    if (directory.empty()) continue;
    const std::string path = directory + "/failure-" + std::to_string(++number) + ".json";
    std::ofstream(path) << scenario_text(failure);
    std::cout << "  saved as " << path << "\n";
  }
  const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  std::printf("%llu runs, %llu operator writes, %.0f virtual hours in %.1f s: %zu failures\n",
              static_cast<unsigned long long>(result.runs), static_cast<unsigned long long>(result.operator_writes),
              result.virtual_seconds / 3600, took, result.failures.size());
  return result.failures.empty() ? 0 : 1;
}

// None: no such theme.
std::vector<FaultPlan> plans_of_theme(const std::string& name) {
  std::vector<FaultPlan> plans;
  for (const CampaignTheme& theme : campaign_themes())
    if (name == "all" || name == theme.name)
      for (FaultPlan& plan : theme.plans()) plans.push_back(std::move(plan));
  return plans;
}

int run(const Flags& flags) {
  set_log_sink([](std::string_view) {});  // the operators', in virtual time
  if (flags.given("seed")) return run_one(random_plan(std::stoull(flags.text("seed"))));
  if (flags.given("scenario")) {
    std::ostringstream text;
    text << std::ifstream(flags.text("scenario")).rdbuf();
    const auto plan = FaultPlan::from_json(nlohmann::json::parse(text.str(), nullptr, false));
    if (!plan.ok()) {
      std::cerr << plan.error().to_string() << "\n";
      return 2;
    }
    return run_one(*plan);
  }
  const auto began = std::chrono::steady_clock::now();
  if (flags.given("theme")) {
    const auto plans = plans_of_theme(flags.text("theme"));
    if (plans.empty()) {
      std::cerr << "--theme " << flags.text("theme") << ": there is orders, clocks, drains, upgrades, sieve, all\n";
      return 2;
    }
    return report(run_campaign(plans.size(), [&](std::uint64_t index) { return plans[index]; }), began,
                  flags.text("save"));
  }
  const std::uint64_t first = std::stoull(flags.text("first"));
  const auto plan_at = [&](std::uint64_t index) { return random_plan(first + index); };
  if (!flags.given("minutes"))
    return report(run_campaign(std::stoull(flags.text("runs")), plan_at), began, flags.text("save"));
  const auto until = began + std::chrono::duration<double, std::ratio<60>>(std::stod(flags.text("minutes")));
  const auto enough = [&] { return std::chrono::steady_clock::now() >= until; };
  return report(run_campaign(~std::uint64_t{0}, plan_at, enough), began, flags.text("save"));
}

}  // namespace
}  // namespace sluice::simulation

int main(int argc, char** argv) {
  using namespace sluice;
  const auto flags = Flags::parse(simulation::kFlags, argc, argv);
  if (!flags.ok() || flags->given("help")) {
    if (!flags.ok()) std::cerr << flags.error().message() << "\n";
    std::cerr << Flags::help(simulation::kFlags, "sluice-simulation");
    return flags.ok() ? 0 : 2;
  }
  return simulation::run(*flags);
}
