#include "operator/act/trainer_obstacle.h"

#include "operator/api/pod.h"

namespace sluice::act {

using namespace api;

namespace {

std::string without_digits(std::string text) {
  std::erase_if(text, [](char c) { return c >= '0' && c <= '9'; });
  return text;
}

}  // namespace

std::string trainer_obstacle(const TrainerJob& job, const std::vector<kube::ObjectPointer>& pods,
                             const std::string& objection) {
  bool has_pods = job.active() + job.ready() + job.succeeded() > 0;
  for (const kube::ObjectPointer& object : pods) {
    const Pod pod(*object);
    if (!pod.controlled_by(job)) continue;
    has_pods = true;
    if (!pod.serves()) continue;
    const auto hindrance = pod.hindrance();
    if (!hindrance && !pod.gate().empty())
      return "pod " + pod.name() + " waits at the scheduling gate " + pod.gate() + "; who has set it lets it start";
    if (const std::string scheduler = pod.awaited_scheduler(); !hindrance && !scheduler.empty())
      return "pod " + pod.name() + " waits for the scheduler " + scheduler +
             "; if that lasts, does it run, and what do the pod's events say?";
    if (!hindrance) continue;
    const std::string why = hindrance->message.empty() ? "" : ": " + hindrance->message;
    return "pod " + pod.name() + " cannot start: " + hindrance->reason + why;
  }
  if (!has_pods && !objection.empty()) return "no pod is made: " + objection;
  return has_pods ? "" : "no pod is made yet; if that lasts, the events of Job " + job.name() + " say why";
}

std::string with_obstacle(const std::string& text, const std::string& obstacle, const std::string& before) {
  if (obstacle.empty()) return text;
  std::string message = text + "; " + obstacle;
  const bool same = before.starts_with(text) && without_digits(before) == without_digits(message);
  return same ? before : message;
}

}  // namespace sluice::act
