#include "src/kube/config.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "src/base/testing/catch.h"
#include "src/base/testing/manual_clock.h"
#include "src/base/testing/temporary_directory.h"

namespace sluice::kube {
namespace {

using namespace std::chrono_literals;

constexpr const char* kBase = R"(
apiVersion: v1
kind: Config
current-context: one
contexts:
- {name: one, context: {cluster: c, user: u, namespace: team}}
- {name: two, context: {cluster: other, user: u}}
- {name: nobody, context: {cluster: other}}
- {name: lost, context: {cluster: missing, user: u}}
clusters:
- name: c
  cluster: {server: "https://10.0.0.1:6443", certificate-authority-data: Y2EgY2VydGlmaWNhdGU=, tls-server-name: api.example,
    proxy-url: "http://proxy.example:3128"}
- name: other
  cluster: {server: "https://[fd00::1]:6443", certificate-authority: ca.pem}
users:
)";

struct ConfigFolder {
  sluice::testing::TemporaryDirectory directory;
  sluice::testing::ManualClock clock;
  Result<Connection> read(const std::string& users, const std::string& context = "") {
    return read_kubeconfig(directory.file("config", kBase + users), clock, context);
  }
};

TEST_CASE_METHOD(ConfigFolder, "a kubeconfig's current context, with certificates as data") {
  const auto connection = read("- {name: u, user: {client-certificate-data: Y2VydA==, client-key-data: 'a2V5IQ=='}}\n");
  REQUIRE(connection.ok());
  CHECK(connection->endpoint.base_url == "https://10.0.0.1:6443");
  CHECK(connection->endpoint.ca_pem == "ca certificate");
  CHECK(connection->endpoint.server_name == "api.example");
  CHECK(connection->endpoint.proxy_url == "http://proxy.example:3128");
  CHECK(connection->endpoint.client_certificate_pem == "cert");
  CHECK(connection->endpoint.client_key_pem == "key!");
  CHECK(connection->default_namespace == "team");
  CHECK(connection->token == nullptr);
}

TEST_CASE_METHOD(ConfigFolder, "another context, with files beside the kubeconfig") {
  directory.file("ca.pem", "the ca");
  directory.file("crt", "the certificate");
  const std::string key = directory.file("key", "the key");
  const auto connection = read("- {name: u, user: {client-certificate: crt, client-key: " + key + "}}\n", "two");
  REQUIRE(connection.ok());
  CHECK(connection->endpoint.base_url == "https://[fd00::1]:6443");
  CHECK(connection->endpoint.proxy_url.empty());
  CHECK(connection->endpoint.ca_pem == "the ca");
  CHECK(connection->endpoint.client_certificate_pem == "the certificate");
  CHECK(connection->endpoint.client_key_pem == "the key");
  CHECK(connection->default_namespace == "default");
}

TEST_CASE_METHOD(ConfigFolder, "tokens, of which the file wins") {
  CHECK(*read("- {name: u, user: {token: abc}}\n")->token->token() == "abc");
  directory.file("token", "from-file\n");
  CHECK(*read("- {name: u, user: {token: abc, tokenFile: token}}\n")->token->token() == "from-file");
}

TEST_CASE_METHOD(ConfigFolder, "tokens from a program, which lies beside the kubeconfig") {
  const std::string program = directory.file("login", R"(#!/bin/sh
echo '{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":{"token":"'$1-$WHO'"}}'
)");
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  const auto connection = read(
      "- {name: u, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: ./login, args: [one],\n"
      "    env: [{name: WHO, value: me}]}}}\n");
  REQUIRE(connection.ok());
  CHECK(*connection->token->token() == "one-me");
}

TEST_CASE_METHOD(ConfigFolder, "what is not supported or missing is named, with the way out") {
  struct Case {
    const char* users;
    const char* context;
    const char* says;
  };
  const Case cases[] = {
      {"- {name: u, user: {exec: {apiVersion: client.authentication.k8s.io/v1}}}\n", "", "exec without a command"},
      {"- {name: u, user: {exec: {apiVersion: v0, command: aws}}}\n", "", "apiVersion 'v0'"},
      {"- {name: u, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: x, interactiveMode: "
       "Always}}}\n",
       "", "wants a terminal"},
      {"- {name: u, user: {auth-provider: {name: gcp}}}\n", "", "kubectl create token"},
      {"- {name: u, user: {username: admin, password: x}}\n", "", "has username"},
      {"- {name: other, user: {token: x}}\n", "", "no user named 'u'"},
      {"- {name: u, user: {token: x}}\n", "lost", "no cluster named 'missing'"},
      {"- {name: u, user: {token: x}}\n", "three", "no context named 'three'"},
      {"- {name: u, user: {token: x}}\n", "two", "ca.pem"},
      {"- {name: u, user: {client-key-data: '***'}}\n", "", "client-key-data is not base64"},
      {"  - [\n", "", "config"},
  };
  for (const Case& c : cases) {
    INFO(c.users << c.context);
    const auto connection = read(c.users, c.context);
    REQUIRE_FALSE(connection.ok());
    CHECK_THAT(connection.error().message(), Catch::Contains(c.says));
  }
  const std::string insecure =
      directory.file("insecure",
                     "current-context: a\ncontexts: [{name: a, context: {cluster: c}}]\n"
                     "clusters: [{name: c, cluster: {server: 'https://x', insecure-skip-tls-verify: true}}]\n");
  CHECK_THAT(read_kubeconfig(insecure, clock).error().message(), Catch::Contains("certificate-authority"));
  CHECK(read_kubeconfig(directory.path.string() + "/absent", clock).error().code() == ErrorCode::kNotFound);
  CHECK_THAT(read_kubeconfig(directory.file("empty", "a: 1"), clock).error().message(),
             Catch::Contains("current-context"));
  CHECK_FALSE(read_kubeconfig(directory.file("text", "just text"), clock).ok());
}

TEST_CASE_METHOD(ConfigFolder,
                 "the default kubeconfig is the first of the list that exists, else the one in the home") {
  const char* before = std::getenv("KUBECONFIG");
  const std::string saved = before == nullptr ? "" : before;
  const std::string file = directory.file("third", "");
  setenv("KUBECONFIG", (":" + directory.path.string() + "/absent:" + file + ":" + directory.path.string()).c_str(), 1);
  CHECK(default_kubeconfig() == file);
  setenv("KUBECONFIG", (directory.path.string() + "/absent").c_str(), 1);
  CHECK_THAT(default_kubeconfig(), Catch::EndsWith("/.kube/config"));
  before == nullptr ? unsetenv("KUBECONFIG") : setenv("KUBECONFIG", saved.c_str(), 1);
}

TEST_CASE_METHOD(ConfigFolder, "a context without a user is anonymous") {
  directory.file("ca.pem", "the ca");
  const auto connection = read("", "nobody");
  REQUIRE(connection.ok());
  CHECK(connection->token == nullptr);
}

TEST_CASE_METHOD(ConfigFolder, "in a pod") {
  directory.file("ca.crt", "the ca");
  directory.file("token", "tok\n");
  directory.file("namespace", "sluice-system\n");
  const auto four = read_in_cluster(clock, {directory.path.string(), "10.96.0.1", "443"});
  REQUIRE(four.ok());
  CHECK(four->endpoint.base_url == "https://10.96.0.1:443");
  CHECK(four->endpoint.ca_pem == "the ca");
  CHECK(four->default_namespace == "sluice-system");
  CHECK(*four->token->token() == "tok");
  CHECK(read_in_cluster(clock, {directory.path.string(), "fd00::1", "443"})->endpoint.base_url ==
        "https://[fd00::1]:443");

  CHECK(read_in_cluster(clock, {directory.path.string(), "", ""}).error().code() == ErrorCode::kNotFound);
  CHECK(read_in_cluster(clock, {directory.path.string() + "/no", "a", "1"}).error().code() == ErrorCode::kNotFound);
}

TEST_CASE_METHOD(ConfigFolder,
                 "a token file is read again after a minute or a rejection, and survives its own absence") {
  const std::string path = directory.file("token", "one");
  const auto source = token_from_file(path, clock);
  CHECK(*source->token() == "one");
  directory.file("token", "two");
  clock.advance(59s);
  CHECK(*source->token() == "one");
  clock.advance(1s);
  CHECK(*source->token() == "two");

  directory.file("token", "three");
  source->rejected("one");  // an old request's: no reason to read
  CHECK(*source->token() == "two");
  source->rejected("two");
  CHECK(*source->token() == "three");

  std::filesystem::remove(path);
  clock.advance(10min);
  CHECK(*source->token() == "three");
  CHECK(token_from_file(path, clock)->token().error().code() == ErrorCode::kUnauthenticated);
}

}  // namespace
}  // namespace sluice::kube
