#include "operator/publish/plan_page.h"

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "operator/publish/snapshot_page.h"
#include "scheduler/decide/what_if.h"
#include "scheduler/model/progress.h"
#include "src/base/result.h"
#include "src/kube/json_text.h"
#include "src/kube/timestamp.h"

namespace sluice::control {

using nlohmann::json;

namespace {

// Bounds of a question: a decision for more nodes keeps the page's one thread from the next question.
constexpr int kMostWorkersMore = 100'000;
constexpr int kMostNodesMore = 1000;
constexpr int kMostNodeCores = 4096;

struct Question {
  std::vector<int> workers{std::begin(scheduler::kUsualWorkersMore), std::end(scheduler::kUsualWorkersMore)};
  int nodes = 0;
  int node_cores = 0;
  bool snapshot = false;
};

std::optional<int> whole_number(std::string_view text, int least, int most) {
  int number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failed != std::errc() || end != text.data() + text.size() || number < least || number > most) return std::nullopt;
  return number;
}

Result<Question> read_question(const http::Query& query) {
  Question question;
  for (const auto& [name, value] : query) {
    if (name == "workers") {
      const auto more = whole_number(value, -kMostWorkersMore, kMostWorkersMore);
      if (!more || *more == 0)
        return invalid_argument("workers=" + value + ": give a whole number of workers, such as 3 or -2");
      question.workers = {*more};
    } else if (name == "nodes") {
      const std::size_t cross = std::min(value.find('x'), value.size());
      const auto nodes = whole_number(std::string_view(value).substr(0, cross), 1, kMostNodesMore);
      const auto cores =
          whole_number(std::string_view(value).substr(std::min(cross + 1, value.size())), 1, kMostNodeCores);
      if (!nodes || !cores)
        return invalid_argument("nodes=" + value + ": give a number of nodes and the cores of each, such as 2x32, at " +
                                "most " + std::to_string(kMostNodesMore) + "x" + std::to_string(kMostNodeCores));
      question.nodes = *nodes;
      question.node_cores = *cores;
    } else if (name == "snapshot") {
      if (value != "1") return invalid_argument("snapshot=" + value + ": the only answer is that to snapshot=1");
      question.snapshot = true;
    } else {
      return invalid_argument(name + ": no such question; ask workers=3, nodes=2x32 or snapshot=1");
    }
  }
  return question;
}

double rounded(double number) { return std::round(10 * number) / 10; }

json json_of(const scheduler::Utilisation& utilisation) {
  return {{"jobs", utilisation.jobs},
          {"ownCpuPercent", rounded(100 * utilisation.on_own_cpu)},
          {"planPercent", rounded(100 * utilisation.planned)},
          {"anyPlanPercent", rounded(100 * utilisation.at_most)}};
}

json json_of(const scheduler::LocalCpu& cpu) {
  const auto& [node, request_millicores, limit_millicores] = cpu;
  return {{"node", node}, {"requestMillicores", request_millicores}, {"limitMillicores", limit_millicores}};
}

json json_of(const scheduler::Estimate& estimate) {
  json object = {{"confidence", scheduler::to_string(estimate.confidence)}};
  if (!estimate.known) return object;
  object["demandSamplesPerSecond"] = estimate.demand_samples_per_second;
  object["localRatePerCore"] = estimate.local_rate_per_core;
  object["remoteRatePerCore"] = estimate.remote_rate_per_core;
  object["kneeCores"] = estimate.knee_cores;
  if (estimate.remaining_seconds) object["remainingSeconds"] = *estimate.remaining_seconds;
  return object;
}

// What the table of the command line has no room for. It does not compile once a plan has another field.
void add_details(const scheduler::JobPlan& plan, json& job) {
  const auto& [id, workers, recommended, victims, new_worker_nodes, local, estimate, supply_ratio, planned_supply_ratio,
               bottleneck, evidence, reason, explanation, next_worker_gain_percent] = plan;
  job["victims"] = victims;
  job["explanation"] = explanation;
  job["estimate"] = json_of(estimate);
  job["local"] = json::array();
  for (const scheduler::LocalCpu& cpu : local) job["local"].push_back(json_of(cpu));
  if (!estimate.known) return;
  job["supplyRatio"] = supply_ratio;
  job["plannedSupplyRatio"] = planned_supply_ratio;
  job["nextWorkerGainPercent"] = next_worker_gain_percent;
}

json json_of(const kube::ObjectKey& key, const decide::JobDecision& decision, const Question& question,
             const scheduler::Config& config) {
  const scheduler::JobPlan& plan = decision.plan;
  json job = {{"namespace", key.namespace_},
              {"name", key.name},
              {"workers", plan.workers},
              {"recommended", plan.recommended},
              {"reason", scheduler::to_string(plan.reason)},
              {"bottleneck", scheduler::to_string(plan.bottleneck)},
              {"evidence", plan.evidence},
              {"newWorkerNodes", plan.new_worker_nodes}};
  if (question.snapshot) add_details(plan, job);
  if (plan.estimate.confidence == scheduler::Confidence::kNone) return job;
  job["speedPercent"] = rounded(100 * scheduler::progress(plan.planned_supply_ratio, config.softmin_exponent));
  job["gains"] = json::array();
  for (const int more : question.workers)
    job["gains"].push_back(
        {{"workers", more},
         {"percent", rounded(scheduler::gain_of_workers_percent(plan, decision.worker_millicores, more, config))}});
  return job;
}

std::vector<scheduler::Node> nodes_of(const Question& question, const scheduler::ClusterSnapshot& snapshot) {
  std::set<std::string_view> taken;
  for (const scheduler::Node& node : snapshot.nodes) taken.insert(node.name);
  std::vector<scheduler::Node> nodes;
  for (int number = 1; static_cast<int>(nodes.size()) < question.nodes; ++number) {
    std::string name = "what-if-" + std::to_string(number);
    if (taken.count(name) != 0) continue;
    nodes.push_back({.name = std::move(name), .allocatable_millicores = 1000LL * question.node_cores});
  }
  return nodes;
}

json what_if(const Question& question, const scheduler::ClusterSnapshot& snapshot, const scheduler::Config& config) {
  const scheduler::NodesGain gain = scheduler::gain_of_nodes(snapshot, nodes_of(question, snapshot), config);
  json answer = {{"nodes", question.nodes}, {"nodeMilliCores", 1000LL * question.node_cores}, {"jobs", json::array()}};
  if (gain.utilisation.jobs > 0) answer["utilisation"] = json_of(gain.utilisation);
  for (const scheduler::JobGain& job : gain.jobs)
    answer["jobs"].push_back({{"namespace", job.id.job_namespace},
                              {"name", job.id.name},
                              {"workers", job.workers},
                              {"percent", rounded(job.gain_percent)},
                              {"text", scheduler::gain_text(job.workers, job.gain_percent)}});
  return answer;
}

}  // namespace

http::Page plan_page(const decide::Round& round, const scheduler::Config& config, const http::Query& query) {
  const auto question = read_question(query);
  if (!question.ok()) return {.status = 400, .body = question.error().message() + "\n"};
  if (!round.snapshot)
    return {.status = 503, .body = "this replica has decided nothing: it does not lead, or just began\n"};
  const auto decided_at = std::chrono::duration_cast<Clock::WallTimePoint::duration>(
      std::chrono::duration<double>(round.snapshot->taken_at_seconds));
  json page = {
      {"decidedAt", kube::format_time(Clock::WallTimePoint(decided_at))},
      {"cpu", {{"grantedMilliCores", round.granted_millicores}, {"capacityMilliCores", round.capacity_millicores}}},
      {"jobs", json::array()}};
  if (round.utilisation.jobs > 0) page["utilisation"] = json_of(round.utilisation);
  for (const auto& [key, decision] : round.jobs) page["jobs"].push_back(json_of(key, *decision, *question, config));
  if (question->nodes > 0) page["whatIf"] = what_if(*question, *round.snapshot, config);
  std::string body = kube::text_of(page);
  if (question->snapshot) {
    body.pop_back();
    body += ",\"snapshot\":" + snapshot_text(*round.snapshot) + "}";
  }
  return {.content_type = "application/json", .body = body + "\n"};
}

}  // namespace sluice::control
