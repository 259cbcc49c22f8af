// Credentials from a program that a kubeconfig names (client-go's exec plugins, client.authentication.k8s.io/v1): how
// cloud providers log people in.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/base/clock.h"
#include "src/base/result.h"
#include "src/http/bearer_token.h"

namespace sluice::kube {

struct ExecPlugin {
  std::string api_version = "client.authentication.k8s.io/v1";
  std::string command;  // looked up in PATH unless it has a slash
  std::vector<std::string> arguments;
  std::vector<std::pair<std::string, std::string>> environment;  // added to our own
  std::string install_hint;                                      // for people who do not have the command
};

// What such a program prints: a token, and until when it may be used (absent: until the server refuses it).
struct ExecCredential {
  std::string token;
  std::optional<Clock::WallTimePoint> expires;
};

// Errors: InvalidArgument for a value that is no ExecCredential of that version, has no token, or an
// expirationTimestamp that is no time. (Certificates are not supported: a transport's certificate is fixed.)
Result<ExecCredential> parse_exec_credential(std::string_view json, std::string_view api_version);

// Runs a program with `environment` added to this process's, and with nothing to read. Returns its standard output; its
// standard error is this process's. Injected, so that tests need no programs. Errors: NotFound (no such program),
// DeadlineExceeded (killed), Unavailable (exit status), ResourceExhausted (1 MiB).
using RunProgram = std::function<Result<std::string>(const ExecPlugin& plugin, const std::string& exec_info)>;
Result<std::string> run_program(const ExecPlugin& plugin, const std::string& exec_info,
                                std::chrono::milliseconds timeout = std::chrono::seconds(60));

// Tokens of the plugin, kept until they expire or the server rejects them. One thread runs the program, others wait.
// REQUIRES: `clock` outlives the source.
std::shared_ptr<http::TokenSource> token_from_plugin(ExecPlugin plugin, const Clock& clock, RunProgram run);

}  // namespace sluice::kube
