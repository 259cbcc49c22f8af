// The program sluice-cache as a process: what only it can show. That feeders share it, python/tests/test_node_cache.py
// shows.
#include <filesystem>

#include "src/base/testing/catch.h"
#include "src/base/testing/manual_clock.h"
#include "src/base/testing/temporary_directory.h"
#include "src/cache/node_cache_client.h"
#include "src/cache/node_socket_line.h"
#include "src/cache/testing/store_fixture.h"
#include "src/http/testing/raw_client.h"
#include "worker-image/testing/eventually.h"
#include "worker-image/testing/program.h"

namespace sluice::node_cache {
namespace {

using cache::testing::key_of;
using cache::testing::value_of;
using sluice::testing::eventually;
using sluice::testing::Program;

constexpr std::size_t kProgramBytes = 20'000;

struct Daemon {
  std::vector<std::string> command() const {
    return {SLUICE_CACHE_PROGRAM,
            "--socket",
            socket,
            "--directory",
            (directory.path / "store").string(),
            "--bytes",
            "10000000",
            "--memory-bytes",
            "1000000",
            "--probes-address",
            "127.0.0.1:" + std::to_string(port)};
  }
  // As a feeder that has just started.
  bool has(int number) const {
    cache::Counters counters;
    cache::NodeCacheClient client(cache::line_to(socket), 1, clock, counters, std::chrono::minutes(1));
    std::vector<std::uint8_t> value;
    return client.find(key_of(number), value) && value == value_of(key_of(number), kProgramBytes);
  }
  void add(int number) const {
    cache::Counters counters;
    cache::NodeCacheClient client(cache::line_to(socket), 1, clock, counters, std::chrono::minutes(1));
    std::vector<std::uint8_t> value;
    static_cast<void>(client.find(key_of(number), value));
    client.add(key_of(number), value_of(key_of(number), kProgramBytes));
  }
  bool is_ready() const {
    return eventually([&] { return http::testing::ask(port, "GET /readyz").starts_with("HTTP/1.1 200"); });
  }

  const sluice::testing::TemporaryDirectory directory;
  const std::string socket = (directory.path / "cache.sock").string();
  const std::uint16_t port = static_cast<std::uint16_t>(20000 + ::getpid() % 10000);
  SystemClock clock;
};

TEST_CASE("a daemon that is killed has what was kept when it is back, and SIGTERM ends it in peace") {
  const Daemon daemon;
  {
    Program program(daemon.command());
    REQUIRE(daemon.is_ready());
    for (int i = 0; i < 20; ++i) daemon.add(i);
    for (int i = 0; i < 20; ++i) CHECK(daemon.has(i));
    program.kill_hard();
  }
  CHECK_FALSE(daemon.has(1));
  {
    Program program(daemon.command());  // over the socket that the killed one has left
    REQUIRE(daemon.is_ready());
    for (int i = 0; i < 20; ++i) CHECK(daemon.has(i));
    CHECK(Program(daemon.command()).wait() == 1);  // a second one for the same socket
    CHECK(daemon.has(1));
    program.signal(SIGTERM);
    CHECK(program.wait() == 0);
  }
  CHECK_FALSE(std::filesystem::exists(daemon.socket));
}

TEST_CASE("a directory that is in use, or cannot be one, is an error, and wrong flags are another one") {
  const Daemon daemon;
  Program program(daemon.command());
  REQUIRE(daemon.is_ready());
  const std::string other = (daemon.directory.path / "other.sock").string();
  const auto with = [&](const std::string& directory, const std::string& bytes) {
    return Program({SLUICE_CACHE_PROGRAM, "--socket", other, "--directory", directory, "--bytes", bytes}).wait();
  };
  CHECK(with((daemon.directory.path / "store").string(), "1000000") == 1);
  CHECK(with("/proc/none", "1000000") == 1);
  CHECK(with("", "1000000") == 2);
  CHECK(with("/tmp/none", "0") == 2);
  CHECK(with("/tmp/none", "many") == 2);
  CHECK(with("/tmp/none", "") == 2);
  // Pods need TLS, and a cluster that says whose their tokens are.
  const auto for_pods = [](const std::vector<std::string>& flags) {
    std::vector<std::string> command{SLUICE_CACHE_PROGRAM, "--socket", "none", "--directory",
                                     "/tmp/none",          "--bytes",  "9"};
    command.insert(command.end(), flags.begin(), flags.end());
    return Program(command).wait();
  };
  CHECK(for_pods({}) == 2);
  CHECK(for_pods({"--listen", "127.0.0.1:0"}) == 1);
  CHECK(for_pods({"--listen", "127.0.0.1:0", "--tls-dir", "/tmp/none"}) == 1);
}

}  // namespace
}  // namespace sluice::node_cache
