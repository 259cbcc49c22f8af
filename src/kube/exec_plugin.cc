#include "src/kube/exec_plugin.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>

#include <nlohmann/json.hpp>

#include "src/kube/json_member.h"
#include "src/kube/json_text.h"
#include "src/kube/resource.h"
#include "src/kube/timestamp.h"

extern char** environ;

namespace sluice::kube {
namespace {

constexpr std::size_t kMaxOutputBytes = 1u << 20;
constexpr auto kExpiryLeeway = std::chrono::seconds(10);

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  all.reserve(texts.size() + 1);
  for (std::string& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

std::vector<std::string> environment_of(const ExecPlugin& plugin, const std::string& exec_info) {
  std::vector<std::string> all;
  // The first of two equal names counts for most programs: the added ones come behind.
  all.push_back("KUBERNETES_EXEC_INFO=" + exec_info);
  for (const auto& [name, value] : plugin.environment) all.push_back(name + "=" + value);
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::string name(text.substr(0, text.find('=') + 1));
    bool is_set = false;
    for (const std::string& own : all) is_set |= own.compare(0, name.size(), name) == 0;
    if (!is_set) all.emplace_back(text);
  }
  return all;
}

// Starts the program with its standard output in `output`, and no input.
Result<pid_t> start(const ExecPlugin& plugin, const std::string& exec_info, int output) {
  std::vector<std::string> arguments = {plugin.command};
  arguments.insert(arguments.end(), plugin.arguments.begin(), plugin.arguments.end());
  std::vector<std::string> environment = environment_of(plugin, exec_info);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
  pid_t child = 0;
  const int failed = posix_spawnp(&child, plugin.command.c_str(), &files, nullptr, pointers(arguments).data(),
                                  pointers(environment).data());
  posix_spawn_file_actions_destroy(&files);
  if (failed == 0) return child;
  errno = failed;
  return errno_error("start " + plugin.command);
}

// Everything until the end, or an error after which the program must be killed.
Result<std::string> read_all(int output, std::chrono::steady_clock::time_point deadline) {
  std::string text;
  char buffer[4096];
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd waiting{output, POLLIN, 0};
    const int ready = left.count() <= 0 ? 0 : poll(&waiting, 1, static_cast<int>(left.count()));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return Error(ErrorCode::kDeadlineExceeded, "no answer in time");
    const ssize_t size = read(output, buffer, sizeof buffer);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return errno_error("read");
    if (size == 0) return text;
    if (text.size() + static_cast<std::size_t>(size) > kMaxOutputBytes)
      return Error(ErrorCode::kResourceExhausted, "it prints more than a credential");
    text.append(buffer, static_cast<std::size_t>(size));
  }
}

class PluginToken final : public http::TokenSource {
 public:
  PluginToken(ExecPlugin plugin, const Clock& clock, RunProgram run)
      : plugin_(std::move(plugin)), clock_(clock), run_(std::move(run)) {}

  Result<std::string> token() override {
    std::lock_guard lock(mutex_);
    if (credential_ && !(credential_->expires && *credential_->expires - kExpiryLeeway <= clock_.wall_now()))
      return credential_->token;
    const Json info{
        {"apiVersion", plugin_.api_version}, {"kind", "ExecCredential"}, {"spec", {{"interactive", false}}}};
    auto fresh = run(text_of(info));
    if (!fresh.ok()) return Error(ErrorCode::kUnauthenticated, explain(fresh.error()));
    credential_ = std::move(*fresh);
    return credential_->token;
  }

  void rejected(const std::string& token) override {
    std::lock_guard lock(mutex_);
    if (credential_ && credential_->token == token) credential_.reset();
  }

 private:
  Result<ExecCredential> run(const std::string& info) const {
    SLUICE_TRY(const std::string printed, run_(plugin_, info));
    return parse_exec_credential(printed, plugin_.api_version);
  }

  std::string explain(const Error& error) const {
    std::string text = "the kubeconfig's exec plugin " + plugin_.command + ": " + error.to_string();
    if (error.code() == ErrorCode::kNotFound && !plugin_.install_hint.empty()) text += "\n" + plugin_.install_hint;
    return text;
  }

  const ExecPlugin plugin_;
  const Clock& clock_;
  const RunProgram run_;
  std::mutex mutex_;
  std::optional<ExecCredential> credential_;
};

}  // namespace

Result<ExecCredential> parse_exec_credential(std::string_view json, std::string_view api_version) {
  const Json parsed = parse_json(json).value_or(Json());
  if (!parsed.is_object() || text_at(parsed, "kind") != "ExecCredential")
    return invalid_argument("it prints no ExecCredential");
  if (text_at(parsed, "apiVersion") != api_version)
    return invalid_argument("it speaks " + text_at(parsed, "apiVersion") + ", not " + std::string(api_version));
  const auto status = parsed.find("status");
  if (status == parsed.end() || !status->is_object()) return invalid_argument("its ExecCredential has no status");
  ExecCredential credential;
  credential.token = text_at(*status, "token");
  if (credential.token.empty()) {
    return invalid_argument(status->contains("clientCertificateData")
                                ? "it gives a client certificate; only tokens are supported"
                                : "its ExecCredential has no token");
  }
  if (const std::string expires = text_at(*status, "expirationTimestamp"); !expires.empty()) {
    credential.expires = parse_time(expires);
    if (!credential.expires) return invalid_argument("its expirationTimestamp is no time: '" + expires + "'");
  }
  return credential;
}

Result<std::string> run_program(const ExecPlugin& plugin, const std::string& exec_info,
                                std::chrono::milliseconds timeout) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return errno_error("pipe");
  const auto child = start(plugin, exec_info, ends[1]);
  close(ends[1]);
  if (!child.ok()) {
    close(ends[0]);
    return child.error();
  }
  auto printed = read_all(ends[0], std::chrono::steady_clock::now() + timeout);
  close(ends[0]);
  if (!printed.ok()) kill(*child, SIGKILL);
  int status = 0;
  while (waitpid(*child, &status, 0) < 0 && errno == EINTR) continue;
  if (!printed.ok()) return printed.error();
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    return unavailable("it failed with status " + std::to_string(WIFEXITED(status) ? WEXITSTATUS(status) : -1));
  return printed;
}

std::shared_ptr<http::TokenSource> token_from_plugin(ExecPlugin plugin, const Clock& clock, RunProgram run) {
  return std::make_shared<PluginToken>(std::move(plugin), clock, std::move(run));
}

}  // namespace sluice::kube
