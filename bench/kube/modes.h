// The three things that sluice-kube-bench does; kube_bench.py runs them and client-go/ beside each other.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "src/base/result.h"
#include "src/kube/client.h"

namespace sluice::bench {

// An update's annotation with the wall clock's nanoseconds when it was asked for.
inline constexpr std::string_view kSentAnnotation = "sluice.dev/bench-sent";

// An informer on all pods of a namespace. Prints one line of JSON when it has synced (seconds, CPU, memory), one after
// `idle` of quiet, and one when its standard input ends (updates seen, their lag, CPU meanwhile).
// client-go/main.go prints the same.
Result<void> observe(const kube::Client& client, const Clock& clock, const std::string& name_space,
                     std::chrono::seconds idle);

// Creates `count` pods that no scheduler binds, as large as running pods.
Result<void> create_pods(const kube::Client& client, const std::string& name_space, int count, int threads);

// Annotates pods in turn, `rate` a second for `time`.
Result<void> update_pods(const kube::Client& client, const Clock& clock, const std::string& name_space, int count,
                         int rate, std::chrono::seconds time, int threads);

}  // namespace sluice::bench
