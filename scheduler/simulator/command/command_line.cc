#include "scheduler/simulator/command/command_line.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <thread>

namespace sluice::simulator {
namespace {

constexpr int kMostOfTrace = 1000;  // a published trace has years of jobs: more only on request

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

}  // namespace

const std::vector<Flag>& known_flags() {
  static const std::vector<Flag> kFlags = {
      {"policy", "NAMES", "static,burst,synergy,hpa,keda,cachew,pecan,sluice",
       "separated by commas, or `all`; the others are compared with the first"},
      {"seeds", "N", "8", "run with seeds 1 to N"},
      {"threads", "N", "0", "0: one per processor"},
      {"json", "FILE", "", "write all figures"},
      {"time-lines", "", "", "with --json: also the time lines of seed 1, from which report/page.py makes a page"},
      {"job-lists", "FOLDER", "",
       "where the job_list files of scenarios are; without it their jobs are generated (also: SLUICE_JOB_LISTS)"},
      {"catalogue", "FOLDER", "scheduler/simulator/catalogue", "profiles.yaml and the scenarios, as P1.yaml"},
      {"format", "FORMAT", "joblist", "of a trace: joblist, philly, alibaba-v2023 or sia"},
      {"cluster", "FILE", "", "of a trace: nodes and physics"},
      {"most-jobs", "N", "0", "of a trace: the first so many jobs; 0: all of a job list, 1000 of other traces"},
      {"time-divisor", "N", "1", "of a trace: arrivals and durations are divided by it"},
      {"seed", "N", "1", "of generate"},
      {"phase", "KEY", "c", "of calibrate: the phase of the record"},
      {"record", "FILE", "scheduler/simulator/catalogue/demo-record.json", "of calibrate: a record of make demo"},
      {"help", "", "", "this text"},
  };
  return kFlags;
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
  options.timeline = flags.given("time-lines");
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

Result<std::string> only_file(const Flags& flags, const std::string& what) {
  if (flags.positional().size() != 2) return invalid_argument("expected one " + what + " after the command");
  return flags.positional()[1];
}

Result<Scenario> read_scenario(const std::string& path) {
  SLUICE_TRY(const std::string text, read_file(path));
  return parse_scenario(text, path);
}

Result<Scenario> trace_scenario(const Flags& flags, const Profiles& profiles) {
  SLUICE_TRY(const std::string path, only_file(flags, "trace"));
  if (flags.text("cluster").empty()) return invalid_argument("--cluster CLUSTER.yaml is missing");
  SLUICE_TRY(const TraceFormat format, trace_format(flags.text("format")));
  SLUICE_TRY(const std::string cluster_text, read_file(flags.text("cluster")));
  SLUICE_TRY(const std::string trace_text, read_file(path));
  Scenario scenario;
  scenario.name = path;
  scenario.summary = "a trace in the format " + flags.text("format");
  SLUICE_TRY(scenario.cluster, parse_cluster(cluster_text, flags.text("cluster")));
  TraceAssumptions assumptions;
  SLUICE_TRY(const int divisor, count_flag(flags, "time-divisor", 1));
  assumptions.time_scale = divisor;
  Workload& jobs = scenario.jobs;
  SLUICE_TRY(jobs, parse_trace(format, trace_text, path, assumptions, profiles));
  SLUICE_TRY(int most, count_flag(flags, "most-jobs", 0));
  if (most == 0) most = format == TraceFormat::kJobList ? std::numeric_limits<int>::max() : kMostOfTrace;
  if (const std::size_t all = jobs.size(); all > static_cast<std::size_t>(most)) {
    jobs.resize(most);
    scenario.summary += "; the first " + std::to_string(most) + " of " + std::to_string(all) + " jobs";
  }
  const int gpus = scenario.cluster.gpus();
  if (format == TraceFormat::kJobList) SLUICE_TRY_VOID(check_sizes(jobs, path, gpus));
  const std::size_t left_out = std::erase_if(jobs, [&](const JobSpec& job) { return job.gpus > gpus; });
  if (jobs.empty())
    return invalid_argument(path + ": every job wants more than the " + std::to_string(gpus) + " GPUs of the cluster");
  if (left_out > 0) scenario.summary += "; " + std::to_string(left_out) + " jobs larger than the cluster are left out";
  return scenario;
}

Result<void> write_file(const std::string& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary);
  out << text;
  out.close();
  if (!out) return errno_error("write " + path);
  return {};
}

}  // namespace sluice::simulator
