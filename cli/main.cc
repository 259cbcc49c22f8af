// kubectl-sluice: what every training job gets, and why.
//
//   kubectl sluice top [-n NS] [--watch] [-o json]      kubectl sluice why JOB [-n NS] [-o json]
//   kubectl sluice plan [-n NS] [--what-if workers=3|nodes=2x32] [-o json [--snapshot]]
//   kubectl sluice doctor [-n NS] [-o json]
//   kubectl sluice bundle [-n NS | -A] [-o FILE]
//   kubectl-sluice __complete WORDS...                  for kubectl_complete-sluice (completion.h)
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/bundle.h"
#include "cli/command_line.h"
#include "cli/completion.h"
#include "cli/doctor.h"
#include "cli/job_events.h"
#include "cli/job_report.h"
#include "cli/labels.h"
#include "cli/plan_report.h"
#include "src/http/proxy.h"
#include "src/http/server.h"
#include "src/kube/client.h"
#include "src/kube/config.h"

namespace sluice::cli {
namespace {

using nlohmann::json;

constexpr auto kWatchInterval = std::chrono::seconds(2);
constexpr const char* kUsage =
    "kubectl sluice top [-n NAMESPACE] [--watch]   all training jobs, or those of a namespace\n"
    "       kubectl sluice why JOB [-n NAMESPACE]         why a job has the workers it has\n"
    "       kubectl sluice doctor                         whether the installation works; exit status 1: it does not\n"
    "       kubectl sluice bundle [-n NAMESPACE | -A] [-o FILE]\n"
    "                                                     objects, events, logs, metrics and plan in one archive, to "
    "send\n"
    "       kubectl sluice plan [-n NAMESPACE] [--what-if workers=3|nodes=2x32] [-o json [--snapshot]]\n"
    "                                                     what more workers or nodes would bring, and what cannot be "
    "had";
constexpr int kPlanPort = 8082;
constexpr const char* kPlanAudience = "sluice-plan";
constexpr const char* kWholePlan = "/plan?snapshot=1";

// A server that is busy may ask for an hour, and a person looks at an empty terminal meanwhile.
constexpr std::chrono::seconds kRetryPatience{5};

// An answer that comes later is of no use to who has pressed Tab.
constexpr auto kCompletionPatience = std::chrono::seconds(3);

Result<kube::Connection> connect(const Flags& flags, const Clock& clock) {
  const std::string& given = flags.text("kubeconfig");
  const std::string path = given.empty() ? kube::default_kubeconfig() : given;
  if (!given.empty() || std::filesystem::exists(path)) {
    SLUICE_TRY(kube::Connection connection, kube::read_kubeconfig(path, clock, flags.text("context")));
    http::Endpoint& server = connection.endpoint;
    if (server.proxy_url.empty())
      server.proxy_url = http::proxy_for(server.base_url, http::ProxyEnvironment::current());
    return connection;
  }
  auto connection = kube::read_in_cluster(clock);
  if (!connection.ok()) return not_found("no cluster to talk to: set --kubeconfig or $KUBECONFIG, or run inside a pod");
  return connection;
}

Error explain(const Error& error) {
  if (error.code() != ErrorCode::kNotFound) return error;
  return not_found(
      "this cluster does not know TrainingJobs (sluice.dev/v1alpha1); install Sluice: helm install sluice helm/sluice, "
      "or the kinds alone: kubectl apply --server-side -f crds/");
}

std::size_t terminal_width() {
  winsize size{};
  return isatty(STDOUT_FILENO) != 0 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

Result<void> top(const kube::Client& client, const Flags& flags, const Clock& clock) {
  const bool as_json = flags.text("output") == "json";
  for (;;) {
    const auto jobs = client.list(kube::kTrainingJobs, {.namespace_ = flags.text("namespace")});
    if (!jobs.ok()) return explain(jobs.error());
    if (as_json) {
      std::cout << top_as_json(jobs->items).dump(2) << std::endl;
    } else {
      if (flags.given("watch") && isatty(STDOUT_FILENO) != 0) std::cout << "\x1b[H\x1b[2J";
      std::cout << (jobs->items.empty() ? "No TrainingJobs found.\n" : render_top(jobs->items, terminal_width()))
                << std::flush;
    }
    if (!flags.given("watch") || !std::cout) return {};
    clock.sleep_for(kWatchInterval, {});
  }
}

// About the job, its pool, its Job and its pods. What cannot be read has no events.
Result<std::vector<json>> events_of(const kube::Client& client, const json& job, const kube::ObjectKey& key) {
  std::vector<json> objects = {job};
  for (const kube::Resource& resource : {kube::kDataWorkerPools, kube::kJobs})
    if (const auto found = client.get(resource, key); found.ok()) objects.push_back(*found);
  const auto pods = client.list(
      kube::kPods, {.namespace_ = key.namespace_, .label_selector = std::string(kJobLabel) + "=" + key.name});
  if (pods.ok()) objects.insert(objects.end(), pods->items.begin(), pods->items.end());
  SLUICE_TRY(auto events, client.list(kube::kEvents, {.namespace_ = key.namespace_}));
  return events_about(objects, std::move(events.items));
}

Result<void> why(const kube::Client& client, const Flags& flags, const std::string& name_space, const Clock& clock) {
  const std::string& name = flags.positional()[1];
  const auto job = client.get(kube::kTrainingJobs, {name_space, name});
  if (!job.ok() && job.error().code() == ErrorCode::kNotFound) {
    // The job or the kind? Only the list tells.
    const auto all = client.list(kube::kTrainingJobs, {.namespace_ = name_space});
    if (!all.ok()) return explain(all.error());
    return not_found("there is no TrainingJob " + name + " in namespace " + name_space + "; name another with -n");
  }
  if (!job.ok()) return job.error();
  const auto events = events_of(client, *job, {name_space, name});
  if (!events.ok()) std::cerr << "events could not be read: " << events.error().message() << "\n";
  const std::vector<json> known = events.ok() ? *events : std::vector<json>();
  if (flags.text("output") == "json") {
    std::cout << why_as_json(*job, known).dump(2) << std::endl;
  } else {
    std::cout << render_why(*job, known, clock.wall_now()) << std::flush;
  }
  return {};
}

Result<void> doctor(const kube::Client& client, const Flags& flags, const Clock& clock) {
  const std::string& name_space = flags.text("operator-namespace");
  Installation installation;
  const auto jobs = client.list(kube::kTrainingJobs, {.namespace_ = flags.text("namespace")});
  if (!jobs.ok()) return explain(jobs.error());
  installation.jobs = jobs->items;
  SLUICE_TRY(const auto pods, client.list(kube::kPods, {.namespace_ = name_space, .label_selector = kOperators}));
  installation.operator_pods = pods.items;
  SLUICE_TRY(const auto leases, client.list(kube::kLeases, {.namespace_ = name_space}));
  installation.leases = leases.items;
  const std::vector<Check> checks = examine(installation, clock.wall_now());
  const bool as_json = flags.text("output") == "json";
  std::cout << (as_json ? checks_as_json(checks).dump(2) + "\n" : render_checks(checks)) << std::flush;
  const auto failed = std::count_if(checks.begin(), checks.end(), [](const Check& check) { return !check.passed; });
  return failed == 0 ? Result<void>() : internal_error(std::to_string(failed) + " checks failed");
}

// Where an operator serves its plan.
int plan_port(const json& pod) {
  for (const json& container : pod.at("spec").at("containers"))
    for (const json& port : container.value("ports", json::array()))
      if (port.value("name", "") == "plan") return port.value("containerPort", kPlanPort);
  return kPlanPort;
}

// The operator wants a token for its plan. The right to request one is a matter of RBAC.
Result<std::string> plan_token(const kube::Client& client, const std::string& name_space) {
  SLUICE_TRY(const auto readers,
             client.list(kube::kServiceAccounts, {.namespace_ = name_space, .label_selector = kReaders}));
  if (readers.items.empty())
    return not_found("no operator is installed in namespace " + name_space +
                     "; name the operator's namespace with --operator-namespace");
  return client.request_token(kube::key_of(readers.items.front()), kPlanAudience);
}

// A pod that is being replaced still has its name, but nothing listens in it any more.
bool may_serve(const json& pod) {
  return !pod.at("metadata").contains("deletionTimestamp") && pod.value("/status/phase"_json_pointer, "") == "Running";
}

// Only the replica that leads has a plan; the others say so.
Result<json> ask_operators(const kube::Client& client, const std::string& name_space, const std::string& target) {
  SLUICE_TRY(const std::string token, plan_token(client, name_space));
  SLUICE_TRY(const auto pods, client.list(kube::kPods, {.namespace_ = name_space, .label_selector = kOperators}));
  std::string refusals;
  for (const json& pod : pods.items) {
    if (!may_serve(pod)) continue;
    auto page = client.get_from_pod(kube::key_of(pod), plan_port(pod), target, {{http::kTokenHeader, token}});
    if (page.ok() || page.error().code() != ErrorCode::kUnavailable) return page;
    refusals += (refusals.empty() ? "" : "; ") + page.error().message();
  }
  if (!refusals.empty()) return unavailable("no operator has a plan at the moment, try again: " + refusals);
  return not_found("no operator runs in namespace " + name_space + " (" + std::to_string(pods.items.size()) +
                   " of its pods start or end)");
}

Result<void> plan(const kube::Client& client, const Flags& flags) {
  const bool as_json = flags.text("output") == "json";
  const bool with_snapshot = flags.given("snapshot");
  if (with_snapshot && !as_json) return invalid_argument("--snapshot has no table; add -o json");
  SLUICE_TRY(const std::string target, plan_target(flags.text("what-if"), with_snapshot));
  SLUICE_TRY(const json page, ask_operators(client, flags.text("operator-namespace"), target));
  if (as_json) {
    std::cout << page.dump(2) << std::endl;
    return {};
  }
  SLUICE_TRY(const std::string text, render_plan(page, flags.text("namespace"), terminal_width()));
  std::cout << text << std::flush;
  return {};
}

BundleSource bundle_source(const kube::Client& client, const std::string& operator_namespace) {
  return {.list = [&client](const kube::Resource& resource, const std::string& name_space,
                            const std::string& selector) -> Result<std::vector<json>> {
            SLUICE_TRY(auto found, client.list(resource, {.namespace_ = name_space, .label_selector = selector}));
            return std::move(found.items);
          },
          .log =
              [&client](const kube::ObjectKey& pod, const std::string& container, bool previous) {
                return client.read_log(pod, container, previous, kBundleLogLines, kBundleLogBytes);
              },
          .metrics = [&client](const kube::ObjectKey& pod,
                               int port) { return client.get_text_from_pod(pod, port, "/metrics"); },
          .plan = [&client, operator_namespace] { return ask_operators(client, operator_namespace, kWholePlan); }};
}

Result<void> bundle(const kube::Client& client, const Flags& flags, const std::string& name_space, const Clock& clock) {
  const std::string file = flags.given("output") ? flags.text("output") : "sluice-bundle.tar.gz";
  const std::string& home = flags.text("operator-namespace");
  const Bundle gathered = gather_bundle(bundle_source(client, home), {name_space, home});
  SLUICE_TRY(const std::string archive, tar_gz(gathered.files, clock.wall_now()));
  std::ofstream out(file, std::ios::binary | std::ios::trunc);
  std::error_code unsafe;
  std::filesystem::permissions(file, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write, unsafe);
  if (unsafe || !(out << archive << std::flush)) return invalid_argument("cannot write " + file);
  for (const std::string& problem : gathered.problems) std::cerr << "not in the bundle: " << problem << "\n";
  std::cout << file << ": " << gathered.files.size() << " files, " << (archive.size() + 1023) / 1024 << " KiB"
            << std::endl;
  return {};
}

Result<void> run(const Flags& flags) {
  const SystemClock clock;
  const bool is_bundle = flags.positional().front() == "bundle";
  if (!is_bundle && flags.text("output") != "text" && flags.text("output") != "json")
    return invalid_argument("-o " + flags.text("output") + ": the formats are text and json");
  SLUICE_TRY(const kube::Connection connection, connect(flags, clock));
  SLUICE_TRY(const auto transport, kube::open_transport(connection));
  const kube::Client client(transport, clock,
                            {.max_retries = 3, .max_retry_wait = kRetryPatience, .user_agent = "kubectl-sluice"});
  const auto& words = flags.positional();
  if (words.size() == 1 && words[0] == "top") return top(client, flags, clock);
  if (words.size() == 1 && words[0] == "plan") return plan(client, flags);
  if (words.size() == 1 && words[0] == "doctor") return doctor(client, flags, clock);
  const std::string name_space =
      flags.text("namespace").empty() ? connection.default_namespace : flags.text("namespace");
  if (words.size() == 2 && words[0] == "why") return why(client, flags, name_space, clock);
  if (words.size() == 1 && is_bundle)
    return bundle(client, flags, flags.given("all-namespaces") ? "" : name_space, clock);
  return invalid_argument("what shall it be? usage: " + std::string(kUsage));
}

// The names of all objects of the kind; none where they cannot be had.
std::vector<std::string> names_of(const kube::Resource& resource, const std::vector<const char*>& words) {
  const SystemClock clock;
  const auto flags = Flags::parse(known_flags(), static_cast<int>(words.size()), words.data());
  const auto connection = flags.ok() ? connect(*flags, clock) : flags.error();
  const auto transport = connection.ok() ? kube::open_transport(*connection) : connection.error();
  if (!transport.ok()) return {};
  const kube::Client client(*transport, clock,
                            {.timeout = kCompletionPatience, .max_retries = 0, .user_agent = "kubectl-sluice"});
  const std::string& given = flags->text("namespace");
  const std::string name_space = !resource.namespaced ? "" : given.empty() ? connection->default_namespace : given;
  const auto found = client.list(resource, {.namespace_ = name_space});
  std::vector<std::string> names;
  if (found.ok())
    for (const json& object : found->items) names.push_back(kube::key_of(object).name);
  return names;
}

// `words`: from the program's own name on.
void print_completion(std::vector<const char*> words) {
  words.erase(words.begin() + 1);  // "__complete"
  const std::vector<std::string> typed(words.begin() + 1, words.end());
  for (const char*& word : words) word = long_form(word).data();
  const CompletionSource source = {.namespaces = [&] { return names_of(kube::kNamespaces, words); },
                                   .jobs = [&] { return names_of(kube::kTrainingJobs, words); }};
  std::cout << complete(typed, source) << std::flush;
}

}  // namespace
}  // namespace sluice::cli

int main(int argc, char** argv) {
  using namespace sluice;
  signal(SIGPIPE, SIG_IGN);
  std::vector<const char*> words(argv, argv + argc);
  if (argc >= 3 && words[1] == std::string_view("__complete")) {
    cli::print_completion(std::move(words));
    return 0;
  }
  for (const char*& word : words) word = cli::long_form(word).data();
  const auto flags = Flags::parse(cli::known_flags(), static_cast<int>(words.size()), words.data());
  if (!flags.ok() || flags->given("help") || flags->positional().empty()) {
    if (!flags.ok()) std::cerr << flags.error().message() << "\n";
    std::cerr << Flags::help(cli::known_flags(), cli::kUsage);
    return flags.ok() && flags->given("help") ? 0 : 2;
  }
  if (const auto outcome = cli::run(*flags); !outcome.ok()) {
    std::cerr << "kubectl-sluice: " << outcome.error().message() << "\n";
    return outcome.error().code() == ErrorCode::kInvalidArgument ? 2 : 1;
  }
  return 0;
}
