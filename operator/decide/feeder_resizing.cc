#include "operator/decide/feeder_resizing.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "operator/api/names.h"
#include "src/kube/quantity.h"

namespace sluice::decide {
namespace {

using api::FeederCpu;
using api::FeederView;
using observe::FeederPod;

constexpr double kPatienceSeconds = 60;  // for a resize to happen; a kubelet that has room takes half a second
constexpr double kFirstPauseSeconds = 60;
constexpr double kLongestPauseSeconds = 300;
constexpr double kGrowthPauseSeconds = 30;
constexpr double kForgottenAfterSeconds = 2 * kLongestPauseSeconds;  // a pod that is not planned for any more
constexpr std::int64_t kLeastMillicores = 10;                        // of a request; also its granularity
constexpr double kDeadBandFraction = 0.1;
constexpr std::int64_t kDeadBandMillicores = 50;

bool differs(std::int64_t wanted, std::int64_t planned) {
  const auto band = std::max(static_cast<double>(kDeadBandMillicores), kDeadBandFraction * static_cast<double>(wanted));
  return static_cast<double>(std::abs(wanted - planned)) > band;
}

bool differs(const FeederCpu& wanted, const FeederCpu& planned) {
  return differs(wanted.request_millicores, planned.request_millicores) ||
         differs(wanted.limit_millicores, planned.limit_millicores);
}

// Part `index` of `count`, in whole tens.
std::int64_t part_of(std::int64_t millicores, std::int64_t index, std::int64_t count) {
  const std::int64_t tens = millicores / kLeastMillicores;
  return kLeastMillicores * (tens / count + (index < tens % count ? 1 : 0));
}

FeederCpu planned_for(const FeederPod& pod, const scheduler::LocalCpu& local, std::int64_t index, std::int64_t count) {
  FeederCpu planned{std::max(part_of(local.request_millicores, index, count), kLeastMillicores),
                    part_of(local.limit_millicores, index, count)};
  planned.limit_millicores = std::max(planned.limit_millicores, planned.request_millicores);
  if (pod.feeder.qos_class == FeederView::QosClass::kGuaranteed) planned.limit_millicores = planned.request_millicores;
  return planned;
}

std::string text_of(const FeederCpu& cpu) {
  std::string text = std::to_string(cpu.request_millicores) + "m";
  if (cpu.limit_millicores > 0) text += " (limit " + std::to_string(cpu.limit_millicores) + "m)";
  return text;
}

kube::Action resize_action(const FeederPod& pod, const FeederCpu& cpu) {
  kube::Action action{kube::Verb::kApply, kube::kPods, pod.key, api::resize_of_feeder(cpu),
                      std::string(api::kSchedulerManager)};
  action.uid = pod.uid;
  action.subresource = "resize";
  return action;
}

kube::Event event_about(const scheduler::JobId& job, const FeederPod& pod, kube::EventType type, const char* reason,
                        std::string action, std::string note) {
  return {kube::kTrainingJobs, {job.job_namespace, job.name}, pod.job_uid, type, reason, std::move(action),
          std::move(note)};
}

}  // namespace

std::set<std::string> FeederResizing::fixed(double now_seconds) const {
  std::set<std::string> uids;
  for (const auto& [uid, attempts] : attempts_)
    if (attempts.fixed_until_seconds > now_seconds) uids.insert(uid);
  return uids;
}

std::vector<FeederOrder> FeederResizing::orders(const observe::FeederPods& feeders, const scheduler::Plan& plan,
                                                double now_seconds) {
  std::vector<FeederOrder> orders;
  for (const scheduler::JobPlan& job : plan.jobs) {
    const auto pods = feeders.find(job.id);
    if (pods == feeders.end()) continue;
    for (const scheduler::LocalCpu& local : job.local) {
      std::vector<const FeederPod*> here;
      for (const FeederPod& pod : pods->second)
        if (pod.node == local.node) here.push_back(&pod);
      for (std::size_t i = 0; i < here.size(); ++i) {
        const FeederCpu planned =
            planned_for(*here[i], local, static_cast<std::int64_t>(i), static_cast<std::int64_t>(here.size()));
        if (auto order = order_of(job.id, *here[i], planned, job.explanation, now_seconds))
          orders.push_back(std::move(*order));
      }
    }
  }
  forget_unseen(now_seconds);
  doubtful_.clear();
  for (const auto& [job, pods] : feeders)
    for (const FeederPod& pod : pods)
      if (const auto found = attempts_.find(pod.uid); found != attempts_.end() && found->second.failures > 0)
        doubtful_.insert(job);
  std::stable_sort(orders.begin(), orders.end(),
                   [](const FeederOrder& a, const FeederOrder& b) { return a.frees_room() > b.frees_room(); });
  return orders;
}

std::optional<FeederOrder> FeederResizing::order_of(const scheduler::JobId& job, const FeederPod& pod,
                                                    const FeederCpu& planned, const std::string& why,
                                                    double now_seconds) {
  using Resize = FeederView::Resize;
  const FeederView& feeder = pod.feeder;
  Attempts& attempts = attempts_[pod.uid];
  attempts.job = job;
  attempts.seen_at_seconds = now_seconds;

  // 1. The outcome of the last resize.
  const bool too_late = attempts.asked && now_seconds - attempts.asked_at_seconds >= kPatienceSeconds;
  if (feeder.resize == Resize::kDone) {
    const bool as_asked = attempts.asked && feeder.wanted == attempts.asked_for;
    if (as_asked) attempts.failures = 0;
    if (as_asked || too_late) attempts.asked = false;  // otherwise the write has not been seen yet
  } else if (feeder.resize == Resize::kInfeasible || too_late) {
    return take_back(job, pod, attempts, now_seconds);
  } else if (!attempts.asked) {  // asked for before a restart
    attempts.asked = true;
    attempts.asked_for = feeder.wanted;
    attempts.asked_at_seconds = now_seconds;
  }

  // 2. The change that the plan asks for.
  if (!differs(feeder.wanted, planned)) {
    if (feeder.resize == Resize::kDone) attempts.failures = 0;
    return std::nullopt;
  }
  const bool gives_back = planned.request_millicores < feeder.wanted.request_millicores;
  const bool too_soon = attempts.grew && now_seconds - attempts.grew_at_seconds < kGrowthPauseSeconds;
  if (!gives_back && (attempts.asked || too_soon)) return std::nullopt;
  attempts.asked = true;
  attempts.asked_for = planned;
  attempts.asked_at_seconds = now_seconds;
  attempts.grew = !gives_back;
  attempts.grew_at_seconds = now_seconds;
  return FeederOrder{resize_action(pod, planned),
                     event_about(job, pod, kube::EventType::kNormal, "FeederResized", "ResizeTo" + text_of(planned),
                                 "feeder CPU " + text_of(feeder.wanted) + " -> " + text_of(planned) + ": " + why),
                     job,
                     pod.uid,
                     feeder.wanted,
                     planned};
}

// The pod's request becomes the CPU that it has, so that kube-scheduler keeps no room for a resize that will not
// happen.
FeederOrder FeederResizing::take_back(const scheduler::JobId& job, const FeederPod& pod, Attempts& attempts,
                                      double now_seconds) {
  const FeederView& feeder = pod.feeder;
  const std::string problem = !feeder.problem.empty() ? feeder.problem : "the kubelet has not done it";
  fail(attempts, problem, now_seconds);
  attempts.asked = attempts.grew = false;
  FeederCpu to = feeder.in_force;
  if (to.limit_millicores == 0) to.limit_millicores = feeder.wanted.limit_millicores;  // it cannot be taken away again
  return {resize_action(pod, to),
          event_about(job, pod, kube::EventType::kWarning, "FeederResizeFailed", "Resize",
                      "the feeder stays at CPU " + text_of(feeder.in_force) + ": " + problem),
          job,
          pod.uid,
          feeder.wanted,
          to};
}

bool FeederResizing::refused(const FeederOrder& order, const Error& error, double now_seconds) {
  Attempts& attempts = attempts_[order.pod_uid];
  attempts.asked = attempts.grew = false;
  const bool is_refusal = error.code() == ErrorCode::kInvalidArgument || error.code() == ErrorCode::kPermissionDenied;
  if (is_refusal) fail(attempts, error.message(), now_seconds);
  return is_refusal;
}

void FeederResizing::fail(Attempts& attempts, std::string problem, double now_seconds) {
  const double pause = std::min(kFirstPauseSeconds * std::exp2(attempts.failures), kLongestPauseSeconds);
  attempts.failures = std::min(attempts.failures + 1, 16);
  attempts.fixed_until_seconds = now_seconds + pause;
  attempts.problem = std::move(problem);
}

std::string FeederResizing::problem_of(const scheduler::JobId& job, double now_seconds) const {
  for (const auto& [uid, attempts] : attempts_)
    if (attempts.job == job && attempts.fixed_until_seconds > now_seconds)
      return "The feeder's CPU stays as it is for now, it could not be changed: " + attempts.problem + ".";
  return "";
}

void FeederResizing::forget_unseen(double now_seconds) {
  std::erase_if(attempts_, [&](const auto& entry) {
    const Attempts& attempts = entry.second;
    return now_seconds - std::max(attempts.seen_at_seconds, attempts.fixed_until_seconds) > kForgottenAfterSeconds;
  });
}

}  // namespace sluice::decide
