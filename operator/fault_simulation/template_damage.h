// What people write into pod templates and should not, drawn from a seed: a mistake of template_mistakes.yaml, a value
// in the place of another, something left out, something that is there twice. In a plan it is data, so that a failure
// shows it, and can do without one of several.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "operator/fault_simulation/random.h"
#include "src/base/result.h"

namespace sluice::simulation {

// Thread safety: a value.
struct TemplateDamage {
  std::string object;                  // whose template, by the name in the workload
  nlohmann::json::json_pointer place;  // in the template; "-" at its end: behind the last element of a list
  nlohmann::json value;                // discarded: what is at the place is left out
  int times = 1;                       // so many elements; each one's name ends in a number

  // Of a file. Errors: InvalidArgument naming the key.
  nlohmann::json to_json() const;
  static Result<TemplateDamage> from_json(const nlohmann::json& json);
};

// A place that is not there (any more) is no error: nothing changes.
void damage_template(const TemplateDamage& damage, nlohmann::json& pod_template);

// One to four, to be applied in their order to that template.
// REQUIRES: the working directory is the source tree.
std::vector<TemplateDamage> draw_damages(Random& random, const std::string& object, nlohmann::json pod_template);

// Every node of `value`, itself included.
std::vector<nlohmann::json::json_pointer> places_in(const nlohmann::json& value);

}  // namespace sluice::simulation
