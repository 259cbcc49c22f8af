// Reconcilers that are broken in the ways that Sieve found in real operators. Each passes as long as nothing goes
// wrong. The pattern that it is broken for catches it, so the simulation sees such faults.
#include <atomic>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

#include "operator/api/conditions.h"
#include "operator/api/fields.h"
#include "operator/api/names.h"
#include "operator/fault_simulation/campaign.h"
#include "operator/fault_simulation/workload.h"
#include "src/base/testing/catch.h"

namespace sluice::simulation {
namespace {

using api::integer_field;
using api::text_field;
using kube::Json;
using kube::ObjectKey;

bool creates(const kube::Action& action, const kube::Resource& resource) {
  return action.verb == kube::Verb::kCreate && action.resource == resource;
}

// Two writes, of which the first is taken for both. It notes in a ConfigMap for which generation of the pool it makes
// pods, and makes none for a noted one. What the process itself is at, it remembers.
act::ClusterSeams noting_before_doing(act::ClusterSeams seams) {
  auto at_work = std::make_shared<std::set<std::string>>();
  const auto product = seams;
  seams.perform = [product, at_work](const kube::Action& action, std::stop_token stop) -> Result<void> {
    if (!creates(action, kube::kPods)) return product.perform(action, stop);
    const ObjectKey pool_key{action.key.namespace_, text_field(action.body, "/metadata/labels/sluice.dev~1job")};
    const auto pool = product.seen(kube::kDataWorkerPools, pool_key);
    if (!pool) return product.perform(action, stop);
    const std::string note = pool_key.name + "-made-" + std::to_string(integer_field(*pool, "/metadata/generation"));
    if (!at_work->contains(note)) {
      const Json body = {{"metadata", {{"name", note}, {"namespace", pool_key.namespace_}}}};
      const auto noted =
          product.perform({kube::Verb::kCreate, kube::kConfigMaps, kube::key_of(body), body, "broken"}, stop);
      if (!noted.ok()) return noted.error().code() == ErrorCode::kAlreadyExists ? Result<void>() : noted;
      at_work->insert(note);
    }
    return product.perform(action, stop);
  };
  return seams;
}

// Remembers by name, and forgets when it sees that the job is gone: a job that is made again unseen gets no trainer.
act::ClusterSeams remembering_by_name(act::ClusterSeams seams) {
  auto made = std::make_shared<std::set<ObjectKey>>();
  const auto product = seams;
  seams.seen = [product, made](const kube::Resource& resource, const ObjectKey& key) {
    auto object = product.seen(resource, key);
    if (resource == kube::kTrainingJobs && !object) made->erase(key);
    return object;
  };
  seams.perform = [product, made](const kube::Action& action, std::stop_token stop) -> Result<void> {
    if (creates(action, kube::kJobs) && !made->insert(action.key).second) return {};
    return product.perform(action, stop);
  };
  return seams;
}

// Takes another name when one is taken: what an out-of-date view does not show is made once more.
act::ClusterSeams taking_another_name(act::ClusterSeams seams) {
  const auto product = seams;
  seams.perform = [product](const kube::Action& action, std::stop_token stop) {
    auto done = product.perform(action, stop);
    if (!creates(action, kube::kPods) || done.ok() || done.error().code() != ErrorCode::kAlreadyExists) return done;
    kube::Action another = action;
    another.key.name += "-again";
    another.body["metadata"]["name"] = another.key.name;
    return product.perform(another, stop);
  };
  return seams;
}

// Never sees the status that it has written, and each time marks the object as well: it answers its own writes.
act::ClusterSeams never_content(act::ClusterSeams seams) {
  auto written = std::make_shared<std::atomic<int>>(0);
  const auto product = seams;
  seams.perform = [product, written](const kube::Action& action, std::stop_token stop) {
    auto done = product.perform(action, stop);
    if (!done.ok() || action.resource != kube::kTrainingJobs) return done;
    const Json mark = {{"metadata", {{"annotations", {{"broken", std::to_string(++*written)}}}}}};
    return product.perform({kube::Verb::kMergePatch, kube::kTrainingJobs, action.key, mark, "broken"}, stop);
  };
  seams.seen = [product](const kube::Resource& resource, const ObjectKey& key) {
    const auto object = product.seen(resource, key);
    if (!object || resource != kube::kTrainingJobs) return object;
    Json without = *object;
    without.erase("status");
    return std::make_shared<const Json>(std::move(without));
  };
  return seams;
}

// Keeps to itself that a spec cannot be carried out.
act::ClusterSeams silent_about_refusals(act::ClusterSeams seams) {
  const auto product = seams;
  seams.perform = [product](const kube::Action& action, std::stop_token stop) -> Result<void> {
    if (action.body.dump().find(api::kSpecRefused) != std::string::npos) return {};
    return product.perform(action, stop);
  };
  return seams;
}

// Binds its workers itself, and knows nothing of drains.
act::ClusterSeams binding_to_a_node(act::ClusterSeams seams) {
  const auto product = seams;
  seams.perform = [product](const kube::Action& action, std::stop_token stop) {
    kube::Action bound = action;
    if (creates(action, kube::kPods)) bound.body["spec"]["nodeName"] = "n1";
    return product.perform(bound, stop);
  };
  return seams;
}

// Does not hear that a node is drained.
std::string deaf_to_drains(std::string line) {
  Json event = Json::parse(line, nullptr, false);
  if (event.is_discarded() || text_field(event, "/object/kind") != "Node") return line;
  event["object"].erase("spec");
  return event.dump() + "\n";
}

// Leaves the workers of another release as they are.
act::ClusterSeams leaving_others_templates(act::ClusterSeams seams) {
  const auto product = seams;
  seams.perform = [product](const kube::Action& action, std::stop_token stop) -> Result<void> {
    const bool is_own = action.body.dump().find("sluice:other") == std::string::npos;
    const bool updates =
        action.resource == kube::kDataWorkerPools && action.verb == kube::Verb::kApply && action.uid != "";
    return updates && is_own ? Result<void>() : product.perform(action, stop);
  };
  return seams;
}

// `first`: where the search begins. All plans are tried before the broken reconciler counts as not caught.
bool is_caught(const std::string& workload_name, Perturbation::Kind kind, std::size_t first,
               const RunOptions& options) {
  std::vector<FaultPlan> plans;
  for (const FaultPlan& plan : sieve_plans(workload_name))
    if (plan.perturbation->kind == kind) plans.push_back(plan);
  const auto plan_at = [&](std::uint64_t index) { return plans[(first + index) % plans.size()]; };
  return !run_campaign(plans.size(), plan_at, nullptr, options, 1).failures.empty();
}

TEST_CASE("each pattern catches the operator that is broken for it") {
  struct Case {
    const char* name;
    control::WrapSeams broken;
    const char* workload;
    Perturbation::Kind kind;
    std::size_t first;  // a plan that caught it once, or a little before: a run takes seconds under a sanitizer
  };
  const Case cases[] = {
      {"notes before it does", noting_before_doing, "finishes", Perturbation::Kind::kCrash, 34},
      {"remembers by name", remembering_by_name, "again", Perturbation::Kind::kUnobserved, 18},
      {"takes another name", taking_another_name, "finishes", Perturbation::Kind::kStale, 13},
  };
  for (const Case& broken : cases) {
    INFO(broken.name);
    RunOptions options;
    options.wrap = broken.broken;
    CHECK(run_campaign(
              1, [&](std::uint64_t) { return undisturbed(broken.workload); }, nullptr, options)
              .failures.empty());
    CHECK(is_caught(broken.workload, broken.kind, broken.first, options));
  }
}

TEST_CASE("an operator that answers each of its own writes is caught within a minute") {
  RunOptions options;
  options.wrap = never_content;
  const Outcome outcome = simulate(undisturbed("finishes"), options);
  REQUIRE_FALSE(outcome.violations.empty());
  CHECK_THAT(outcome.violations.front(), Catch::Contains("times a minute"));
  CHECK(outcome.seconds < 120);
}

TEST_CASE("a job that cannot be carried out is told so, and silence is a violation") {
  FaultPlan plan = undisturbed("templates");
  plan.damages = {{"trainer", Json::json_pointer("/spec/podKind"), 7}};
  CHECK(simulate_and_compare(plan).violations.empty());
  RunOptions options;
  options.wrap = silent_about_refusals;
  const Outcome outcome = simulate(plan, options);
  REQUIRE_FALSE(outcome.violations.empty());
  CHECK_THAT(outcome.violations.back(), Catch::Contains("waits in vain") && Catch::Contains("trainingjobs/trainer"));
}

TEST_CASE("an operator that counts on drained nodes is caught, whether it binds its workers there or lets them wait") {
  RunOptions binds;
  binds.wrap = binding_to_a_node;
  const Outcome bound = simulate(undisturbed("drained"), binds);
  REQUIRE_FALSE(bound.violations.empty());
  CHECK_THAT(bound.violations.front(), Catch::Contains("is put on node n1, which takes it no more"));

  RunOptions deaf;
  deaf.hears = deaf_to_drains;
  const Outcome waits = simulate(undisturbed("drained"), deaf);
  REQUIRE_FALSE(waits.violations.empty());
  CHECK_THAT(waits.violations.front(), Catch::Contains("waits for a node"));
}

TEST_CASE("an operator that leaves another release's workers as they are is caught") {
  FaultPlan plan = undisturbed("finishes");
  plan.rates.upgrade_per_second = 0.05;
  CHECK(simulate_and_compare(plan).violations.empty());
  RunOptions options;
  options.wrap = leaving_others_templates;
  const Outcome outcome = simulate_and_compare(plan, options);
  REQUIRE_FALSE(outcome.violations.empty());
  CHECK_THAT(outcome.violations.back(), Catch::Contains("sluice:other") || Catch::Contains("another state"));
}

TEST_CASE("an exception that leaves a step of the operator is a violation, and the run goes on") {
  RunOptions options;
  int elections = 0;
  options.on_request = [&](const http::Request& request, int) {
    if (request.target.find("/leases") != std::string::npos && ++elections == 2) throw std::runtime_error("broken");
  };
  const Outcome outcome = simulate(undisturbed("finishes"), options);
  REQUIRE(outcome.violations.size() == 1);
  CHECK_THAT(outcome.violations.front(), Catch::Contains("ends by an exception") && Catch::Contains("broken"));
  CHECK(outcome.final_state == simulate(undisturbed("finishes")).final_state);
}

}  // namespace
}  // namespace sluice::simulation
