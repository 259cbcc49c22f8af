// sluice-scale-load: many objects at once, and what becomes of the pods; scale_bench.py runs it.
//
//   create   PREFIX0, PREFIX1, ... from a template; prints {"count", "seconds", "per_second"}.
//            @GROUP in its text becomes the number of the object over that of a group's members
//   patch    the same objects, with a JSON merge patch
//   count    see pod_counter.h
#include <fstream>
#include <iostream>
#include <iterator>

#include <nlohmann/json.hpp>

#include "bench/scale/pod_counter.h"
#include "src/base/flags.h"
#include "src/base/in_parallel.h"
#include "src/kube/config.h"

namespace sluice::bench {
namespace {

using kube::Json;

constexpr const char* kManager = "sluice-scale-load";

const std::vector<Flag> kFlags = {{"kubeconfig", "FILE", "", "how to reach the cluster"},
                                  {"namespace", "NAME", "default", "where the objects are; count: empty for all"},
                                  {"namespaces", "N", "1", "groups take turns in NAME-0, NAME-1, ..."},
                                  {"kind", "pods|services|trainingjobs", "pods", "which objects"},
                                  {"template", "FILE", "", "the object, or the patch, without its name"},
                                  {"prefix", "TEXT", "", "of the names"},
                                  {"number", "N", "1", "how many"},
                                  {"group", "N", "1", "members of a group"},
                                  {"selector", "LABELS", "", "count: which pods"},
                                  {"threads", "N", "16", "requests on their way at once"}};

std::string read_text(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

Result<Json> object_of(std::string text, int group) {
  constexpr std::string_view kPlaceholder = "@GROUP";
  for (std::size_t at; (at = text.find(kPlaceholder)) != std::string::npos;)
    text.replace(at, kPlaceholder.size(), std::to_string(group));
  Json json = Json::parse(text, nullptr, false);
  return json.is_discarded() ? Result<Json>(invalid_argument("the template is no JSON"))
                             : Result<Json>(std::move(json));
}

const kube::Resource& resource_of(const std::string& kind) {
  if (kind == "trainingjobs") return kube::kTrainingJobs;
  return kind == "services" ? kube::kServices : kube::kPods;
}

Result<void> write_many(const Flags& flags, const kube::Client& client, const Clock& clock, bool create) {
  SLUICE_TRY(const auto number, flags.integer("number"));
  SLUICE_TRY(const auto threads, flags.integer("threads"));
  SLUICE_TRY(const auto members, flags.integer("group"));
  SLUICE_TRY(const auto namespaces, flags.integer("namespaces"));
  const std::string text = read_text(flags.text("template"));
  const kube::Resource& resource = resource_of(flags.text("kind"));
  const Clock::TimePoint began = clock.now();
  const auto write = [&](int index) -> Result<void> {
    const std::string name = flags.text("prefix") + std::to_string(index);
    const int group = index / static_cast<int>(members);
    const std::string name_space = flags.text("namespace") + "-" + std::to_string(group % namespaces);
    SLUICE_TRY(Json object, object_of(text, group));
    if (!create) {
      const auto patched = client.merge_patch(resource, {name_space, name}, object, kManager);
      return patched.ok() ? Result<void>() : patched.error();
    }
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
