#include "cli/job_report.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/job_events.h"
#include "src/base/table.h"
#include "src/kube/json_member.h"
#include "src/kube/timestamp.h"

namespace sluice::cli {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxEvents = 10;

std::string shown(const json& object, const char* pointer, const char* fallback = "-") {
  const json& value = kube::value_at(object, pointer);
  if (value.is_string()) return value.get<std::string>();
  return value.is_null() ? fallback : value.dump();
}

const json& condition(const json& job, const char* type) {
  static const json kNull;
  for (const json& entry : kube::value_at(job, "/status/conditions"))
    if (shown(entry, "/type") == type) return entry;
  return kNull;
}

bool is_true(const json& job, const char* type) { return shown(condition(job, type), "/status") == "True"; }

// Why the job has the workers it has, or why it does not run.
std::string reason(const json& job) {
  if (is_true(job, "Succeeded")) return "Succeeded";
  if (is_true(job, "Failed")) return "Failed: " + shown(condition(job, "Failed"), "/message");
  const json& ready = condition(job, "Ready");
  if (ready.is_null()) return "not seen by the operator yet; is it running?";
  if (!is_true(job, "Ready") || shown(ready, "/reason") == "Suspended")
    return shown(ready, "/reason") + ": " + shown(ready, "/message");
  return shown(job, "/status/explanation");
}

std::string workers(const json& job) {
  return shown(job, "/status/workers/ready") + "/" + shown(job, "/status/workers/desired");
}

std::string render_figures(const json& job) {
  struct Figure {
    const char* pointer;
    const char* name;
    const char* unit;
  };
  constexpr Figure kFigures[] = {{"/status/observed/samplesPerSecond", "consumed", "samples/s"},
                                 {"/status/observed/demandSamplesPerSecond", "demand (without any wait)", "samples/s"},
                                 {"/status/observed/dataWaitPercent", "waiting for data", "%"},
                                 {"/status/observed/acceleratorUtilisationPercent", "accelerator busy", "%"},
                                 {"/status/observed/localRatePerCore", "a core of the feeder makes", "samples/s"},
                                 {"/status/observed/remoteRatePerCore", "a core of a worker makes", "samples/s"},
                                 {"/status/observed/kneeMilliCores", "CPU that saturates the job", "millicores"},
                                 {"/status/observed/supplyPercent", "supply over demand", "%"}};
  std::string lines;
  for (const Figure& figure : kFigures)
    if (const json& value = kube::value_at(job, figure.pointer); !value.is_null())
      lines += "  " + std::string(figure.name) + ": " + value.dump() + " " + figure.unit + "\n";
  return lines.empty() ? "  none yet\n" : lines;
}

// What ends the trainer's wait for data; empty where it does not wait, where the reason is not known, and where the
// explanation says it: of storage and network.
std::string way_out(const std::string& bottleneck) {
  static const std::map<std::string, std::string> kWaysOut = {
      {"DataBoundCpu", "more CPU for its data; the explanation says what holds it back"},
      {"DataBoundOther", "`sluice explain` in the trainer's container shows what its samples wait for"}};
  const auto known = kWaysOut.find(bottleneck);
  return known == kWaysOut.end() ? std::string() : known->second;
}

std::string render_conditions(const json& job, Clock::WallTimePoint now) {
  Table table({"  CONDITION", "STATUS", "SINCE", "REASON", "MESSAGE"}, {0, 1, 2, 3, 4});
  for (const json& entry : kube::value_at(job, "/status/conditions"))
    table.add({"  " + shown(entry, "/type"), shown(entry, "/status"), age(shown(entry, "/lastTransitionTime"), now),
               shown(entry, "/reason"), shown(entry, "/message", "")});
  if (table.empty()) return "  none yet: the operator has not seen this job; is it running?\n";
  return table.text();
}

// The last time an event happened: series keep it apart.
std::string event_time(const json& event) {
  for (const char* pointer :
       {"/series/lastObservedTime", "/eventTime", "/deprecatedLastTimestamp", "/metadata/creationTimestamp"})
    if (const json& time = kube::value_at(event, pointer); time.is_string()) return time.get<std::string>();
  return "";
}

std::string render_events(std::vector<json> events, Clock::WallTimePoint now) {
  if (events.empty()) return "  none (the cluster keeps them for an hour)\n";
  std::stable_sort(events.begin(), events.end(),
                   [](const json& a, const json& b) { return event_time(a) > event_time(b); });
  if (events.size() > kMaxEvents) events.resize(kMaxEvents);
  Table table({"  AGO", "TYPE", "REASON", "OBJECT", "NOTE"}, {0, 1, 2, 3, 4});
  for (const json& event : events)
    table.add({"  " + age(event_time(event), now), shown(event, "/type"), shown(event, "/reason"), object_of(event),
               shown(event, "/note", "")});
  return table.text();
}

}  // namespace

std::string age(const std::string& timestamp, Clock::WallTimePoint now) {
  const auto time = kube::parse_time(timestamp);
  if (!time) return "-";
  const auto seconds = std::max<std::int64_t>(0, std::chrono::duration_cast<std::chrono::seconds>(now - *time).count());
  if (seconds < 120) return std::to_string(seconds) + "s";
  if (seconds < 2 * 3600) return std::to_string(seconds / 60) + "m";
  if (seconds < 48 * 3600) return std::to_string(seconds / 3600) + "h";
  return std::to_string(seconds / 86400) + "d";
}

std::string render_top(const std::vector<json>& jobs, std::size_t max_width) {
  Table table({"NAMESPACE", "NAME", "WORKERS", "UTIL%", "WAIT%", "SAMPLES/S", "DEMAND", "BOTTLENECK", "REASON"},
              {0, 1, 7, 8});
  for (const json& job : jobs)
    table.add({shown(job, "/metadata/namespace"), shown(job, "/metadata/name"), workers(job),
               shown(job, "/status/observed/acceleratorUtilisationPercent"),
               shown(job, "/status/observed/dataWaitPercent"), shown(job, "/status/observed/samplesPerSecond"),
               shown(job, "/status/observed/demandSamplesPerSecond"), shown(job, "/status/bottleneck"), reason(job)});
  return table.text(max_width);
}

json top_as_json(const std::vector<json>& jobs) {
  json items = json::array();
  for (const json& job : jobs)
    items.push_back(
        {{"namespace", kube::value_at(job, "/metadata/namespace")},
         {"name", kube::value_at(job, "/metadata/name")},
         {"status", kube::value_at(job, "/status").is_null() ? json::object() : kube::value_at(job, "/status")}});
  return {{"items", std::move(items)}};
}

std::string render_why(const json& job, std::vector<json> events, Clock::WallTimePoint now) {
  const std::string explanation = shown(job, "/status/explanation", "");
  std::string report = "TrainingJob " + shown(job, "/metadata/namespace") + "/" + shown(job, "/metadata/name") +
                       ": mode " + shown(job, "/spec/mode") + ", placement " +
                       shown(job, "/spec/dataWorkers/placement") + ", " + shown(job, "/spec/dataWorkers/min") + " to " +
                       shown(job, "/spec/dataWorkers/max") + " data workers allowed\n";
  report += "\n" + (explanation.empty() ? reason(job) : explanation) + "\n";
  const std::string bottleneck = shown(job, "/status/bottleneck");
  report += "\nBottleneck: " + bottleneck + "\n";
  if (const std::string helps = way_out(bottleneck); !helps.empty()) report += "What helps: " + helps + "\n";
  report += "Workers: " + shown(job, "/status/workers/ready") + " ready, " + shown(job, "/status/workers/desired") +
            " desired, " + shown(job, "/status/workers/recommended") + " recommended\n";
  report += "\nFigures\n" + render_figures(job);
  report += "\n" + render_conditions(job, now);
  report += "\nEvents\n" + render_events(std::move(events), now);
  return report;
}

json why_as_json(json job, std::vector<json> events) {
  job["events"] = std::move(events);
  return job;
}

}  // namespace sluice::cli
