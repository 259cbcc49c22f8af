// The operator's configuration file; the chart renders it (helm/sluice/templates/_names.tpl, "sluice.config").
//
// Thread safety: values.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "scheduler/config.h"
#include "src/base/result.h"

namespace sluice::control {

// PromQL templates; "$window" becomes the window, such as "30s". Each answers one vector labelled (job_namespace,
// training_job), and placement where it says so.
struct Queries {
  std::string samples_per_second;
  std::string compute_share;    // seconds per second, mean over ranks
  std::string data_wait_share;  // the same
  std::string batches_in_window;
  std::string queue_depth;
  std::string queue_capacity;
  std::string worker_samples_per_second;  // per placement
  std::string worker_busy_cores;          // per placement
  std::string workers_at_work;            // data workers that had finished samples when the window began
  std::string age_seconds;                // since the newest scrape of the trainers' series
};

struct MetricsSource {
  std::string url;  // empty: there is no Prometheus; every job stays on its trainer's own CPU
  int window_seconds = 30;
  int stale_seconds = 60;
  Queries queries;
};

struct LeaderElection {
  bool enabled = true;
  std::string lease_namespace;
  std::string name = "sluice-operator";
  std::chrono::seconds lease{15};
  std::chrono::seconds renew{10};
  std::chrono::seconds retry{2};
};

struct Config {
  std::string image;  // holds the bundle
  std::string image_pull_policy = "IfNotPresent";
  std::vector<std::string> watch_namespaces;  // empty: all
  std::chrono::seconds decision_interval{15};
  std::string bind_address = "0.0.0.0:8080";
  std::string kubeconfig;  // empty: the pod's own service account
  MetricsSource metrics;
  LeaderElection leader_election;
  scheduler::Config scheduler;
  int cluster_cpu_percent = 100;  // of a node's allocatable CPU, that workers may take
};

// Errors: InvalidArgument naming the key and what it should be; unknown keys are refused, so that a misspelt one is
// not silently a default.
Result<Config> parse_config(const std::string& yaml);

// Errors: as parse_config, with the file's name; NotFound.
Result<Config> read_config(const std::string& path);

}  // namespace sluice::control
