#include "cli/plan_report.h"

#include <cmath>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "src/base/table.h"
#include "src/http/transport.h"

namespace sluice::cli {
namespace {

using nlohmann::json;

std::string percent(double number) { return std::to_string(std::llround(number)) + " %"; }

std::string signed_percent(double number) { return (number < 0 ? "" : "+") + percent(number); }

std::string cores(const json& millicores) {
  std::string text = std::to_string(std::round(millicores.get<double>() / 10) / 100);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

std::string counted(long long number, const std::string& noun) {
  return std::to_string(number) + " " + noun + (number == 1 || number == -1 ? "" : "s");
}

// The numbers of workers that the page was asked about.
std::vector<long long> questions(const json& page) {
  std::vector<long long> asked;
  for (const json& job : page.at("jobs")) {
    if (!job.contains("gains")) continue;
    for (const json& gain : job.at("gains")) asked.push_back(gain.at("workers"));
    break;
  }
  return asked;
}

std::string nodes_asked(const json& what_if) {
  return counted(what_if.at("nodes"), "more node") + " of " + cores(what_if.at("nodeMilliCores")) + " cores";
}

std::string table_of(const json& page, const std::string& name_space, std::size_t max_width) {
  std::vector<std::string> heading = {"NAMESPACE", "NAME", "WORKERS", "SPEED"};
  std::vector<std::size_t> left_aligned = {0, 1};
  const std::vector<long long> asked = questions(page);
  for (const long long more : asked)
    heading.push_back((more < 0 ? "" : "+") + std::to_string(more) + (std::abs(more) == 1 ? " WORKER" : " WORKERS"));
  const bool with_nodes = page.contains("whatIf");
  std::map<std::pair<std::string, std::string>, std::string> answers;
  if (with_nodes) {
    left_aligned.push_back(heading.size());
    heading.push_back("WITH " + nodes_asked(page.at("whatIf")));
    for (const json& job : page.at("whatIf").at("jobs"))
      answers[{job.at("namespace"), job.at("name")}] = job.at("text");
  }
  left_aligned.push_back(heading.size());
  heading.push_back("REASON");
  Table table(std::move(heading), std::move(left_aligned));
  for (const json& job : page.at("jobs")) {
    if (!name_space.empty() && job.at("namespace") != name_space) continue;
    const bool known = job.contains("gains");
    std::vector<std::string> row = {job.at("namespace"), job.at("name"),
                                    std::to_string(job.at("workers").get<long long>()),
                                    known ? percent(job.at("speedPercent")) : "-"};
    for (std::size_t i = 0; i < asked.size(); ++i)
      row.push_back(known ? signed_percent(job.at("gains").at(i).at("percent")) : "-");
    if (with_nodes) {
      const auto answer = answers.find({row[0], row[1]});
      row.push_back(known && answer != answers.end() ? answer->second : "-");
    }
    row.push_back(job.at("reason"));
    table.add(std::move(row));
  }
  if (table.empty()) return "No TrainingJobs are part of the last decision.\n";
  return table.text(max_width);
}

std::string bounds_of(const json& page) {
  std::string text = "Data workers may have " + cores(page.at("cpu").at("capacityMilliCores")) +
                     " cores of this cluster; this plan gives them " + cores(page.at("cpu").at("grantedMilliCores")) +
                     ".\n";
  if (!page.contains("utilisation")) return text;
  const json& now = page.at("utilisation");
  text += "The accelerators of " + counted(now.at("jobs"), "measured job") + " would be " +
          percent(now.at("ownCpuPercent")) + " busy on the jobs' own CPU. This plan makes it " +
          percent(now.at("planPercent")) + "; no division of this CPU can make it more than " +
          percent(now.at("anyPlanPercent")) + ".\n";
  if (page.contains("whatIf") && page.at("whatIf").contains("utilisation")) {
    const json& then = page.at("whatIf").at("utilisation");
    text += "With " + nodes_asked(page.at("whatIf")) + ": " + percent(then.at("planPercent")) + ", and no more than " +
            percent(then.at("anyPlanPercent")) + ".\n";
  }
  return text;
}

}  // namespace

Result<std::string> plan_target(const std::string& what_if, bool with_snapshot) {
  const std::string snapshot = with_snapshot ? "snapshot=1" : "";
  if (what_if.empty()) return with_snapshot ? "/plan?" + snapshot : std::string("/plan");
  const std::size_t equals = what_if.find('=');
  const std::string name = what_if.substr(0, equals);
  if (equals == std::string::npos || (name != "workers" && name != "nodes"))
    return invalid_argument("--what-if " + what_if +
                            ": ask workers=3 (of each job for itself), or nodes=2x32 (two nodes of 32 cores)");
  const std::string question = "/plan?" + name + "=" + http::percent_encode(what_if.substr(equals + 1));
  return with_snapshot ? question + "&" + snapshot : question;
}

Result<std::string> render_plan(const json& page, const std::string& name_space, std::size_t max_width) {
  try {
    return table_of(page, name_space, max_width) + "\n" + bounds_of(page);
  } catch (const json::exception& other_shape) {
    return Error(ErrorCode::kDataLoss, std::string("the operator's plan is not of the shape that this program reads; "
                                                   "are both of one version? ") +
                                           other_shape.what());
  }
}

}  // namespace sluice::cli
