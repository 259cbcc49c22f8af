// A worker in this process, on a free port of the loopback interface.
#pragma once

#include <prometheus/registry.h>

#include <memory>
#include <string>

#include "worker-image/worker/worker_service.h"

namespace sluice::testing {

class LocalWorker {
 public:
  explicit LocalWorker(std::size_t threads = 1, const transport::Credentials& credentials = {},
                       std::string python_path = "")
      : metrics_(registry_, {"job", "namespace"}, "remote"),
        service_({.threads = threads,
                  .arena = *transport::Arena::create(std::size_t{16} << 20),
                  .python_path = std::move(python_path)},
                 metrics_),
        server_(std::move(transport::RemoteServer::start("127.0.0.1:0", credentials, service_)).value()) {}

  std::string address() const { return "127.0.0.1:" + std::to_string(server_->port()); }
  worker::WorkerService& service() { return service_; }
  // As if the process died: streams break without a goodbye.
  void stop() { server_.reset(); }

 private:
  prometheus::Registry registry_;
  executor::ExecutorMetrics metrics_;
  worker::WorkerService service_;
  std::unique_ptr<transport::RemoteServer> server_;
};

}  // namespace sluice::testing
