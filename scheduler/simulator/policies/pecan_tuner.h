// Pecan's AutoPlacement of one job, in three phases. It adds remote workers until they bring nothing, then workers on
// the trainer's own hosts as long as they do no harm. Then it removes remote ones as long as that saves money.
//
// Source: Graur et al., "Pecan: Cost-Efficient ML Data Preprocessing with Automatic Transformation Ordering and Hybrid
// Placement", USENIX ATC'24, section 5.1 (Algorithm 1). States and constants are those of the authors' release. It
// compares with the last report under another configuration instead of with the converged one.
//
//   p = most recent report under another configuration;  r = 1 - batch_time / p.batch_time
//   only remote        r > up: one more remote; else back by one, one local, -> increasing local
//   increasing local   r >= -harm: one more local; else one less. At the end:
//                      nothing gained or no remote left -> stable; otherwise one remote less, -> decreasing remote
//   decreasing remote  a removal that lost r of the speed has saved money iff  C_w > -r (C_c + remote C_w): one less;
//                      else one more, and stable if nothing was removed or all local workers are in use,
//                      otherwise one more local, -> increasing local
// The tuner waits for a target that is not reached yet while the pool has remote workers. Otherwise (no remote worker
// is free, or a local one did not leave) the search goes on with local ones from the configuration there is.
//
// Thread safety: none.
#pragma once

#include <cstddef>
#include <deque>

namespace sluice::scheduler {

struct PecanConstants {
  double scale_up_above = 0.03;  // paper; the ResNet experiments have 0
  double local_harm = 0.10;
  double discard_above = 1.3;
  int max_local = 10;
  int max_remote = 20;
  int start_local = 0;                 // workers on the trainer's hosts at the job's start
  double client_cost_per_hour = 4.96;  // of the trainer: the paper's TPU v2-8
  double worker_cost_per_hour = 0.427319;
  std::size_t history_reports = 20;
};

struct PecanReport {
  int remote = 0;
  int local = 0;
  double batch_seconds = 0;
  bool remote_available = true;  // the pool has a remote worker that no job uses
};

struct PecanTarget {
  int remote = 1;
  int local = 0;

  friend bool operator==(const PecanTarget&, const PecanTarget&) = default;
};

class PecanTuner {
 public:
  enum class State { kOnlyRemote, kIncreasingLocal, kDecreasingRemote, kStable };

  explicit PecanTuner(const PecanConstants& constants = {})
      : constants_(constants), target_{1, constants.start_local} {}

  // Takes a report in and returns the workers that the job should have. A job starts with one remote worker and
  // start_local ones.
  PecanTarget report(const PecanReport& report);

  PecanTarget target() const { return target_; }
  State state() const { return state_; }

 private:
  const PecanReport* last_other() const;
  PecanTarget add_remote(const PecanReport& now, const PecanReport& before, double improvement);
  PecanTarget add_local(const PecanReport& now, double improvement);
  PecanTarget remove_remote(const PecanReport& now, double improvement);

  PecanConstants constants_;
  std::deque<PecanReport> history_;
  PecanTarget target_;
  State state_ = State::kOnlyRemote;
  int count_at_entry_ = 0;  // of the workers that the present state changes
};

}  // namespace sluice::scheduler
