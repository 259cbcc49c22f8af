// What the operations of native pipelines cost and make, counted by one thread.
//
// Thread safety: none.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>

#include "src/base/clock.h"

namespace sluice::pipeline {

struct Cost {
  double seconds = 0;              // CPU
  std::uint64_t bytes = 0;         // that it has made
  std::uint64_t spared_bytes = 0;  // that it would have made besides, had it not waited (late_change.h)

  void add(const Cost& other) {
    seconds += other.seconds;
    bytes += other.bytes;
    spared_bytes += other.spared_bytes;
  }
};

struct OpCosts {
  Cost read;                             // the file
  Cost decode;                           // to RGB, only the part that the crop needs
  Cost resample;                         // crop, resize and flip
  std::map<std::string_view, Cost> ops;  // those that change pixels one by one, by their names in specifications
  Cost finish;                           // the tensor, with the operations on it
  double blocked_seconds = 0;            // no CPU: the rest of the wall time that reading the file took

  void add(const OpCosts& other) {
    read.add(other.read);
    decode.add(other.decode);
    resample.add(other.resample);
    for (const auto& [name, cost] : other.ops) ops[name].add(cost);
    finish.add(other.finish);
    blocked_seconds += other.blocked_seconds;
  }
};

// Adds the thread's CPU time since the last lap to what has been computed in it.
class Stopwatch {
 public:
  // Each of its seconds counts for so many. 0: it asks no clock, which takes a third of a microsecond, and only counts
  // bytes.
  explicit Stopwatch(int weight = 1) : weight_(weight), last_(weight > 0 ? thread_cpu_seconds() : 0) {}

  void lap(Cost& cost, std::uint64_t bytes, std::uint64_t spared_bytes = 0) {
    const double now = weight_ > 0 ? thread_cpu_seconds() : 0;
    cost.add({(now - last_) * weight_, bytes, spared_bytes});
    last_ = now;
  }

 private:
  int weight_;
  double last_;
};

// Where samples are made within microseconds, clocks would take a quarter of that. So after the first ones, which also
// warm up, one of sixteen is measured, and counts for all.
class SampledStopwatch {
 public:
  Stopwatch next() {
    constexpr std::uint64_t kAllOfFirst = 64;
    constexpr int kOneOf = 16;
    const std::uint64_t number = number_++;
    return Stopwatch(number < kAllOfFirst ? 1 : number % kOneOf == 0 ? kOneOf : 0);
  }

 private:
  std::uint64_t number_ = 0;
};

}  // namespace sluice::pipeline
