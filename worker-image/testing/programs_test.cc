// The real programs as processes: what only they can show.
#include <fstream>
#include <thread>

#include "src/base/testing/catch.h"
#include "worker-image/testing/eventually.h"
#include "worker-image/testing/local_feeder.h"
#include "worker-image/testing/picture_folder.h"
#include "worker-image/testing/program.h"
#include "worker-image/testing/temporary_directory.h"
#include "worker-image/testing/test_client.h"

namespace sluice::testing {
namespace {

// Two loopback addresses with one port stand for two pods of a headless Service.
const std::string kFirst = "127.0.0.1:" + std::to_string(20000 + ::getpid() % 20000);
const std::string kSecond = "127.0.0.2:" + std::to_string(20000 + ::getpid() % 20000);

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

TEST_CASE("a worker that stops answering without closing its connection is given up in seconds") {
  const PictureFolder pictures;
  Program worker(worker_command(kFirst));
  LocalFeeder feeder({.threads = 1, .workers = [] { return feeder::Addresses{kFirst}; }});
  REQUIRE(feeder.wait_metric("sluice_feeder_remote_workers", 1));
  TestClient client(feeder.socket());
  client.open("native", pictures.specification());
  std::chrono::steady_clock::time_point frozen_at;
  const auto batches = client.run(60, 8, 24, [&](std::size_t done) {
    if (done != 20) return;
    worker.signal(SIGSTOP);
    frozen_at = std::chrono::steady_clock::now();
  });
  CHECK(batches.size() == 60);
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

TEST_CASE("a feeder told so ends with its parent") {
  const TemporaryDirectory directory;
  const std::string socket = (directory.path / "feeder.sock").string(), pid_file = (directory.path / "pid").string();
  Program shell({"/bin/sh", "-c",
                 std::string(SLUICE_FEEDER_PROGRAM) + " --threads 1 --exit-with-parent --socket " + socket +
                     " & echo $! > " + pid_file + "; wait"});
  { TestClient client(socket); }
  pid_t feeder = 0;
  std::ifstream(pid_file) >> feeder;
  REQUIRE(feeder > 0);
  shell.kill_hard();
  CHECK(eventually([&] { return !std::filesystem::exists(socket); }));
}

TEST_CASE("wrong flags end with status 2 before anything starts") {
  const std::vector<std::vector<std::string>> cases = {
      {SLUICE_FEEDER_PROGRAM, "--no-such-flag"},
      {SLUICE_FEEDER_PROGRAM, "--threads", "many"},
      {SLUICE_FEEDER_PROGRAM, "--arena-bytes", "1"},
      {SLUICE_WORKER_PROGRAM, "--drain-seconds", "-1", "--insecure"},
      {SLUICE_WORKER_PROGRAM, "dance"},
  };
  for (const auto& command : cases) {
    INFO(command[0] << " " << command[1]);
    CHECK(Program(command).wait() == 2);
  }
  CHECK(Program({SLUICE_WORKER_PROGRAM, "--listen", kFirst}).wait() == 1);  // neither --tls-dir nor --insecure
}

}  // namespace
}  // namespace sluice::testing
