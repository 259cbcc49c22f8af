#include "worker-image/testing/local_feeder.h"

#include <stdexcept>

#include "worker-image/testing/eventually.h"

namespace sluice::testing {

LocalFeeder::LocalFeeder(Options options)
    : arena_(*transport::Arena::create(options.arena_bytes)),
      executor_metrics_(registry_, {"job", "namespace"}, "local"),
      metrics_(registry_, {"job", "namespace"}) {
  feeder_ =
      std::make_unique<feeder::Feeder>(feeder::Feeder::Options{.local = {.threads = options.threads,
                                                                         .threads_max = options.threads * options.ranks,
                                                                         .arena = arena_,
                                                                         .python_path = options.python_path},
                                                               .session = "test",
                                                               .threads_by_loaders = options.threads_by_loaders,
                                                               .ranks = options.ranks,
                                                               .files = options.files},
                                       clock_, executor_metrics_, metrics_);
  if (options.workers) {
    pool_ = std::make_unique<feeder::RemotePool>(options.workers, transport::RemoteClient::with(options.credentials),
                                                 arena_, *feeder_, clock_);
    feeder_->set_remote(*pool_);
  }
  auto server = feeder::SocketServer::start(socket(), *feeder_);
  if (!server.ok()) throw std::runtime_error(server.error().to_string());
  server_ = std::move(server).value();
}

LocalFeeder::~LocalFeeder() {
  server_.reset();
  pool_.reset();
  feeder_.reset();
}

double LocalFeeder::metric(const std::string& name, const std::string& label_value) const {
  double total = 0;
  for (const auto& family : registry_.Collect()) {
    if (family.name != name) continue;
    for (const auto& series : family.metric) {
      bool matches = label_value.empty();
      for (const auto& label : series.label) matches = matches || label.value == label_value;
      if (matches) total += series.counter.value + series.gauge.value;
    }
  }
  return total;
}

bool LocalFeeder::wait_metric(const std::string& name, double at_least, const std::string& label_value) const {
  return eventually([&] { return metric(name, label_value) >= at_least; });
}

}  // namespace sluice::testing
