// The rules that hold in every run of the simulation.
//
//   always      1. a pool never has more live pods than it was ever told to have
//               2. the operator deletes worker pods and nothing else
//               3. a job that has succeeded or failed never seems not to have; a status never goes back in generations
//               4. no pause before the next try is longer than five minutes
//               9. a peer with a job's certificates from before a write of the operator, and one with those after
//                  it, trust each other
//              11. the operator writes an object at most 300 times a minute, whatever else writes it
//              12. no exception ends the operator
//              13. a spec that cannot be carried out gets a condition that names the wrong field (is_told)
//              14. no pod is put on a node that is gone or drained
//   at the end  5. nothing is left whose owner is gone
//               6. the objects are those that a run without faults ends with (final_state)
//               7. nothing is written any more, and never much more than needed
//              15. no worker waits for a node: the operator asked for no more than there is room for
//               8. no resize of a feeder waits, and the feeders have the CPU of the last plan
//              10. certificates are renewed
// Thread safety: none.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "operator/decide/decision_board.h"
#include "operator/fault_simulation/virtual_clock.h"
#include "src/kube/fake/api_server.h"

namespace sluice::simulation {

class Oracle {
 public:
  // REQUIRES: the clock outlives the oracle.
  explicit Oracle(const VirtualClock& clock) : clock_(clock) {}

  // To be called with every change, in order. `by_operator`: an operator's process wrote it.
  void on_change(const kube::fake::StoredChange& change, bool by_operator);

  // Rule 5.
  void check_orphans(kube::fake::ApiServer& server);

  // Rule 8.
  void check_feeders(kube::fake::ApiServer& server, const decide::Round& last);

  // Rule 15.
  void check_waiting(kube::fake::ApiServer& server);

  // Rule 10.
  void check_certificates(kube::fake::ApiServer& server);

  void violated(std::string what);
  const std::vector<std::string>& violations() const { return violations_; }

  // Rule 11 is broken: the run, which would take long, may end.
  bool has_seen_storm() const { return has_seen_storm_; }

 private:
  struct Writes {
    Clock::TimePoint since;
    int count = 0;
  };

  void count_write(const std::string& object);
  void check_generation(const kube::fake::StoredChange& change);
  void on_node(const kube::fake::StoredChange& change);
  void check_node_of(const kube::fake::StoredChange& change);
  void on_pool(const kube::fake::StoredChange& change);
  void on_pod(const kube::fake::StoredChange& change, bool by_operator);
  void on_training_job(const kube::fake::StoredChange& change);
  void on_secret(const kube::fake::StoredChange& change, bool by_operator);

  const VirtualClock& clock_;
  std::map<std::string, Writes> writes_;  // by the operator, of a minute; by "pods default/a"
  bool has_seen_storm_ = false;
  std::map<kube::ObjectKey, Clock::TimePoint> aged_at_;  // Secrets, by others than the operator
  std::vector<std::string> violations_;
  std::map<std::string, kube::ObjectPointer> changed_nodes_;   // null: gone
  std::map<std::string, std::int64_t> most_planned_;           // by the pool's uid
  std::map<std::string, std::set<std::string>> live_workers_;  // the same; names
};

// Whether a job and its pool are as the job's spec asks, or a condition names the field that is wrong.
bool is_told(kube::fake::ApiServer& server, const kube::ObjectKey& job);

// The cluster's state without the values in which two histories with the same outcome may differ: identities, versions,
// times, names of pods, measured figures.
nlohmann::json final_state(kube::fake::ApiServer& server);

}  // namespace sluice::simulation
