// What must hold in every run of the simulation.
//
//   always      1. a pool never has more live pods than it was ever told to have
//               2. the operator deletes worker pods and nothing else
//               3. a job that has succeeded or failed never seems not to have; a status never goes back in generations
//               4. no pause before the next try is longer than five minutes
//   at the end  5. nothing is left whose owner is gone
//               6. what there is is what a run without faults ends with (final_state)
//               7. nothing is written any more, and never much more than needed
// Thread safety: none.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "src/kube/fake/api_server.h"

namespace sluice::simulation {

class Oracle {
 public:
  // To be called with every change, in order. `by_operator`: an operator's process wrote it.
  void on_change(const kube::fake::StoredChange& change, bool by_operator);

  // Rule 5.
  void check_orphans(kube::fake::ApiServer& server);

  void violated(std::string what);
  const std::vector<std::string>& violations() const { return violations_; }

 private:
  void check_generation(const kube::fake::StoredChange& change);
  void on_pool(const kube::fake::StoredChange& change);
  void on_pod(const kube::fake::StoredChange& change, bool by_operator);
  void on_training_job(const kube::fake::StoredChange& change);

  std::vector<std::string> violations_;
  std::map<std::string, std::int64_t> most_planned_;           // by the pool's uid
  std::map<std::string, std::set<std::string>> live_workers_;  // the same; names
};

// The cluster's state without what two histories with the same outcome may differ in: identities, versions, times,
// names of pods, measured figures.
nlohmann::json final_state(kube::fake::ApiServer& server);

}  // namespace sluice::simulation
