// A feeder in this process, on a socket in a temporary directory.
#pragma once

#include <prometheus/registry.h>

#include <memory>
#include <string>

#include "src/base/testing/temporary_directory.h"
#include "worker-image/feeder/feeder.h"
#include "worker-image/feeder/remote_pool.h"

namespace sluice::testing {

class LocalFeeder {
 public:
  struct Options {
    std::size_t threads = 2;
    std::size_t arena_bytes = std::size_t{32} << 20;
    std::function<feeder::Addresses()> workers;  // empty: no remote pool
    transport::Credentials credentials;
    std::string python_path;
    bool threads_by_loaders = false;
    std::size_t ranks = 1;
    std::shared_ptr<const pipeline::FileReader> files;
  };

  explicit LocalFeeder(Options options);
  ~LocalFeeder();

  std::string socket() const { return (directory_.path / "feeder.sock").string(); }
  transport::Arena& arena() { return *arena_; }
  feeder::Feeder& core() { return *feeder_; }
  // The value of a series, by name and one label's value; 0 if there is none.
  double metric(const std::string& name, const std::string& label_value = "") const;
  // Waits (a minute at most) until the metric has reached `at_least`.
  bool wait_metric(const std::string& name, double at_least, const std::string& label_value = "") const;

 private:
  const TemporaryDirectory directory_;
  std::shared_ptr<transport::Arena> arena_;
  prometheus::Registry registry_;
  executor::ExecutorMetrics executor_metrics_;
  feeder::FeederMetrics metrics_;
  SystemClock clock_;
  std::unique_ptr<feeder::Feeder> feeder_;
  std::unique_ptr<feeder::RemotePool> pool_;
  std::unique_ptr<feeder::SocketServer> server_;
};

}  // namespace sluice::testing
