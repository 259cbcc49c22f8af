#include "src/kube/exec_plugin.h"

#include <nlohmann/json.hpp>

#include "src/base/testing/catch.h"
#include "src/base/testing/manual_clock.h"
#include "src/kube/resource.h"

namespace sluice::kube {
namespace {

using namespace std::chrono_literals;

constexpr const char* kV1 = "client.authentication.k8s.io/v1";

std::string credential(const Json& status, const std::string& version = kV1) {
  return Json{{"kind", "ExecCredential"}, {"apiVersion", version}, {"status", status}}.dump();
}

TEST_CASE("a credential is a token with or without an end, and everything else is named") {
  CHECK(parse_exec_credential(credential({{"token", "t"}}), kV1)->token == "t");
  CHECK_FALSE(parse_exec_credential(credential({{"token", "t"}}), kV1)->expires);
  CHECK(parse_exec_credential(credential({{"token", "t"}, {"expirationTimestamp", "2026-01-01T00:10:00Z"}}), kV1)
            ->expires.has_value());
  struct Case {
    std::string text;
    const char* want;
  };
  const Case cases[] = {
      {"nonsense", "prints no ExecCredential"},
      {"[]", "prints no ExecCredential"},
      {R"({"kind":"Pod"})", "prints no ExecCredential"},
      {R"({"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1"})", "has no status"},
      {credential({{"token", "t"}}, "client.authentication.k8s.io/v1beta1"), "it speaks"},
      {credential(Json::object()), "has no token"},
      {credential({{"token", 7}}), "has no token"},
      {credential({{"clientCertificateData", "x"}}), "only tokens are supported"},
      {credential({{"token", "t"}, {"expirationTimestamp", "tomorrow"}}), "is no time"},
  };
  for (const Case& c : cases) {
    INFO(c.text);
    const auto parsed = parse_exec_credential(c.text, kV1);
    REQUIRE_FALSE(parsed.ok());
    CHECK_THAT(parsed.error().message(), Catch::Contains(c.want));
  }
}

TEST_CASE("the plugin runs when a token is needed: at first, shortly before the end, and after a rejection") {
  sluice::testing::ManualClock clock;
  int runs = 0;
  std::string info;
  ExecPlugin plugin;
  plugin.command = "login";
  const auto source = token_from_plugin(plugin, clock, [&](const ExecPlugin&, const std::string& exec_info) {
    info = exec_info;
    ++runs;
    return Result<std::string>(
        credential({{"token", "token-" + std::to_string(runs)}, {"expirationTimestamp", "2026-01-01T00:10:00Z"}}));
  });
  CHECK(*source->token() == "token-1");
  CHECK(Json::parse(info)["spec"]["interactive"] == false);
  clock.advance(9min + 49s);
  CHECK(*source->token() == "token-1");
  clock.advance(1s);
  CHECK(*source->token() == "token-2");
  source->rejected("token-1");  // of an answer that came late
  CHECK(runs == 2);
  source->rejected("token-2");
  CHECK(*source->token() == "token-3");
}

TEST_CASE("a plugin that fails is an authentication failure that names it, and is asked again the next time") {
  sluice::testing::ManualClock clock;
  ExecPlugin plugin;
  plugin.command = "login";
  plugin.install_hint = "install it from example.com";
  bool works = false;
  const auto source = token_from_plugin(plugin, clock, [&](const ExecPlugin&, const std::string&) {
    return works ? Result<std::string>(credential({{"token", "t"}})) : not_found("no such file");
  });
  const auto failed = source->token();
  REQUIRE_FALSE(failed.ok());
  CHECK(failed.error().code() == ErrorCode::kUnauthenticated);
  CHECK_THAT(failed.error().message(), Catch::Contains("login") && Catch::Contains("install it from example.com"));
  works = true;
  CHECK(*source->token() == "t");
}

TEST_CASE("programs are run with their arguments and environment, and with a limit") {
  ExecPlugin plugin;
  plugin.command = "/bin/sh";
  const auto run = [&](const char* script, std::chrono::milliseconds timeout = 20s) {
    plugin.arguments = {"-c", script, "sh", "second"};
    return run_program(plugin, "the info", timeout);
  };
  plugin.environment = {{"EXTRA", "more"}};
  CHECK(*run("printf '%s %s %s' \"$KUBERNETES_EXEC_INFO\" \"$EXTRA\" \"$1\"") == "the info more second");
  CHECK(*run("cat") == "");
  CHECK(run("exit 3").error().code() == ErrorCode::kUnavailable);
  CHECK(run("exec sleep 60", 50ms).error().code() == ErrorCode::kDeadlineExceeded);
  CHECK(run("head -c 2000000 /dev/zero").error().code() == ErrorCode::kResourceExhausted);
  plugin.command = "/nonexistent/login";
  CHECK(run("").error().code() == ErrorCode::kNotFound);
}

}  // namespace
}  // namespace sluice::kube
