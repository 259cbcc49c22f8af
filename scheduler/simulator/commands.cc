#include "scheduler/simulator/commands.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <ostream>
#include <thread>

#include "scheduler/simulator/experiment.h"
#include "scheduler/simulator/report.h"
#include "scheduler/simulator/scenario.h"
#include "src/base/flags.h"

namespace sluice::simulator {
namespace {

constexpr std::string_view kUsage =
    R"(sluice-sim run SCENARIO.yaml [flags]          policies on a scenario: one row each
sluice-sim trace --format FORMAT FILE --cluster CLUSTER.yaml [flags]   the same on a trace
sluice-sim generate SCENARIO.yaml [flags]     print a scenario's random jobs as a job list
)";

const std::vector<Flag>& known_flags() {
  static const std::vector<Flag> kFlags = {
      {"policy", "NAMES", "static,burst,synergy,hpa,keda,cachew,pecan,sluice", "comma-separated, or `all`; the first is compared with"},
      {"seeds", "N", "8", "runs with seeds 1 to N"},
      {"threads", "N", "0", "0: one per processor"},
      {"json", "FILE", "", "write all figures"},
      {"report", "FILE.html", "", "write a page with tables and time lines"},
      {"job-lists", "FOLDER", "", "published job lists; without it a scenario's jobs are generated (also: SLUICE_JOB_LISTS)"},
      {"catalogue", "FOLDER", "scheduler/simulator/catalogue", "profiles.yaml and the scenarios P1 to P8"},
      {"format", "FORMAT", "joblist", "of a trace: joblist, philly, alibaba-v2023 or sia"},
      {"cluster", "FILE", "", "of a trace: nodes and physics"},
      {"most-jobs", "N", "1000", "of a trace: the first so many jobs"},
      {"time-divisor", "N", "1", "of a trace: arrivals and durations are divided by it"},
      {"seed", "N", "1", "of generate"},
      {"help", "", "", "this text"},
  };
  return kFlags;
}

// What every command gets.
struct Command {
  const Flags& flags;
  std::ostream& output;
};

std::vector<std::string> split_names(const std::string& text) {
  if (text == "all") return all_policies();
  std::vector<std::string> names;
  std::size_t at = 0;
  while (at <= text.size()) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string name = text.substr(at, end - at);
    if (!name.empty() && std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    at = end + 1;
  }
  return names;
}

Result<int> count_flag(const Flags& flags, std::string_view name, int least) {
  SLUICE_TRY(const std::int64_t value, flags.integer(name));
  if (value < least || value > 1000000) return invalid_argument("--" + std::string(name) + ": out of range");
  return static_cast<int>(value);
}

Result<GridOptions> grid_options(const Flags& flags) {
  GridOptions options;
  options.policies = split_names(flags.text("policy"));
  if (options.policies.empty()) return invalid_argument("--policy names none");
  SLUICE_TRY(options.seeds, count_flag(flags, "seeds", 1));
  SLUICE_TRY(options.threads, count_flag(flags, "threads", 0));
  if (options.threads == 0) options.threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  options.timeline = flags.given("report");
  return options;
}

Result<Sources> sources_of(const Flags& flags) {
  Sources sources;
  sources.lists_folder = flags.text("job-lists");
  if (const char* folder = std::getenv("SLUICE_JOB_LISTS"); sources.lists_folder.empty() && folder != nullptr)
    sources.lists_folder = folder;
  const std::string path = flags.text("catalogue") + "/profiles.yaml";
  SLUICE_TRY(const std::string text, read_file(path));
  SLUICE_TRY(sources.profiles, parse_profiles(text, path));
  return sources;
}

Result<void> write_file(const std::string& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary);
  out << text;
  out.close();
  if (!out) return errno_error("write " + path);
  return {};
}

Result<std::string> positional(const Flags& flags, const std::string& what) {
  if (flags.positional().size() != 2) return invalid_argument("expected one " + what);
  return flags.positional()[1];
}

Result<Scenario> scenario_of(const Flags& flags) {
  SLUICE_TRY(const std::string path, positional(flags, "SCENARIO.yaml"));
  SLUICE_TRY(const std::string text, read_file(path));
  return parse_scenario(text, path);
}

Result<int> report(const Command& command, const Scenario& scenario, const Sources& sources) {
  SLUICE_TRY(const GridOptions options, grid_options(command.flags));
  SLUICE_TRY(const Grid grid, run_grid(scenario, sources, options));
  command.output << text_report(scenario, grid);
  if (command.flags.given("json"))
    SLUICE_TRY_VOID(write_file(command.flags.text("json"), json_report(scenario, grid)));
  if (command.flags.given("report"))
    SLUICE_TRY_VOID(write_file(command.flags.text("report"), html_report(scenario, grid)));
  return 0;
}

Result<int> run(const Command& command) {
  SLUICE_TRY(const Scenario scenario, scenario_of(command.flags));
  SLUICE_TRY(const Sources sources, sources_of(command.flags));
  return report(command, scenario, sources);
}

Result<int> trace(const Command& command) {
  const Flags& flags = command.flags;
  SLUICE_TRY(const std::string path, positional(flags, "trace FILE"));
  if (flags.text("cluster").empty()) return invalid_argument("--cluster CLUSTER.yaml is missing");
  SLUICE_TRY(const TraceFormat format, trace_format(flags.text("format")));
  SLUICE_TRY(const std::string cluster_text, read_file(flags.text("cluster")));
  SLUICE_TRY(const std::string trace_text, read_file(path));
  SLUICE_TRY(const Sources sources, sources_of(flags));
  Scenario scenario;
  scenario.name = path;
  scenario.summary = "trace in format " + flags.text("format");
  SLUICE_TRY(scenario.cluster, parse_cluster(cluster_text, flags.text("cluster")));
  TraceAssumptions assumptions;
  SLUICE_TRY(assumptions.most_jobs, count_flag(flags, "most-jobs", 1));
  SLUICE_TRY(const int divisor, count_flag(flags, "time-divisor", 1));
  assumptions.time_scale = divisor;
  SLUICE_TRY(scenario.jobs, parse_trace(format, trace_text, path, assumptions, sources.profiles));
  return report(command, scenario, sources);
}

Result<int> generate_list(const Command& command) {
  SLUICE_TRY(Scenario scenario, scenario_of(command.flags));
  SLUICE_TRY(Sources sources, sources_of(command.flags));
  sources.lists_folder.clear();
  SLUICE_TRY(const int seed, count_flag(command.flags, "seed", 0));
  SLUICE_TRY(const Workload jobs, workload_of(scenario, sources, static_cast<std::uint64_t>(seed)));
  for (const JobSpec& job : jobs)
    command.output << fixed(job.arrival_seconds, 3) << ' ' << job.gpus << ' ' << fixed(job.ideal_seconds, 3) << ' '
                   << fixed(job.knee_cores_per_gpu, 5) << ' ' << fixed(job.network_gbps_per_gpu, 3) << '\n';
  return 0;
}

}  // namespace

int run_command(const std::vector<const char*>& words, std::ostream& output, std::ostream& errors) {
  const Result<Flags> flags = Flags::parse(known_flags(), static_cast<int>(words.size()), words.data());
  if (!flags.ok()) {
    errors << flags.error().message() << "\n";
    return 2;
  }
  const std::string name = flags->positional().empty() ? "" : flags->positional()[0];
  const std::vector<std::pair<std::string, std::function<Result<int>(const Command&)>>> commands = {
      {"run", run}, {"trace", trace}, {"generate", generate_list}};
  const auto found = std::find_if(commands.begin(), commands.end(), [&](const auto& c) { return c.first == name; });
  if (flags->given("help") || found == commands.end()) {
    (flags->given("help") ? output : errors) << Flags::help(known_flags(), kUsage);
    return flags->given("help") ? 0 : 2;
  }
  const Result<int> code = found->second({*flags, output});
  if (code.ok()) return *code;
  errors << code.error().message() << "\n";
  const bool input = code.error().code() == ErrorCode::kInvalidArgument || code.error().code() == ErrorCode::kNotFound;
  return input ? 2 : 1;
}

}  // namespace sluice::simulator
