// kubectl-sluice: what every training job gets, and why.
//
//   kubectl sluice top [-n NS] [--watch] [-o json]      kubectl sluice why JOB [-n NS] [-o json]
//   kubectl sluice plan [-n NS] [--what-if workers=3|nodes=2x32] [-o json]
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/job_report.h"
#include "cli/plan_report.h"
#include "src/base/flags.h"
#include "src/kube/client.h"
#include "src/kube/config.h"

namespace sluice::cli {
namespace {

using nlohmann::json;

constexpr auto kWatchInterval = std::chrono::seconds(2);
constexpr const char* kUsage =
    "kubectl sluice top [-n NAMESPACE] [--watch]   all training jobs, or those of a namespace\n"
    "       kubectl sluice why JOB [-n NAMESPACE]         why a job has the workers it has\n"
    "       kubectl sluice plan [-n NAMESPACE] [--what-if workers=3|nodes=2x32]\n"
    "                                                     what more workers or nodes would bring, and what cannot be "
    "had";
constexpr int kPagePort = 8080;
constexpr const char* kOperators = "app.kubernetes.io/name=sluice,app.kubernetes.io/component=operator";

const std::vector<Flag> kFlags = {
    {"namespace", "NAME", "", "namespace, also -n (top, plan: all; why: the context's)"},
    {"kubeconfig", "FILE", "", "kubeconfig (default: $KUBECONFIG, ~/.kube/config, or the pod's service account)"},
    {"context", "NAME", "", "context of the kubeconfig (default: its current one)"},
    {"output", "FORMAT", "text", "text or json, also -o"},
    {"watch", "", "", "top: again every two seconds, also -w"},
    {"what-if", "QUESTION", "", "plan: workers=3 (of each job for itself), or nodes=2x32 (nodes of 32 cores)"},
    {"operator-namespace", "NAME", "sluice-system", "plan: where the operator runs"},
    {"help", "", "", "show this text, also -h"}};

// kubectl's users type its short flags.
std::vector<const char*> with_long_flags(int argc, char** argv) {
  std::vector<const char*> words;
  for (int i = 0; i < argc; ++i) {
    const std::string_view word = argv[i];
    words.push_back(word == "-n"   ? "--namespace"
                    : word == "-o" ? "--output"
                    : word == "-w" ? "--watch"
                    : word == "-h" ? "--help"
                                   : argv[i]);
  }
  return words;
}

Result<kube::Connection> connect(const Flags& flags, const Clock& clock) {
  const std::string& given = flags.text("kubeconfig");
  const std::string path = given.empty() ? kube::default_kubeconfig() : given;
  if (!given.empty() || std::filesystem::exists(path)) return kube::read_kubeconfig(path, clock, flags.text("context"));
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
  if (flags.text("output") == "json") {
    std::cout << job->dump(2) << std::endl;
    return {};
  }
  // By uid: events about an earlier job of this name would mislead.
  const std::string uid = job->at("metadata").value("uid", "");
  const auto events = client.list(kube::kEvents, {.namespace_ = name_space, .field_selector = "regarding.uid=" + uid});
  std::cout << render_why(*job, events.ok() ? events->items : std::vector<json>(), clock.wall_now()) << std::flush;
  if (!events.ok()) std::cerr << "events could not be read: " << events.error().message() << "\n";
  return {};
}

// Where an operator serves its pages.
int page_port(const json& pod) {
  for (const json& container : pod.at("spec").at("containers"))
    for (const json& port : container.value("ports", json::array()))
      if (port.value("name", "") == "metrics") return port.value("containerPort", kPagePort);
  return kPagePort;
}

// Only the replica that leads has a plan; the others say so.
Result<json> ask_operators(const kube::Client& client, const std::string& name_space, const std::string& target) {
  SLUICE_TRY(const auto pods, client.list(kube::kPods, {.namespace_ = name_space, .label_selector = kOperators}));
  const std::string way_out = "; name the operator's namespace with --operator-namespace";
  Error last = not_found("no operator runs in namespace " + name_space + way_out);
  for (const json& pod : pods.items) {
    auto page = client.get_from_pod(kube::key_of(pod), page_port(pod), target);
    if (page.ok() || page.error().code() != ErrorCode::kUnavailable) return page;
    last = page.error();
  }
  return last;
}

Result<void> plan(const kube::Client& client, const Flags& flags) {
  SLUICE_TRY(const std::string target, plan_target(flags.text("what-if")));
  SLUICE_TRY(const json page, ask_operators(client, flags.text("operator-namespace"), target));
  if (flags.text("output") == "json") {
    std::cout << page.dump(2) << std::endl;
    return {};
  }
  SLUICE_TRY(const std::string text, render_plan(page, flags.text("namespace"), terminal_width()));
  std::cout << text << std::flush;
  return {};
}

Result<void> run(const Flags& flags) {
  const SystemClock clock;
  if (flags.text("output") != "text" && flags.text("output") != "json")
    return invalid_argument("-o " + flags.text("output") + ": the formats are text and json");
  SLUICE_TRY(const kube::Connection connection, connect(flags, clock));
  SLUICE_TRY(const auto transport, kube::open_transport(connection));
  const kube::Client client(transport, clock, {.user_agent = "kubectl-sluice"});
  const auto& words = flags.positional();
  if (words.size() == 1 && words[0] == "top") return top(client, flags, clock);
  if (words.size() == 1 && words[0] == "plan") return plan(client, flags);
  if (words.size() == 2 && words[0] == "why") {
    const std::string& name_space = flags.text("namespace");
    return why(client, flags, name_space.empty() ? connection.default_namespace : name_space, clock);
  }
  return invalid_argument("what shall it be? usage: " + std::string(kUsage));
}

}  // namespace
}  // namespace sluice::cli

int main(int argc, char** argv) {
  using namespace sluice;
  signal(SIGPIPE, SIG_IGN);
  const std::vector<const char*> words = cli::with_long_flags(argc, argv);
  const auto flags = Flags::parse(cli::kFlags, static_cast<int>(words.size()), words.data());
  if (!flags.ok() || flags->given("help") || flags->positional().empty()) {
    if (!flags.ok()) std::cerr << flags.error().message() << "\n";
    std::cerr << Flags::help(cli::kFlags, cli::kUsage);
    return flags.ok() && flags->given("help") ? 0 : 2;
  }
  if (const auto outcome = cli::run(*flags); !outcome.ok()) {
    std::cerr << "kubectl-sluice: " << outcome.error().message() << "\n";
    return outcome.error().code() == ErrorCode::kInvalidArgument ? 2 : 1;
  }
  return 0;
}
