// The events that explain a job: those about itself, its pool, its Job and its pods.
//
// Pure functions; thread-safe.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace sluice::cli {

// Those of `events` (of events.k8s.io/v1) that are about one of `objects`. By uid: events about an earlier object of
// the same name would mislead.
std::vector<nlohmann::json> events_about(const std::vector<nlohmann::json>& objects,
                                         std::vector<nlohmann::json> events);

// What an event is about, as "Pod/vision-worker-1".
std::string object_of(const nlohmann::json& event);

}  // namespace sluice::cli
