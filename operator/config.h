// The operator's configuration file; the chart renders it (helm/sluice/templates/_names.tpl, "sluice.config").
//
// Thread safety: values.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/model/config.h"
#include "src/base/result.h"

namespace sluice::control {

// PromQL templates; "$window" becomes the window, such as "30s", and "$namespace" the namespace label. Each answers one
// vector labelled ($namespace, training_job), and placement where it says so.
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
  std::string bytes_per_sample;           // of the batches that executors made
  std::string read_bytes_per_sample;      // from files and object stores, without what caches served
  std::string blocked_threads;            // executors that wait for what they read, with a batch in hand
  std::string worker_memory_bytes;        // the most that one data worker used
  std::string remaining_samples;          // that the training loops will still take, over all ranks
  std::string age_seconds;                // since the newest scrape of the trainers' series
  std::string scrapes_in_window;          // of the trainer's pod that was scraped most
  // That nodes' caches have for jobs, by namespace of the cache, cache_node, asker and data_set. Empty: there are none.
  std::string kept_bytes;
};

// How Prometheus is reached. Files hold secrets; a changed one is read again. Empty: not used.
struct PrometheusConnection {
  std::string bearer_token_file;
  std::string username;  // basic authentication, with password_file
  std::string password_file;
  std::string ca_file;           // exactly these authorities are trusted; empty: the system's
  std::string certificate_file;  // the client's, with key_file
  std::string key_file;
  std::string server_name;                     // that the server's certificate carries; empty: the host of the URL
  std::string proxy_url;                       // http://HOST:PORT on the way there; empty: none
  std::map<std::string, std::string> headers;  // of every request, such as X-Scope-OrgID
};

struct MetricsSource {
  std::string url;          // empty: there is no Prometheus; every job stays on its trainer's own CPU
  int window_seconds = 30;  // at least; observe/scrape_window.h
  int stale_seconds = 60;
  PrometheusConnection connection;
  // The label by which a scrape tells the namespace of the pod: a pod can say any job_namespace of itself.
  std::string namespace_label = "namespace";
  std::string own_namespace;  // the operator's: that of the nodes' caches, too
  Queries queries;
};

// Prices and network links of nodes, by their labels or the configuration.
struct NodeFacts {
  std::string price_label;               // whose value is the node's price per hour; empty: none is
  std::map<std::string, double> prices;  // per hour, by node.kubernetes.io/instance-type
  std::string network_label;             // whose value is the node's link in Gbit/s; empty: none is
  double network_gigabits = 0;           // of nodes without that label; 0: no limit is known
};

// The most that data workers may cost per hour, in the unit of the nodes' prices.
struct Budgets {
  std::optional<double> of_all;  // none: no bound
  // By name. 0: the workers of the namespace may cost nothing. Other namespaces have no bound of their own.
  std::map<std::string, double> of_namespaces;
};

// A storage whose bandwidth several jobs share.
struct SharedStorage {
  double bytes_per_second = 0;      // that all jobs together may read
  std::vector<std::string> claims;  // NAMESPACE/NAME: a job whose pods have one of these volumes reads from it
};

// Caps on the specs of a namespace's TrainingJobs: a higher value counts as the cap. None: no bound.
struct NamespaceCaps {
  std::optional<int> priority;
  std::optional<int> weight;
  std::optional<double> worker_cores;  // CPU requests of all data workers of the namespace
};

// Kubernetes quantities of the init container that copies Sluice's programs into pods of trainers and workers.
struct BundleResources {
  std::string cpu_request = "10m";
  std::string memory_request = "32Mi";
  // With the requests above, never more than a worker of the smallest size that Sluice chooses by default.
  std::string cpu_limit = "250m";
  std::string memory_limit = "128Mi";
};

struct LeaderElection {
  bool enabled = true;
  std::string lease_namespace;
  std::string name = "sluice-operator";
  std::chrono::seconds lease{15};
  std::chrono::seconds renew{10};
  std::chrono::seconds retry{2};
};

struct PlanPage {
  std::string address = "[::]:8082";
  // The user whose tokens are admitted: system:serviceaccount:NAMESPACE:NAME; empty: none is admitted.
  std::string reader;
};

// The caches of nodes (docs/designs/cache.md).
struct NodeCache {
  std::string address;  // HOST:PORT of their Service; empty: there are none
  std::string secret;   // their certificate's, in the namespace of the leader election
};

struct Config {
  std::string image;                                // holds the bundle
  std::vector<std::string> architectures{"amd64"};  // of the image, as nodes call them; the first is the default
  std::string image_pull_policy = "IfNotPresent";
  std::vector<std::string> image_pull_secrets;  // names of Secrets in the jobs' namespaces, for the image
  BundleResources bundle;
  std::string worker_priority_class;          // of data workers whose template names none; empty: the cluster's default
  std::vector<std::string> watch_namespaces;  // empty: all
  std::chrono::seconds decision_interval{15};
  std::string metrics_address = "[::]:8080";
  std::string probes_address = "[::]:8081";
  PlanPage plan;
  std::string kubeconfig;  // empty: the pod's own service account
  MetricsSource metrics;
  LeaderElection leader_election;
  scheduler::Config scheduler;
  int cluster_cpu_percent = 100;  // of a node's allocatable CPU, that workers may take
  int free_cpu_percent = 5;       // of the same, that they leave free; only on nodes of four cores and more
  bool resize_feeders = true;     // in place, where the API server can
  bool guard_workers = true;      // a NetworkPolicy for each job's data workers
  NodeCache node_cache;
  NodeFacts nodes;
  Budgets budgets;
  std::map<std::string, NamespaceCaps> namespace_caps;  // by name
  std::map<std::string, SharedStorage> storages;        // by name
  // Name of the ConfigMap, in the namespace of the leader election, that keeps knowledge of jobs; empty: none.
  std::string learnt_config_map;
};

// Errors: InvalidArgument naming file, line, key and its type; unknown keys are refused, so that a misspelt one is not
// silently a default. `file_name` is used in messages only.
Result<Config> parse_config(const std::string& yaml, const std::string& file_name = "config.yaml");

// Errors: as parse_config; NotFound.
Result<Config> read_config(const std::string& path);

}  // namespace sluice::control
