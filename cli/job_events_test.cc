#include "cli/job_events.h"

#include <nlohmann/json.hpp>

#include "src/base/testing/catch.h"

namespace sluice::cli {
namespace {

using nlohmann::json;

json object(const char* uid) { return {{"metadata", {{"uid", uid}}}}; }

json event_of(const char* kind, const char* name, const char* uid) {
  return {{"regarding", {{"kind", kind}, {"name", name}, {"uid", uid}}}};
}

TEST_CASE("events about the job, its pool, its Job and its pods are kept, and no others") {
  const std::vector<json> objects = {object("job"), object("pool"), object("pod"), json::object()};
  std::vector<std::string> kept;
  for (const json& each : events_about(objects, {event_of("TrainingJob", "vision", "job"),
                                                 event_of("DataWorkerPool", "vision", "pool"),
                                                 event_of("Pod", "vision-worker-0", "pod"),
                                                 event_of("Pod", "vision-worker-0", "of an earlier pod"),
                                                 event_of("Pod", "other", "other"),
                                                 json::object(),
                                                 {{"regarding", 7}}}))
    kept.push_back(object_of(each));
  CHECK(kept == std::vector<std::string>{"TrainingJob/vision", "DataWorkerPool/vision", "Pod/vision-worker-0"});
}

}  // namespace
}  // namespace sluice::cli
