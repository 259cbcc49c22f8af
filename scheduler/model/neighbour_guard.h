// Whether the feeders of other jobs slow a trainer down that shares nodes with them: the guard of neighbours.
//
// The statistics are those of interference.h. They compare the trainer's own computing seconds per batch before and
// after the feeders of other jobs have grown. A rise counts against them only if nothing else
// explains it:
//   other load    the trainer's own feeders, data workers, and feeders that no plan shrinks must use no more than
//                 before; such windows decide nothing. Where it lasts, the reference begins anew
//   other work    batches must have as many samples as before, else the reference begins anew
//   no reference  feeders that had grown before the trainer came are never blamed; those that come later are
// A trainer has many neighbours, and so there are many comparisons. So each needs more proof than the guard of a job's
// own feeders: ten windows before and ten after the growth, and a rise of five standard errors instead of four.
//
// Thread safety: plain values.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scheduler/model/config.h"
#include "scheduler/model/interference.h"
#include "scheduler/model/job_id.h"

namespace sluice::scheduler {

// CPU that the feeders of another job use on a node.
struct FeederUse {
  JobId job;
  double cores = 0;

  friend bool operator==(const FeederUse&, const FeederUse&) = default;
};

// CPU for data on one of the trainer's nodes.
struct NodeLoad {
  std::string node;
  std::vector<FeederUse> feeders;  // of other jobs, where the plan sets their CPU
  double other_cores = 0;          // of all other CPU for data that is known

  double feeder_cores() const;  // of all of `feeders`
  double cores_of(const JobId& job) const;

  friend bool operator==(const NodeLoad&, const NodeLoad&) = default;
};

struct NeighbourWindow {
  double end_seconds = 0;
  double seconds = 0;            // its length
  double compute_seconds = 0;    // per batch, > 0
  double samples_per_batch = 0;  // > 0
  std::vector<NodeLoad> load;    // of the trainer's nodes, always in the same order
};

struct NeighbourCap {
  double since_seconds = 0;
  double rise = 0;             // of the computing seconds per batch: 0.1 is 10 %
  JobId most_grown;            // the feeders that had grown most,
  std::string at_node;         // and where
  std::vector<NodeLoad> load;  // CPU that feeders may use: of the nodes where they had grown

  friend bool operator==(const NeighbourCap&, const NeighbourCap&) = default;
};

struct NeighbourGuard {
  double through_seconds = 0;  // end of the newest window that counted
  std::vector<NodeLoad> load;  // as the reference began
  RunningMean reference;       // seconds of computing per batch
  RunningMean grown;           // the same while the feeders of other jobs used more
  RunningMean reference_batch;
  RunningMean grown_batch;  // samples in it
  int unclear = 0;          // windows in a row in which other load was higher
  std::optional<NeighbourCap> cap;

  // One more window; one that overlaps with the last changes nothing.
  void take(NeighbourWindow window, const Config& config);

  // Whether the cap is in force. Once it is over, feeders may grow again, and are judged by the trainer's newest
  // windows without them.
  bool holds(double now_seconds, const Config& config) const;

  friend bool operator==(const NeighbourGuard&, const NeighbourGuard&) = default;
};

}  // namespace sluice::scheduler
