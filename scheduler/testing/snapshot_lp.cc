#include "scheduler/testing/snapshot_lp.h"

#include <algorithm>
#include <array>
#include <coin/ClpSimplex.hpp>
#include <coin/CoinPackedMatrix.hpp>
#include <limits>

#include "scheduler/model/progress.h"

namespace sluice::scheduler::testing {
namespace {

constexpr int kChords = 60;
constexpr double kInfinity = std::numeric_limits<double>::max();

// Columns are added with their entries in rows; rows are upper bounds.
class Programme {
 public:
  int row(double at_most) { return limits_.push_back(at_most), static_cast<int>(limits_.size()) - 1; }

  void column(double value, double at_most, const std::vector<std::pair<int, double>>& entries) {
    const int index = static_cast<int>(values_.size());
    values_.push_back(value);
    most_.push_back(at_most);
    for (const auto& [row, factor] : entries) {
      rows_.push_back(row);
      columns_.push_back(index);
      factors_.push_back(factor);
    }
  }

  double maximum() {
    const CoinPackedMatrix matrix(false, rows_.data(), columns_.data(), factors_.data(),
                                  static_cast<CoinBigIndex>(factors_.size()));
    const std::vector<double> least(values_.size(), 0);
    const std::vector<double> row_least(limits_.size(), -kInfinity);
    ClpSimplex solver;
    solver.setLogLevel(0);
    solver.loadProblem(matrix, least.data(), most_.data(), values_.data(), row_least.data(), limits_.data());
    solver.setOptimizationDirection(-1);
    solver.primal();
    return solver.objectiveValue();
  }

 private:
  std::vector<double> limits_, values_, most_, factors_;
  std::vector<int> rows_, columns_;
};

}  // namespace

double best_value(const std::vector<JobAllocation>& allocations, const NodeTable& nodes, const Config& config) {
  Programme lp;
  std::vector<int> room(nodes.size());  // feeders and workers on a node
  double everywhere = 0;
  for (int node = 0; node < nodes.size(); ++node) {
    room[node] = lp.row(static_cast<double>(nodes[node].free_for_local()) / 1000);
    everywhere += static_cast<double>(nodes[node].free_for_workers()) / 1000;
  }
  // Workers of all jobs are the same cores: one pool for each group of nodes, filled from these.
  std::array<int, kGroups> pools{};
  for (int bit = 0; bit < kGroups; ++bit) pools[bit] = lp.row(0);
  for (int node = 0; node < nodes.size(); ++node)
    lp.column(0, static_cast<double>(std::max<std::int64_t>(nodes[node].free_for_workers(), 0)) / 1000,
              {{room[node], 1}, {pools[nodes.bit(node)], -1}});
  double fixed = 0;
  for (const JobAllocation& c : allocations) {
    if (!c.adjustable || !c.estimate->known) continue;
    const double q = config.softmin_exponent;
    const double before = c.supply();
    fixed += c.worth * progress(before, q);
    // The last worker may reach beyond the target. A job that is there gets none.
    const double missing = c.target.supply_ratio - before;
    const double most = missing > 0 ? missing + c.supply_per_remote_core * c.worker_cores() : 0;
    // The grant bounds the sum of the chords used: sum of chords - supply <= 0.
    const int supply = lp.row(0);
    for (int i = 0; i < kChords && most > 0; ++i) {
      const double width = most / kChords;
      const double gain = progress(before + (i + 1) * width, q) - progress(before + i * width, q);
      lp.column(c.worth * gain / width, width, {{supply, 1}});
    }
    for (const HostShare& host : c.hosts)
      lp.column(0, static_cast<double>(host.most - host.granted) / 1000,
                {{room[host.node], 1}, {supply, -c.supply_per_local_core}});
    const double workers_at_most = std::min(everywhere, c.limit * c.worker_cores());
    const int workers = lp.row(workers_at_most);
    for (int bit = 0; bit < kGroups; ++bit)
      if ((c.groups & nodes.usable_groups() & only(bit)) != 0)
        lp.column(0, workers_at_most, {{pools[bit], 1}, {workers, 1}, {supply, -c.supply_per_remote_core}});
  }
  return fixed + lp.maximum();
}

}  // namespace sluice::scheduler::testing
