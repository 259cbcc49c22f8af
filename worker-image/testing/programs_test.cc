// The real programs as processes: what only they can show.
#include <fstream>
#include <optional>
#include <thread>

#include "src/base/testing/catch.h"
#include "src/base/testing/temporary_directory.h"
#include "src/http/testing/raw_client.h"
#include "worker-image/testing/eventually.h"
#include "worker-image/testing/local_feeder.h"
#include "worker-image/testing/picture_folder.h"
#include "worker-image/testing/program.h"
#include "worker-image/testing/test_client.h"

namespace sluice::testing {
namespace {

// Two loopback addresses with one port stand for two pods of a headless Service.
const std::string kFirst = "127.0.0.1:" + std::to_string(20000 + ::getpid() % 20000);
const std::string kSecond = "127.0.0.2:" + std::to_string(20000 + ::getpid() % 20000);

std::uint16_t port_of(int number) { return static_cast<std::uint16_t>(40000 + 3 * (::getpid() % 8000) + number); }

std::vector<std::string> worker_command(const std::string& address) {
  return {SLUICE_WORKER_PROGRAM, "--listen", address, "--insecure", "--threads", "1", "--drain-seconds", "20"};
}

TEST_CASE("kill -9 of one of two workers, SIGTERM to the other: all batches arrive once, byte for byte") {
  const PictureFolder pictures;
  std::vector<ReceivedBatch> expected;
  {
    LocalFeeder alone({});
    TestClient client(alone.socket());
    client.open("native", pictures.specification());
    expected = client.run(150, 8, 24);
  }
  Program first(worker_command(kFirst)), second(worker_command(kSecond));
  LocalFeeder feeder({.threads = 1, .workers = [] { return feeder::Addresses{kFirst, kSecond}; }});
  REQUIRE(feeder.wait_metric("sluice_feeder_remote_workers", 2));
  TestClient client(feeder.socket());
  client.open("native", pictures.specification());
  int drained_with = -1;
  const auto batches = client.run(150, 8, 24, [&](std::size_t done) {
    if (done == 30) first.kill_hard();
    if (done == 60) {
      second.signal(SIGTERM);
      drained_with = second.wait();
    }
  });
  CHECK(same_bytes(batches, expected));
  CHECK(feeder.metric("sluice_feeder_batches_total", "remote") > 0);
  CHECK(drained_with == 0);
}

TEST_CASE("a worker that stops answering holds nothing up, and is given up in seconds") {
  const PictureFolder pictures;
  Program worker(worker_command(kFirst));
  LocalFeeder feeder({.threads = 1, .workers = [] { return feeder::Addresses{kFirst}; }});
  REQUIRE(feeder.wait_metric("sluice_feeder_remote_workers", 1));
  TestClient client(feeder.socket());
  client.open("native", pictures.specification());
  std::chrono::steady_clock::time_point frozen_at, last_batch_at;
  std::chrono::duration<double> longest_wait{0};
  std::optional<std::size_t> done_when_frozen;
  const auto batches = client.run(150, 8, 24, [&](std::size_t done) {
    const auto now = std::chrono::steady_clock::now();
    if (done_when_frozen) longest_wait = std::max<std::chrono::duration<double>>(longest_wait, now - last_batch_at);
    last_batch_at = now;
    // On a busy machine the feeder's own thread is first with the batches of the beginning.
    if (done_when_frozen || done < 20 || feeder.metric("sluice_feeder_batches_total", "remote") == 0) return;
    done_when_frozen = done;
    worker.signal(SIGSTOP);
    frozen_at = last_batch_at = std::chrono::steady_clock::now();
  });
  CHECK(batches.size() == 150);
  REQUIRE(done_when_frozen.has_value());
  CHECK(*done_when_frozen < 130);   // batches come after it, too
  CHECK(longest_wait.count() < 2);  // meant: a tenth; a vanished worker is found after 2.5 s at the earliest
  while (feeder.metric("sluice_feeder_remote_workers") > 0) {
    REQUIRE(std::chrono::steady_clock::now() - frozen_at < std::chrono::seconds(30));  // meant: 4.5 s
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

TEST_CASE("a feeder that is killed is replaced, and the client asks the next one") {
  const PictureFolder pictures;
  const TemporaryDirectory directory;
  const std::string socket = (directory.path / "feeder.sock").string();
  const std::vector<std::string> command = {SLUICE_FEEDER_PROGRAM, "--socket",          socket,      "--threads", "1",
                                            "--workers",           "workers.invalid:1", "--insecure"};
  std::vector<ReceivedBatch> before, after;
  Program first(command);
  {
    TestClient client(socket);
    client.open("native", pictures.specification());
    before = client.run(10, 8, 24);
    first.kill_hard();
    CHECK(client.disconnected());
  }
  Program second(command);
  {
    TestClient client(socket);
    client.open("native", pictures.specification());
    after = client.run(10, 8, 24);
  }
  CHECK(same_bytes(before, after));
  second.signal(SIGTERM);
  CHECK(second.wait() == 0);
  CHECK(!std::filesystem::exists(socket));
}

TEST_CASE("a worker that no feeder uses for as long as it was told ends by itself, and well") {
  std::vector<std::string> command = worker_command(kFirst);
  command.insert(command.end(), {"--unused-seconds", "1"});
  CHECK(Program(command).wait() == 0);
}

TEST_CASE("a feeder told so ends with the process that started it, whose child it is not") {
  const TemporaryDirectory directory;
  const std::string socket = (directory.path / "feeder.sock").string(), pid_file = (directory.path / "pid").string();
  // The last `wait` of the shell would last as long as a child of it does.
  Program shell({"/bin/sh", "-c",
                 std::string(SLUICE_FEEDER_PROGRAM) + " --threads 1 --exit-with $$ --detach 3 --socket " + socket +
                     " 3>> " + pid_file + "; wait; echo waited >> " + pid_file + "; exec sleep 1000"});
  { TestClient client(socket); }
  pid_t feeder = 0;
  std::string waited;
  CHECK(eventually([&] { return std::ifstream(pid_file) >> feeder >> waited && waited == "waited"; }));
  CHECK(::kill(feeder, 0) == 0);
  shell.kill_hard();
  CHECK(eventually([&] { return !std::filesystem::exists(socket); }));
}

TEST_CASE("a feeder whose starter was gone before it began ends at once") {
  const TemporaryDirectory directory;
  Program ended({"/bin/true"});
  const pid_t parent = ended.pid();
  ended.wait();
  Program feeder({SLUICE_FEEDER_PROGRAM, "--threads", "1", "--metrics-address", "none", "--exit-with",
                  std::to_string(parent), "--socket", (directory.path / "feeder.sock").string()});
  CHECK(feeder.wait() == 0);
}

TEST_CASE("a feeder told so ends with its last client, and takes its folder along") {
  const TemporaryDirectory directory;
  const std::filesystem::path folder = directory.path / "name";
  std::filesystem::create_directory(folder);
  std::ofstream(folder / "lock");
  Program feeder({SLUICE_FEEDER_PROGRAM, "--threads", "1", "--ranks", "2", "--metrics-address", "none", "--socket",
                  (folder / "feeder.sock").string(), "--exit-without-clients", (folder / "lock").string()});
  { TestClient client((folder / "feeder.sock").string()); }
  CHECK(feeder.wait() == 0);
  CHECK(!std::filesystem::exists(folder));
}

// A port of this process's own, on which no process listens.
std::string address_of(int number) { return "127.0.0.1:" + std::to_string(port_of(number)); }

TEST_CASE("connections that say nothing, and requests that never end, do not keep a probe from its answer") {
  const TemporaryDirectory directory;
  const std::vector<std::string> pages = {"--metrics-address", address_of(1), "--probes-address", address_of(2)};
  std::vector<std::string> worker = worker_command(kFirst);
  std::vector<std::string> feeder = {SLUICE_FEEDER_PROGRAM, "--threads", "1", "--socket",
                                     (directory.path / "feeder.sock").string()};
  for (std::vector<std::string>* command : {&worker, &feeder}) {
    INFO(command->front());
    command->insert(command->end(), pages.begin(), pages.end());
    const Program program(*command);
    const auto answers = [](int number, const char* path) {
      return http::testing::ask(port_of(number), std::string("GET ") + path).starts_with("HTTP/1.1 200");
    };
    REQUIRE(eventually([&] { return answers(2, "/readyz"); }));
    std::vector<http::testing::RawClient> flood;
    for (const int number : {1, 2})
      for (int i = 0; i < 300; ++i) {
        flood.emplace_back(port_of(number));
        if (i % 2 == 0) flood.back().send("GET /healthz HTTP/1.1\r\nX: ");
      }
    CHECK(answers(2, "/healthz"));
    CHECK(answers(2, "/readyz"));
    CHECK(answers(1, "/metrics"));
    CHECK_FALSE(answers(1, "/healthz"));  // one port, one thing
    CHECK_FALSE(answers(2, "/metrics"));
  }
}

TEST_CASE("a feeder finds the workers of every name that it was given") {
  const TemporaryDirectory directory;
  const Program first(worker_command(kFirst)), second(worker_command(kSecond));
  const Program feeder({SLUICE_FEEDER_PROGRAM, "--threads", "1", "--insecure", "--workers", kFirst + "," + kSecond,
                        "--socket", (directory.path / "feeder.sock").string(), "--metrics-address", address_of(1)});
  CHECK(eventually([] {
    return http::testing::ask(port_of(1), "GET /metrics")
               .find("remote_workers{job_namespace=\"\",training_job=\"\"} 2") != std::string::npos;
  }));
}

TEST_CASE("the environment asks for a cache of source files; one that cannot be asked for so stops no program") {
  const TemporaryDirectory directory;
  const std::string place = "SLUICE_CACHE_DIR=" + (directory.path / "cache").string();
  std::vector<std::string> worker = worker_command(kFirst);
  std::vector<std::string> feeder = {SLUICE_FEEDER_PROGRAM, "--threads", "1", "--socket",
                                     (directory.path / "feeder.sock").string()};
  for (std::vector<std::string>* command : {&worker, &feeder}) {
    INFO(command->front());
    for (const std::string& bytes : {std::string("SLUICE_CACHE_BYTES=1000000"), std::string("SLUICE_CACHE_BYTES=1GB"),
                                     std::string("SLUICE_CACHE_BYTES=")}) {
      INFO(bytes);
      std::vector<std::string> line = {"/usr/bin/env", place, bytes};
      line.insert(line.end(), command->begin(), command->end());
      line.insert(line.end(), {"--metrics-address", address_of(1)});
      const Program program(line);
      std::string page;
      REQUIRE(eventually([&] {
        page = http::testing::ask(port_of(1), "GET /metrics");
        return page.starts_with("HTTP/1.1 200");
      }));
      const bool is_cached = page.find("sluice_cache_bytes{") != std::string::npos;
      CHECK(is_cached == bytes.ends_with("1000000"));
    }
  }
}

TEST_CASE("wrong flags end with status 2 before anything starts") {
  const std::vector<std::vector<std::string>> cases = {
      {SLUICE_FEEDER_PROGRAM, "--no-such-flag"},
      {SLUICE_FEEDER_PROGRAM, "--threads", "many"},
      {SLUICE_FEEDER_PROGRAM, "--arena-bytes", "1"},
      {SLUICE_FEEDER_PROGRAM, "--ranks", "0"},
      {SLUICE_FEEDER_PROGRAM, "--ranks", "100000"},
      {SLUICE_WORKER_PROGRAM, "--drain-seconds", "-1", "--insecure"},
      {SLUICE_WORKER_PROGRAM, "--unused-seconds", "-1", "--insecure"},
      {SLUICE_WORKER_PROGRAM, "dance"},
  };
  for (const auto& command : cases) {
    INFO(command[0] << " " << command[1]);
    CHECK(Program(command).wait() == 2);
  }
  CHECK(Program({SLUICE_WORKER_PROGRAM, "--listen", kFirst}).wait() == 1);  // neither --tls-dir nor --insecure
  // In the clear to the whole network only if that is said.
  CHECK(Program({SLUICE_WORKER_PROGRAM, "--listen", "0.0.0.0:0", "--insecure"}).wait() == 1);
}

}  // namespace
}  // namespace sluice::testing
