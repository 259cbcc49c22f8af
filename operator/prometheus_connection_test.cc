#include "operator/prometheus_connection.h"

#include <cstdlib>
#include <fstream>
#include <mutex>

#include "src/base/testing/catch.h"
#include "src/base/testing/temporary_directory.h"
#include "src/http/testing/loopback_server.h"
#include "src/prom/client.h"

// Against a real HTTP(S) server, with the files of a mounted Secret.
namespace sluice::control {
namespace {

using http::testing::CertificateAuthority;
using http::testing::Connection;
using http::testing::Identity;
using http::testing::LoopbackOptions;
using http::testing::LoopbackServer;

constexpr const char* kAnswer = R"({"status":"success","data":{"resultType":"scalar","result":[1.5,"42"]}})";
constexpr std::chrono::seconds kPatience{20};

// Answers 200 to requests that hold `wanted`, 401 to others; keeps what it got. Headers come without a blank behind the
// colon.
class GuardedPrometheus {
 public:
  explicit GuardedPrometheus(std::string wanted = "", LoopbackOptions options = {})
      : wanted_(std::move(wanted)),
        server_([this](Connection& connection) { serve(connection); }, std::move(options)) {}

  MetricsSource source() const {
    MetricsSource source;
    source.url = server_.url();
    return source;
  }
  void want(const std::string& text) {
    std::lock_guard lock(mutex_);
    wanted_ = text;
  }
  std::string last_request() const {
    std::lock_guard lock(mutex_);
    return last_request_;
  }

 private:
  void serve(Connection& connection) {
    while (const auto request = connection.read_request()) {
      std::unique_lock lock(mutex_);
      last_request_ = *request;
      const bool is_welcome = request->find(wanted_) != std::string::npos;
      lock.unlock();
      connection.answer(is_welcome ? 200 : 401, is_welcome ? kAnswer : "");
    }
  }

  mutable std::mutex mutex_;
  std::string wanted_;
  std::string last_request_;
  LoopbackServer server_;  // last: its threads use the others
};

// One transport for all queries of a test, as the operator has.
struct Asker {
  explicit Asker(const MetricsSource& source) : client(*open_prometheus(source, clock), kPatience) {}
  SystemClock clock;
  prom::Client client;

  // Empty: it was answered.
  std::string problem() {
    const auto answer = client.query("x");
    return answer.ok() ? "" : answer.error().message();
  }
};

TEST_CASE("a token is sent, and read again when Prometheus refuses it") {
  const sluice::testing::TemporaryDirectory folder;
  GuardedPrometheus prometheus("Authorization:Bearer first\r\n");
  MetricsSource source = prometheus.source();
  source.connection.bearer_token_file = folder.file("token", "first\n");
  Asker asker(source);
  CHECK(asker.problem() == "");
  prometheus.want("Authorization:Bearer second\r\n");
  CHECK_THAT(asker.problem(), Catch::Contains("wants credentials"));
  folder.file("token", "second\n");
  CHECK(asker.problem() == "");
}

TEST_CASE("a password is sent, and read again when Prometheus refuses it") {
  const sluice::testing::TemporaryDirectory folder;
  GuardedPrometheus prometheus("Authorization:Basic c2x1aWNlOm9sZA==\r\n");  // sluice:old
  MetricsSource source = prometheus.source();
  source.connection.username = "sluice";
  source.connection.password_file = folder.file("password", "old");
  Asker asker(source);
  CHECK(asker.problem() == "");
  prometheus.want("Authorization:Basic c2x1aWNlOm5ldw==\r\n");  // sluice:new
  folder.file("password", "new");
  CHECK(asker.problem() == "");
}

TEST_CASE("headers and the path of the URL are in every request") {
  GuardedPrometheus prometheus("X-Scope-OrgID:team-a\r\n");
  MetricsSource source = prometheus.source();
  source.url += "/tenants/prometheus/";
  CHECK_FALSE(Asker(source).problem().empty());
  source.connection.headers = {{"X-Scope-OrgID", "team-a"}};
  CHECK(Asker(source).problem() == "");
  CHECK_THAT(prometheus.last_request(), Catch::StartsWith("GET /tenants/prometheus/api/v1/query?query=x"));
}

TEST_CASE("a proxy is asked for Prometheus by its name") {
  GuardedPrometheus prometheus("GET http://prometheus.example:9090/api/v1/query?query=x");
  MetricsSource source = prometheus.source();
  source.connection.proxy_url = source.url;  // the server of the test, as a proxy
  source.url = "http://prometheus.example:9090";
  CHECK(Asker(source).problem() == "");
}

TEST_CASE("an own authority and a client certificate, both replaced while the operator runs") {
  const CertificateAuthority ours("ours");
  const CertificateAuthority next("next");
  const sluice::testing::TemporaryDirectory folder;
  const auto guarded_by = [](const CertificateAuthority& authority) {
    return LoopbackOptions{.identity = authority.issue("prometheus", "DNS:prometheus.example"),
                           .client_ca = authority.certificate_pem()};
  };
  const auto write_files = [&folder](const CertificateAuthority& authority) {
    const Identity client = authority.issue("sluice-operator", "");
    folder.file("ca.crt", authority.certificate_pem());
    folder.file("tls.crt", client.certificate_pem);
    folder.file("tls.key", client.key_pem);
  };
  write_files(ours);
  GuardedPrometheus prometheus("", guarded_by(ours));
  MetricsSource source = prometheus.source();
  const std::string directory = folder.path.string();
  source.connection.ca_file = directory + "/ca.crt";
  source.connection.server_name = "prometheus.example";
  CHECK_THAT(Asker(source).problem(), Catch::Contains("clientCertificateSecret of metrics.connection"));
  source.connection.certificate_file = directory + "/tls.crt";
  source.connection.key_file = directory + "/tls.key";
  Asker asker(source);
  CHECK(asker.problem() == "");

  write_files(next);
  CHECK_FALSE(asker.problem().empty());  // the server still has the old ones
  write_files(ours);
  CHECK(asker.problem() == "");

  folder.file("ca.crt", "");  // a moment without a file
  CHECK(asker.problem() == "");
}

TEST_CASE("a file that cannot be used is named with its field") {
  const sluice::testing::TemporaryDirectory folder;
  struct Case {
    std::string PrometheusConnection::*field;
    std::string path;
    std::vector<std::string> words;
  };
  const std::string no_pem = folder.file("ca.crt", "no certificate");
  const Case cases[] = {
      {&PrometheusConnection::bearer_token_file, "/nowhere/token", {"/nowhere/token"}},
      {&PrometheusConnection::ca_file, "/nowhere/ca.crt", {"metrics.connection.caFile", "/nowhere/ca.crt"}},
      {&PrometheusConnection::ca_file, no_pem, {"metrics.connection", "is no PEM certificate"}},
  };
  for (const Case& c : cases) {
    MetricsSource source;
    source.url = "https://127.0.0.1:1";
    source.connection.*c.field = c.path;
    const std::string problem = Asker(source).problem();
    for (const std::string& word : c.words) CHECK_THAT(problem, Catch::Contains(word));
  }
}

TEST_CASE("a URL that cannot be used is refused at once") {
  const SystemClock clock;
  MetricsSource source;
  source.url = "prometheus:9090";
  const auto opened = open_prometheus(source, clock);
  REQUIRE_FALSE(opened.ok());
  CHECK_THAT(opened.error().message(), Catch::Contains("metrics.url"));
}

// Of e2e/scenarios/guarded_prometheus_test.py, which starts it, writes the operator's configuration, and judges.
TEST_CASE("a real Prometheus is asked as the configuration says", "[cluster]") {
  const char* config_file = std::getenv("SLUICE_TEST_PROMETHEUS_CONFIG");
  const char* problem_file = std::getenv("SLUICE_TEST_PROMETHEUS_PROBLEM");
  if (config_file == nullptr || problem_file == nullptr) {
    WARN("skipped: e2e/scenarios/guarded_prometheus_test.py runs it against a real Prometheus");
    return;
  }
  const auto config = read_config(config_file);
  REQUIRE(config.ok());
  const Asker asker(config->metrics);
  const auto answer = asker.client.query("vector(42)");
  if (answer.ok()) {
    REQUIRE(answer->samples.size() == 1);
    CHECK(answer->samples[0].value == 42);
  }
  std::ofstream(problem_file) << (answer.ok() ? "" : answer.error().message());
}

}  // namespace
}  // namespace sluice::control
