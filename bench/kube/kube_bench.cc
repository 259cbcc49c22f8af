// sluice-kube-bench observe|create|update: see modes.h.
#include <iostream>

#include "bench/kube/modes.h"
#include "src/base/flags.h"
#include "src/kube/config.h"

namespace sluice::bench {
namespace {

const std::vector<Flag> kFlags = {{"kubeconfig", "FILE", "", "how to reach the cluster"},
                                  {"namespace", "NAME", "kube-bench", "where the pods are"},
                                  {"pods", "N", "10000", "how many there are"},
                                  {"rate", "N", "1000", "updates per second"},
                                  {"seconds", "N", "30", "how long to update, or to stay idle"},
                                  {"threads", "N", "16", "requests on their way at once"}};

Result<void> run(const Flags& flags) {
  const SystemClock clock;
  SLUICE_TRY(const auto connection, kube::read_kubeconfig(flags.text("kubeconfig"), clock));
  SLUICE_TRY(const auto transport, kube::open_transport(connection));
  const kube::Client client(transport, clock);
  const std::string name_space = flags.text("namespace");
  SLUICE_TRY(const auto pods, flags.integer("pods"));
  SLUICE_TRY(const auto rate, flags.integer("rate"));
  SLUICE_TRY(const auto seconds, flags.integer("seconds"));
  SLUICE_TRY(const auto threads, flags.integer("threads"));
  const std::string mode = flags.positional().empty() ? "" : flags.positional().front();
  if (mode == "observe") return observe(client, clock, name_space, std::chrono::seconds(seconds));
  if (mode == "create") return create_pods(client, name_space, static_cast<int>(pods), static_cast<int>(threads));
  if (mode == "update") {
    return update_pods(client, clock, name_space, static_cast<int>(pods), static_cast<int>(rate),
                       std::chrono::seconds(seconds), static_cast<int>(threads));
  }
  return invalid_argument(Flags::help(kFlags, "sluice-kube-bench observe|create|update"));
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
  const auto flags = sluice::Flags::parse(sluice::bench::kFlags, argc, argv);
  const auto done = flags.ok() ? sluice::bench::run(*flags) : flags.error();
  if (!done.ok()) std::cerr << done.error().to_string() << "\n";
  return done.ok() ? 0 : 1;
}
