// One conformance suite for every API server: the fake one, and a real one. A difference is a bug in the fake.
//
// A suite is a YAML list of scenarios: {name, steps: [...], for_each: [{body, causes}...], needs, lacks}. With for_each
// the scenario runs once per variant, whose body is merged into the steps' bodies. `needs` and `lacks` name a feature
// of servers; a scenario that does not fit the target has no differences. "{ns}" is a namespace of the scenario's own,
// "{x}" what a step saved as x. A step is
//   request: METHOD PATH     type: merge | apply (of a PATCH)    manager, force: of an apply    body
//   strict: true             refuse fields that the kind does not have
//   retry: true              repeat until what follows holds: controllers need a moment
// or
//   watch: PATH              events: the first ones, as {type, object}
// and expects
//   status (200)  reason  message (a part of it)  causes: [fields]      of a Status
//   older_causes: [fields]   what servers before 1.33 may say instead
//   object: what the answer must hold at least; names: of a list's items; exactly: {pointer: value};
//   absent, present: [pointers]; same, changed: {saved: pointer}        save: {name: pointer} for later steps
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "src/http/transport.h"
#include "src/kube/resource.h"

namespace sluice::kube::fake {

struct ConformanceTarget {
  http::Transport& transport;
  // Lets the cluster's controllers go on for a moment; false when a step has been retried for long enough.
  std::function<bool(int tries)> pause;
  std::string namespace_prefix;  // scenarios make namespaces PREFIX-N
  bool streams_lists = true;     // feature WatchList
};

// Everything in which the server's answers differ from the scenario; empty: it conforms.
std::vector<std::string> run_conformance(const Json& scenario, const ConformanceTarget& target, int number);

}  // namespace sluice::kube::fake
