// sluice-cache-policies: what a cache fetches that several jobs share, by policy (simulated; docs/designs/cache.md).
//
// Four tables: the policies beside each other; how much a job has to announce; what rewriting of segments costs; CPU
// and memory of a decision. The first three follow from seeds alone, and are the same on every machine.
#include <malloc.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <random>
#include <string>

#include "src/base/table.h"
#include "src/cache/order/shared_records.h"
#include "src/cache/policies/testing/fetch_account.h"
#include "src/cache/testing/simulated_segments.h"

namespace sluice::cache::testing {
namespace {

constexpr std::uint32_t kSamples = 3000;
constexpr std::uint32_t kEpochs = 8;

struct Shared {
  std::uint32_t jobs;
  double share;
};

std::string number(double value, int digits = 3) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.*f", digits, value);
  return text;
}

std::vector<Announces> all(const SharedWorkload& workload, Announces announces) {
  return std::vector<Announces>(workload.orders.size(), announces);
}

std::uint64_t capacity_of(double share) { return static_cast<std::uint64_t>(std::lround(share * kSamples)); }

std::string fetches(const MadeCachePolicy& policy, const SharedWorkload& workload,
                    Announces announces = Announces::kEpoch) {
  return number(account_of(*policy, workload, all(workload, announces)).fetches_per_use());
}

void print_policies() {
  Table table(
      {"jobs", "cache", "LRU", "FIFO", "never evict", "on demand", "refilled", "announced", "two epochs", "Belady"});
  for (const Shared& c : {Shared{1, .2}, {2, .1}, {2, .2}, {2, .4}, {4, .2}, {4, .4}, {8, .1}, {8, .4}}) {
    const SharedWorkload workload = jobs_out_of_phase(kSamples, c.jobs, kEpochs, 1);
    const std::uint64_t capacity = capacity_of(c.share);
    table.add({std::to_string(c.jobs), number(c.share, 1),
               fetches(least_recently_used(space_of(workload, capacity)), workload),
               fetches(first_in_first_out(space_of(workload, capacity)), workload),
               fetches(never_evict(space_of(workload, capacity)), workload),
               fetches(substitution_on_demand(space_of(workload, capacity)), workload),
               fetches(substitution_refilled(space_of(workload, capacity)), workload),
               fetches(announced_orders(space_of(workload, capacity)), workload, Announces::kEpoch),
               fetches(announced_orders(space_of(workload, capacity)), workload, Announces::kNextEpoch),
               fetches(belady(workload, capacity), workload)});
  }
  std::printf("Fetches for each sample served, %u samples, %u epochs, equal jobs out of phase\n%s\n", kSamples, kEpochs,
              table.text().c_str());
}

void print_announcements() {
  Table table({"jobs", "cache", "never evict", "nothing", "falsely", "epoch", "next epoch", "Belady"}, {0});
  const auto add = [&](const std::string& jobs, double share, const SharedWorkload& workload) {
    const std::uint64_t capacity = capacity_of(share);
    std::vector<std::string> row{jobs, number(share, 2), fetches(never_evict(space_of(workload, capacity)), workload)};
    for (const auto announces : {Announces::kNothing, Announces::kFalsely, Announces::kEpoch, Announces::kNextEpoch})
      row.push_back(fetches(announced_orders(space_of(workload, capacity)), workload, announces));
    row.push_back(fetches(belady(workload, capacity), workload));
    table.add(row);
  };
  add("2", .2, jobs_out_of_phase(kSamples, 2, kEpochs, 1));
  add("4", .4, jobs_out_of_phase(kSamples, 4, kEpochs, 1));
  std::vector<std::uint32_t> half(kSamples / 2);
  std::iota(half.begin(), half.end(), 0U);
  add("2, paces 1 and 3", .2, workload_of(kSamples, {{.epochs = 8}, {.speed = 3, .begins = 1500, .epochs = 24}}, 1));
  add("2, one of half of the samples", .2,
      workload_of(kSamples, {{.epochs = 8}, {.begins = 700, .epochs = 16, .samples = half}}, 1));
  add("1, a rank of eight", .05, workload_of(kSamples, {{.epochs = 64, .ranks = 8}}, 1));
  std::printf("Fetches by what the jobs announce\n%s\n", table.text().c_str());
}

void print_rewriting() {
  constexpr std::uint32_t kRecordBytes = 100;
  const std::uint64_t bound_bytes = capacity_of(.4) * kRecordBytes;
  const std::uint64_t segment_bytes = bound_bytes / 64;
  Table table({"live share at most", "live bytes of the bound", "fetches", "stored, of samples served",
               "written for a byte", "bound on it"});
  for (const double share : {.5, .6, .7, .8, .9}) {
    SharedWorkload workload = jobs_out_of_phase(kSamples, 4, kEpochs, 1);
    workload.bytes.assign(kSamples, kRecordBytes);
    SimulatedSegments segments(bound_bytes, segment_bytes, share);
    const std::uint64_t live_bytes = live_bytes_max(bound_bytes, segment_bytes, share);
    const auto policy = announced_orders(space_of(workload, live_bytes),
                                         [&](std::uint32_t sample, const std::vector<std::uint32_t>& evicted) {
                                           for (const std::uint32_t other : evicted) segments.drop(other);
                                           segments.add(sample, kRecordBytes);
                                         });
    const double fetched = account_of(*policy, workload).fetches_per_use();
    const auto stored = static_cast<double>(segments.stored_bytes());
    table.add({number(share, 1), number(static_cast<double>(live_bytes) / bound_bytes), number(fetched),
               number(stored / kRecordBytes / static_cast<double>(workload.uses.size())),
               number(static_cast<double>(segments.written_bytes()) / stored, 2),
               number(write_amplification_max(share), 1)});
  }
  std::printf("Rewriting of segments, 4 jobs, a disk for 0.4 of the samples\n%s\n", table.text().c_str());
}

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

std::size_t allocated_bytes() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

// Of ImageNet's size: an epoch of each job, in turns. Each announces its order.
void print_costs() {
  constexpr std::uint32_t kMany = 1281167;
  std::vector<SharedRecords::Place> places(kMany);
  for (std::uint32_t i = 0; i < kMany; ++i) places[i] = (i + 1) * 0x9E3779B97F4A7C15ULL;
  Table table({"jobs", "microseconds of a question", "bytes of a sample"});
  for (const std::uint32_t jobs : {1U, 2U, 4U, 8U}) {
    std::mt19937 random(1);
    std::vector<std::vector<std::uint32_t>> orders(jobs);
    for (auto& order : orders) {
      order.resize(kMany);
      std::iota(order.begin(), order.end(), 0U);
      std::shuffle(order.begin(), order.end(), random);
    }
    const std::size_t before = allocated_bytes();
    SharedRecords records({.capacity_bytes = kMany / 5});
    for (std::uint32_t job = 0; job < jobs; ++job) {
      static_cast<void>(records.declare(job, places));
      static_cast<void>(records.begin_epoch(job, orders[job], kMany / jobs * job));
    }
    const double began = cpu_seconds();
    for (std::uint32_t i = 0; i < kMany; ++i) {
      for (std::uint32_t job = 0; job < jobs; ++job) {
        const SharedRecords::Place place = places[orders[job][(i + kMany / jobs * job) % kMany]];
        records.asked(job, place);
        if (!records.holds(place)) static_cast<void>(records.offer(place, 1));
      }
    }
    const double micros = 1e6 * (cpu_seconds() - began) / kMany / jobs;
    table.add(
        {std::to_string(jobs), number(micros, 2), number(static_cast<double>(allocated_bytes() - before) / kMany, 0)});
  }
  std::printf("CPU and memory, %u samples, a cache for 0.2 of them\n%s\n", kMany, table.text().c_str());
}

}  // namespace
}  // namespace sluice::cache::testing

int main() {
  using namespace sluice::cache::testing;
  print_policies();
  print_announcements();
  print_rewriting();
  print_costs();
  return 0;
}
