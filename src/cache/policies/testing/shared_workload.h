// Jobs that read one data set at the same time, as one list of uses: the input of the policy simulation.
//
// Each job uses each of its samples once an epoch, in a new order. The uses of all jobs are merged by time, in which a
// job of speed 1 makes one use. Everything follows from the seed. Thread safety: values.
#pragma once

#include <cstdint>
#include <vector>

namespace sluice::cache::testing {

struct SimulatedJob {
  double speed = 1;
  double begins = 0;
  std::uint32_t epochs = 8;
  std::vector<std::uint32_t> samples = {};  // that it uses; empty: all
  std::uint32_t ranks = 1;                  // more than 1: of each epoch, every so-manieth of its order
};

struct SharedUse {
  std::uint32_t job = 0;
  std::uint32_t epoch = 0;
  std::uint32_t position = 0;
  std::uint32_t sample = 0;
};

struct SharedWorkload {
  std::uint32_t samples = 0;
  std::vector<std::uint32_t> bytes;                             // of each sample
  std::vector<std::vector<std::vector<std::uint32_t>>> orders;  // of each job and epoch
  std::vector<SharedUse> uses;
  // What counts: from when each job has had its first epoch, to when the first job ends.
  std::size_t counted_from = 0;
  std::size_t counted_to = 0;
};

SharedWorkload workload_of(std::uint32_t samples, const std::vector<SimulatedJob>& jobs, std::uint32_t seed);

// Equal jobs that begin evenly spread over one epoch.
SharedWorkload jobs_out_of_phase(std::uint32_t samples, std::uint32_t jobs, std::uint32_t epochs, std::uint32_t seed);

}  // namespace sluice::cache::testing
