// sluice-scale-load: many objects at once, and what becomes of the pods; scale_bench.py runs it.
//
//   create   PREFIX0, PREFIX1, ... from a template; prints {"count", "seconds", "per_second"}
//   patch    the same objects, with a JSON merge patch
//   count    see pod_counter.h
#include <fstream>
#include <iostream>

#include <nlohmann/json.hpp>

#include "bench/kube/in_parallel.h"
#include "bench/scale/pod_counter.h"
#include "src/base/flags.h"
#include "src/kube/config.h"

namespace sluice::bench {
namespace {

using kube::Json;

constexpr const char* kManager = "sluice-scale-load";

const std::vector<Flag> kFlags = {{"kubeconfig", "FILE", "", "how to reach the cluster"},
                                  {"namespace", "NAME", "default", "where the objects are"},
                                  {"kind", "pods|trainingjobs", "pods", "which objects"},
                                  {"template", "FILE", "", "the object, or the patch, without its name"},
                                  {"prefix", "TEXT", "", "of the names"},
                                  {"number", "N", "1", "how many"},
                                  {"selector", "LABELS", "", "count: which pods"},
                                  {"threads", "N", "16", "requests on their way at once"}};

Result<Json> read_template(const std::string& path) {
  std::ifstream file(path);
  Json json = Json::parse(file, nullptr, false);
  return json.is_discarded() ? Result<Json>(invalid_argument("no JSON in " + path)) : Result<Json>(std::move(json));
}

Result<void> write_many(const Flags& flags, const kube::Client& client, const Clock& clock, bool create) {
  SLUICE_TRY(const auto number, flags.integer("number"));
  SLUICE_TRY(const auto threads, flags.integer("threads"));
  SLUICE_TRY(const Json body, read_template(flags.text("template")));
  const kube::Resource& resource = flags.text("kind") == "trainingjobs" ? kube::kTrainingJobs : kube::kPods;
  const std::string& name_space = flags.text("namespace");
  const Clock::TimePoint began = clock.now();
  const auto write = [&](int index) -> Result<void> {
    const std::string name = flags.text("prefix") + std::to_string(index);
    if (!create) {
      const auto patched = client.merge_patch(resource, {name_space, name}, body, kManager);
      return patched.ok() ? Result<void>() : patched.error();
    }
    Json object = body;
    object["metadata"]["name"] = name;
    const auto created = client.create(resource, name_space, object, kManager);
    return created.ok() ? Result<void>() : created.error();
  };
  SLUICE_TRY_VOID(in_parallel(static_cast<int>(number), static_cast<int>(threads), write));
  const double seconds = std::chrono::duration<double>(clock.now() - began).count();
  const auto count = static_cast<double>(number);
  std::cout << Json({{"count", number}, {"seconds", seconds}, {"per_second", count / seconds}}) << "\n";
  return {};
}

Result<void> run(const Flags& flags) {
  const SystemClock clock;
  SLUICE_TRY(const auto connection, kube::read_kubeconfig(flags.text("kubeconfig"), clock));
  SLUICE_TRY(const auto transport, kube::open_transport(connection));
  const kube::Client client(transport, clock);
  const std::string mode = flags.positional().empty() ? "" : flags.positional().front();
  if (mode == "create" || mode == "patch") return write_many(flags, client, clock, mode == "create");
  if (mode == "count") return count_pods(client, clock, flags.text("namespace"), flags.text("selector"));
  return invalid_argument(Flags::help(kFlags, "sluice-scale-load create|patch|count"));
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
  const auto flags = sluice::Flags::parse(sluice::bench::kFlags, argc, argv);
  const auto done = flags.ok() ? sluice::bench::run(*flags) : flags.error();
  if (!done.ok()) std::cerr << done.error().to_string() << "\n";
  return done.ok() ? 0 : 1;
}
