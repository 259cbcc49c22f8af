// The reconcilers against the in-memory cluster, with what they read, wrote and told.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "operator/act/pool_reconciler.h"
#include "operator/act/training_job_reconciler.h"
#include "operator/observe/host_ports.h"
#include "operator/testing/fake_cluster.h"
#include "operator/testing/objects.h"
#include "src/base/testing/manual_clock.h"

namespace sluice::control::testing {

struct ReconcilerHarness {
  FakeCluster cluster;
  sluice::testing::ManualClock clock;
  decide::DecisionBoard board;
  control::Config config = test_config();
  std::string unseen;            // a kind that the informers do not show
  kube::ObjectPointer outdated;  // what they show of the TrainingJob; null: what there is
  std::vector<std::string> reads;
  std::vector<std::string> writes;
  std::vector<std::string> events;
  std::function<Result<void>(const kube::Action&)> fail = [](const kube::Action&) { return Result<void>(); };
  std::chrono::seconds busy{0};
  act::TrainingJobReconciler jobs{seams(), [this](const kube::ObjectKey&) { return pods(); }, config, board, clock};
  act::PoolReconciler pools{seams(), [this](const kube::ObjectKey&) { return pods(); }, board, clock};

  act::ClusterSeams seams() {
    return {.seen = [this](const kube::Resource& resource, const kube::ObjectKey& key) -> kube::ObjectPointer {
              if (resource == kube::kTrainingJobs && outdated) return outdated;
              return resource.kind == unseen ? nullptr : cluster.get(resource, key.name);
            },
            .read = [this](const kube::Resource& resource, const kube::ObjectKey& key,
                           std::stop_token) -> Result<kube::Json> {
              reads.push_back(std::string(resource.kind));
              const auto object = cluster.get(resource, key.name);
              return object ? Result<kube::Json>(*object) : not_found(key.to_string());
            },
            .perform = [this](const kube::Action& action, std::stop_token) -> Result<void> {
              SLUICE_TRY_VOID(fail(action));
              writes.push_back(action.to_string());
              return cluster.perform(action);
            },
            .record = [this](kube::Event event) { events.push_back(event.reason); },
            .host_ports =
                [this](const kube::ObjectKey& job) {
                  return observe::held_host_ports(cluster.all(kube::kPods),
                                                  unseen == "Job" ? kube::Store::Objects() : cluster.all(kube::kJobs),
                                                  job);
                },
            .busy = [this] { return std::chrono::milliseconds(busy); }};
  }

  std::vector<kube::ObjectPointer> pods() const {
    std::vector<kube::ObjectPointer> result;
    for (const auto& [key, pod] : cluster.all(kube::kPods)) result.push_back(pod);
    return result;
  }
};

}  // namespace sluice::control::testing
