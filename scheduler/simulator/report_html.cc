#include <algorithm>
#include <array>
#include <string_view>

#include "scheduler/simulator/report.h"
#include "scheduler/simulator/timeline.h"

namespace sluice::simulator {
namespace {

constexpr int kBuckets = 240;
constexpr int kJobBuckets = 160;
constexpr int kMostJobs = 40;

constexpr const char* kStyle = R"(
body{font:15px/1.5 system-ui,sans-serif;max-width:1100px;margin:2em auto;padding:0 1em;color:#1a1a1a;background:#fff}
h1{font-size:1.5em}h2{font-size:1.2em;margin-top:2em;border-top:1px solid #ccc;padding-top:1em}h3{font-size:1em}
.wide{overflow-x:auto}table{border-collapse:collapse;font-size:13px}td,th{padding:3px 9px;text-align:right;white-space:nowrap}
th{border-bottom:2px solid #666;vertical-align:bottom}td:first-child,th:first-child{text-align:left;position:sticky;left:0;background:#fff}
tr:nth-child(even) td{background:#f4f4f4}svg{width:100%;height:auto;display:block}svg text{font:10px system-ui,sans-serif;fill:#444}
.key span{display:inline-block;width:1em;height:1em;margin:0 .3em 0 1em;vertical-align:-2px}p.bound{background:#fff6dd;padding:.6em 1em}
dl{display:grid;grid-template-columns:max-content auto;gap:.1em 1em;font-size:13px}dt{font-weight:bold}dd{margin:0}
)";

// What a reader needs to know of each policy; docs/simulator.md and the headers of scheduler/policies have the rest.
struct PolicyText {
  std::string_view name, text;
};
constexpr std::array kPolicyTexts = {
    PolicyText{"static", "each job has the CPU of its hosts in proportion to its GPUs"},
    PolicyText{"fixed-workers", "four loader processes for each GPU, whatever the job needs"},
    PolicyText{"burst", "static, and whatever is idle on the job's hosts"},
    PolicyText{"knee-proportional",
               "every job gets what it is measured to need, all cut by one factor where CPU lacks"},
    PolicyText{"hpa", "Kubernetes' autoscaler at 80 % CPU; data workers on nodes without GPUs"},
    PolicyText{"hpa-everywhere", "the same, data workers also on GPU hosts"},
    PolicyText{"keda", "data workers by the backlog of the queue, on nodes without GPUs"},
    PolicyText{"keda-everywhere", "the same, also on GPU hosts"},
    PolicyText{"cachew", "each job adds workers of 7 cores one by one while that makes it faster"},
    PolicyText{"cachew-2", "the same with workers of 2 cores"},
    PolicyText{"cachew-1", "the same with workers of 1 core"},
    PolicyText{"pecan", "each job moves its work between its hosts and remote workers step by step"},
    PolicyText{"fastflow", "each job is profiled at its start and keeps the workers found then"},
    PolicyText{"synergy", "the CPU of a GPU host is divided by profiles; no data workers"},
    PolicyText{"tfdata", "each job's workers follow the formula of the tf.data service"},
    PolicyText{"sluice", "ours: one decision for all jobs together"},
    PolicyText{"perfect", "a limit: ours, if it knew everything at once and workers started in no time"},
    PolicyText{"no-stall", "a limit: no job ever waits for data"},
    PolicyText{"true-rates", "ours, where what executors report is true"},
    PolicyText{"no-feedback", "ours, without learning from what came of its decisions"},
};

std::string policy_glossary(const Grid& grid) {
  std::string html = "<dl>\n";
  for (const std::string& policy : grid.policies)
    for (const PolicyText& known : kPolicyTexts)
      if (known.name == policy)
        html += "<dt>" + escaped(policy) + "</dt><dd>" + escaped(std::string(known.text)) + "</dd>\n";
  return html + "</dl>\n";
}

// The first column and those from `from` up to `to`.
std::string html_table(const Table& table, std::size_t from, std::size_t to) {
  std::string html = "<div class=\"wide\"><table>\n";
  const char* cell = "th";
  for (const auto& row : table.rows()) {
    html += "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i)
      if (i == 0 || (i >= from && i < to)) html += std::string("<") + cell + ">" + escaped(row[i]) + "</" + cell + ">";
    html += "</tr>\n";
    cell = "td";
  }
  return html + "</table></div>\n";
}

// All columns at once are wider than a screen, and what has to be scrolled to is not seen.
std::string policy_tables(const Grid& grid) {
  const Table table = policy_table(grid);
  const std::size_t columns = table.rows()[0].size();
  return "<h3>What it brings</h3>\n<p>A JCT gain of 2 is half the mean JCT of " + escaped(grid.policies[0]) +
         ", a utilisation gain of 2 twice its utilisation. JCT can gain more than utilisation: jobs that end sooner "
         "let "
         "others start sooner.</p>\n" +
         html_table(table, 1, 7) +
         "<h3>How long jobs take, and what it costs</h3>\n<p>p50 and p99: half of the jobs, and all but one in a "
         "hundred, take no longer. Cost: GPUs while allocated, CPU while given to a job.</p>\n" +
         html_table(table, 7, 12) +
         "<h3>Who loses, and what moves</h3>\n<p>Without the wait for GPUs. Slowdown: a job's running time over that "
         "without stalls. Against static: over its running time under static. Harmed: jobs that run more than 5 % and "
         "a "
         "minute longer than under static. Changes: of a job's number of data workers.</p>\n" +
         html_table(table, 12, columns);
}

std::string key(const char* first_colour, const char* first, const char* second_colour, const char* second) {
  return std::string("<p class=\"key\"><span style=\"background:") + first_colour + "\"></span>" + first +
         "<span style=\"background:" + second_colour + "\"></span>" + second + "</p>\n";
}

std::string section(const Scenario& scenario, const Grid& grid, int policy, double seconds) {
  const RunRecord& run = grid.runs[policy][0];
  const Workload& workload = grid.workloads[0];
  const std::vector<Bucket> buckets = buckets_of(run, workload, seconds / kBuckets, kBuckets);
  const Figures& figures = grid.figures[policy][0];
  const auto figure = [&](Figure f) { return std::string(text_of(f).title) + " " + shown(f, at(figures, f)); };
  return "<h2>" + escaped(grid.policies[policy]) + ", seed 1</h2>\n<p>" + figure(Figure::kAllocatedUtilisation) + "; " +
         figure(Figure::kWallUtilisation) + "; " + figure(Figure::kMeanJct) + "; " + figure(Figure::kMakespan) + "; " +
         figure(Figure::kWorkersStarted) + ".</p>\n" +
         key("#1f5f9f", "GPUs that compute", "#9ab8d8", "GPUs allocated to jobs that wait for data") +
         gpu_chart(buckets, seconds / kBuckets, scenario.cluster.gpus()) +
         key("#7a4fa0", "CPU on trainers' hosts, given to their own job", "#e0a050", "CPU of data workers") +
         cpu_chart(buckets, seconds / kBuckets, scenario.cluster.cores()) + "<h3>CPU and speed of the " +
         std::to_string(std::min<std::size_t>(kMostJobs, workload.size())) +
         " largest jobs</h3>\n<p>Height: CPU that the job has, of the CPU it wants. Colour: its speed, from red "
         "(starved) to green (full speed). Point at a strip for figures.</p>\n" +
         job_chart(run, workload, seconds / kJobBuckets, kJobBuckets, kMostJobs);
}

}  // namespace

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += c;
    }
  }
  return out;
}

std::string html_report(const Scenario& scenario, const Grid& grid) {
  std::string html = "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>" +
                     escaped(scenario.name) + "</title>\n<style>" + kStyle + "</style></head><body>\n<h1>" +
                     escaped(scenario.name) + "</h1>\n<p>" + escaped(scenario.summary) + ".</p>\n<p class=\"bound\">" +
                     escaped(bound_sentence(grid.bound)) + "</p>\n<p>" + std::to_string(grid.workloads.size()) +
                     " seeds, " + std::to_string(grid.workloads[0].size()) + " jobs each, on " +
                     std::to_string(scenario.cluster.gpus()) + " GPUs and " + fixed(scenario.cluster.cores(), 0) +
                     " cores. Means and 95 % confidence intervals; gains are geometric means of pairs with " +
                     escaped(grid.policies[0]) +
                     ". \"Allocated\" utilisation is busy over allocated GPU time, \"wall\" is busy over all GPU time "
                     "until the last job arrives. JCT is the time from a job's arrival to its end.</p>\n" +
                     policy_glossary(grid) + policy_tables(grid);
  // All time lines have the same scale, so that they can be compared by eye.
  double seconds = 0;
  for (const auto& runs : grid.runs) seconds = std::max(seconds, runs[0].makespan_seconds);
  for (int policy = 0; policy < static_cast<int>(grid.policies.size()); ++policy)
    if (!grid.runs[policy][0].jobs[0].timeline.empty()) html += section(scenario, grid, policy, seconds);
  return html + "</body></html>\n";
}

}  // namespace sluice::simulator
