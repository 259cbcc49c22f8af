#include "scheduler/simulator/input/trace.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <set>

#include "scheduler/simulator/input/text_table.h"
#include "scheduler/simulator/world/random.h"

namespace sluice::simulator {
namespace {

constexpr double kSecondsMost = 1e8;    // three years, and as long as a run may be
constexpr double kSecondsLeast = 1e-3;  // of a job
constexpr double kGpusMost = 1 << 16;
constexpr double kTraceNumberMost = 1e15;

// The state that the readers of one file share.
struct Reading {
  std::string_view text;
  const std::string& file;
  const TraceAssumptions& assumptions;
  const Profiles& profiles;
};

Result<int> gpus_field(const Reading& r, const TextLine& line, std::size_t index, std::string_view name) {
  SLUICE_TRY(const double gpus, number_field(r.file, line, index, name, 1, kGpusMost));
  if (gpus != std::floor(gpus)) return line_error(r.file, line.number, std::string(name) + " must be a whole number");
  return static_cast<int>(gpus);
}

Result<Workload> parse_job_list(const Reading& r) {
  Workload jobs;
  for (const TextLine& line : split_lines(r.text, ' ')) {
    if (line.fields.size() != 5 && line.fields.size() != 7)
      return line_error(r.file, line.number,
                        "a job is \"arrival_s gpus ideal_s kappa gbps_per_gpu [start_s finish_s]\", but the line has " +
                            std::to_string(line.fields.size()) + " fields");
    JobSpec job;
    job.line = line.number;
    job.name = "job-" + std::to_string(jobs.size() + 1);
    SLUICE_TRY(job.arrival_seconds, number_field(r.file, line, 0, "arrival_s", 0, kSecondsMost));
    SLUICE_TRY(job.gpus, gpus_field(r, line, 1, "gpus"));
    SLUICE_TRY(job.ideal_seconds, number_field(r.file, line, 2, "ideal_s", kSecondsLeast, kSecondsMost));
    SLUICE_TRY(const double knee, number_field(r.file, line, 3, "kappa", 0, 1e5));
    job.knee_cores_per_gpu = std::max(knee, kLeastKnee);
    SLUICE_TRY(job.network_gbps_per_gpu, number_field(r.file, line, 4, "gbps_per_gpu", 0, 1e5));
    // When it ran in the run that made the list: for people who compare. Nothing follows from it here.
    for (const std::size_t column : {5, 6})
      if (column < line.fields.size())
        SLUICE_TRY_VOID(number_field(r.file, line, column, column == 5 ? "start_s" : "finish_s", -kTraceNumberMost,
                                     kTraceNumberMost));
    jobs.push_back(std::move(job));
  }
  return jobs;
}

void apply_profile(const Profile& profile, const TraceAssumptions& assumptions, JobSpec& job) {
  job.knee_cores_per_gpu = profile.knee_cores_per_gpu * assumptions.knee_factor;
  job.network_gbps_per_gpu = profile.network_gbps_per_gpu * assumptions.knee_factor;
}

// "ResNet-50 (batch size 64)" has the profile "resnet-50".
Result<Profile> profile_of(std::string_view model, const Reading& r, int line) {
  std::string name(model.substr(0, model.find(" (")));
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  const auto found = r.profiles.find(name);
  if (found == r.profiles.end()) return line_error(r.file, line, "no profile for model \"" + name + "\"");
  return found->second;
}

Result<Workload> parse_philly(const Reading& r) {
  Workload jobs;
  for (const TextLine& line : split_lines(r.text, '\t')) {
    if (line.fields.size() < 5) return line_error(r.file, line.number, "fewer than 5 tab-separated fields");
    const std::size_t last = line.fields.size() - 1;
    JobSpec job;
    job.line = line.number;
    job.name = "philly-" + std::to_string(line.number);
    SLUICE_TRY(const double steps, number_field(r.file, line, last - 2, "total steps", 1, kTraceNumberMost));
    SLUICE_TRY(job.arrival_seconds, number_field(r.file, line, last - 1, "arrival time", 0, kSecondsMost));
    SLUICE_TRY(job.gpus, gpus_field(r, line, last, "scale factor"));
    SLUICE_TRY(const Profile profile, profile_of(line.fields[0], r, line.number));
    if (profile.steps_per_second <= 0)
      return line_error(r.file, line.number,
                        "the profile of \"" + std::string(line.fields[0]) + "\" has no steps_per_second");
    job.ideal_seconds = steps / profile.steps_per_second;
    apply_profile(profile, r.assumptions, job);
    jobs.push_back(std::move(job));
  }
  return jobs;
}

// A profile for a job whose model the trace does not name, drawn by its number.
const Profile& drawn_profile(const Reading& r, std::uint64_t job) {
  const double draw = uniform({r.assumptions.seed, Draw::kModel, job, 0});
  return std::next(r.profiles.begin(), static_cast<std::ptrdiff_t>(draw * static_cast<double>(r.profiles.size())))
      ->second;
}

Result<Workload> parse_alibaba(const Reading& r) {
  const std::vector<TextLine> lines = split_lines(r.text, ',');
  if (lines.empty()) return line_error(r.file, 1, "the file is empty");
  SLUICE_TRY(const auto at,
             columns(r.file, lines[0], {"name", "num_gpu", "creation_time", "deletion_time", "scheduled_time"}));
  if (r.profiles.empty()) return line_error(r.file, 1, "no profiles to draw models from");
  Workload jobs;
  std::set<std::string> names;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const TextLine& line = lines[i];
    SLUICE_TRY(const double gpus, number_field(r.file, line, at[1], "num_gpu", 0, kGpusMost));
    SLUICE_TRY(const double created, number_field(r.file, line, at[2], "creation_time", 0, kSecondsMost));
    SLUICE_TRY(const double deleted, number_field(r.file, line, at[3], "deletion_time", 0, kSecondsMost));
    // A pod that was never scheduled ran for no time, and one without a GPU trains nothing.
    if (gpus < 1 || at[4] >= line.fields.size() || line.fields[at[4]].empty()) continue;
    SLUICE_TRY(const double scheduled, number_field(r.file, line, at[4], "scheduled_time", 0, kSecondsMost));
    if (deleted <= scheduled) continue;
    if (gpus != std::floor(gpus)) return line_error(r.file, line.number, "num_gpu must be a whole number");
    JobSpec job;
    job.line = line.number;
    job.name = std::string(line.fields[at[0]]);
    // The same pod twice would be twice its load.
    if (!names.insert(job.name).second)
      return line_error(r.file, line.number, "there are two pods \"" + job.name + "\"");
    job.arrival_seconds = created;
    job.gpus = static_cast<int>(gpus);
    job.ideal_seconds = deleted - scheduled;
    apply_profile(drawn_profile(r, i), r.assumptions, job);
    jobs.push_back(std::move(job));
  }
  return jobs;
}

Result<Workload> parse_sia(const Reading& r) {
  const std::vector<TextLine> lines = split_lines(r.text, ',');
  if (lines.empty()) return line_error(r.file, 1, "the file is empty");
  SLUICE_TRY(const auto at, columns(r.file, lines[0], {"time", "application", "num_replicas"}));
  const auto& header = lines[0].fields;
  const auto duration_at =
      static_cast<std::size_t>(std::find(header.begin(), header.end(), "duration") - header.begin());
  Workload jobs;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const TextLine& line = lines[i];
    JobSpec job;
    job.line = line.number;
    job.name = "sia-" + std::to_string(i);
    SLUICE_TRY(job.arrival_seconds, number_field(r.file, line, at[0], "time", 0, kSecondsMost));
    SLUICE_TRY(job.gpus, gpus_field(r, line, at[2], "num_replicas"));
    if (at[1] >= line.fields.size()) return line_error(r.file, line.number, "application is missing");
    SLUICE_TRY(const Profile profile, profile_of(line.fields[at[1]], r, line.number));
    if (duration_at < header.size()) {
      SLUICE_TRY(job.ideal_seconds, number_field(r.file, line, duration_at, "duration", kSecondsLeast, kSecondsMost));
    } else {
      // Sia's files have no durations (its jobs run to an accuracy): Gavel's law stands in.
      const bool is_long = uniform({r.assumptions.seed, Draw::kDuration, i, 0}) < 0.2;
      const double exponent = uniform({r.assumptions.seed, Draw::kDuration, i, 1});
      job.ideal_seconds = 60 * std::pow(10, is_long ? 3 + exponent : 1.5 + 1.5 * exponent);
    }
    apply_profile(profile, r.assumptions, job);
    jobs.push_back(std::move(job));
  }
  return jobs;
}

// Order, origin and scale. REQUIRES: there are jobs
Workload arranged(Workload jobs, bool from_zero, const TraceAssumptions& assumptions) {
  std::stable_sort(jobs.begin(), jobs.end(),
                   [](const JobSpec& a, const JobSpec& b) { return a.arrival_seconds < b.arrival_seconds; });
  const double origin = from_zero ? jobs[0].arrival_seconds : 0;
  for (JobSpec& job : jobs) {
    job.arrival_seconds = (job.arrival_seconds - origin) / assumptions.time_scale;
    job.ideal_seconds /= assumptions.time_scale;
  }
  return jobs;
}

Result<Workload> parsed(TraceFormat format, const Reading& reading) {
  switch (format) {
    case TraceFormat::kJobList: return parse_job_list(reading);
    case TraceFormat::kPhilly: return parse_philly(reading);
    case TraceFormat::kAlibaba2023: return parse_alibaba(reading);
    case TraceFormat::kSia: break;
  }
  return parse_sia(reading);
}

}  // namespace

Result<TraceFormat> trace_format(std::string_view name) {
  if (name == "joblist") return TraceFormat::kJobList;
  if (name == "philly") return TraceFormat::kPhilly;
  if (name == "alibaba-v2023") return TraceFormat::kAlibaba2023;
  if (name == "sia") return TraceFormat::kSia;
  return invalid_argument("--format " + std::string(name) + ": joblist, philly, alibaba-v2023 or sia");
}

Result<Workload> parse_trace(TraceFormat format, std::string_view text, const std::string& file,
                             const TraceAssumptions& assumptions, const Profiles& profiles) {
  SLUICE_TRY(Workload jobs, parsed(format, {text, file, assumptions, profiles}));
  if (jobs.empty()) return line_error(file, 1, "no jobs");
  jobs = arranged(std::move(jobs), format != TraceFormat::kJobList, assumptions);
  for (const JobSpec& job : jobs) {
    if (job.ideal_seconds < kSecondsLeast)
      return line_error(file, job.line, job.name + " would run for less than a millisecond");
    if (job.ideal_seconds > kSecondsMost)
      return line_error(file, job.line, job.name + " would run for more than three years");
  }
  return jobs;
}

std::string larger_than_cluster(const std::string& who, int gpus, int cluster_gpus) {
  return who + " wants " + std::to_string(gpus) + " GPUs, and the cluster has " + std::to_string(cluster_gpus);
}

Result<void> check_sizes(const Workload& jobs, const std::string& file, int cluster_gpus) {
  for (const JobSpec& job : jobs)
    if (job.gpus > cluster_gpus)
      return line_error(file, job.line, larger_than_cluster(job.name, job.gpus, cluster_gpus));
  return {};
}

}  // namespace sluice::simulator
