// Feeder and workers in one process, over real gRPC on the loopback interface.
#include <mutex>
#include <thread>

#include "src/base/testing/catch.h"
#include "src/http/testing/certificates.h"
#include "worker-image/testing/local_feeder.h"
#include "worker-image/testing/local_worker.h"
#include "worker-image/testing/picture_folder.h"
#include "worker-image/testing/test_client.h"

namespace sluice::feeder {
namespace {

using testing::LocalFeeder;
using testing::LocalWorker;
using testing::PictureFolder;
using testing::ReceivedBatch;
using testing::TestClient;

// The name service of a test.
class Names {
 public:
  void set(Addresses addresses) {
    std::lock_guard lock(mutex_);
    addresses_ = std::move(addresses);
  }
  std::function<Addresses()> lookup() {
    return [this] {
      std::lock_guard lock(mutex_);
      return addresses_;
    };
  }

 private:
  std::mutex mutex_;
  Addresses addresses_;
};

std::vector<ReceivedBatch> undisturbed_run(const PictureFolder& pictures, std::size_t count) {
  LocalFeeder feeder({});
  TestClient client(feeder.socket());
  client.open("native", pictures.specification());
  return client.run(count, 8, 24);
}

bool same_bytes(const std::vector<ReceivedBatch>& a, const std::vector<ReceivedBatch>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const auto& x, const auto& y) { return x.tensors == y.tensors; });
}

// A local executor that takes part only as a last resort would make these tests depend on timing: they count what
// arrived, not who made it, except where a worker must have been used.
constexpr std::size_t kBatches = 60;

TEST_CASE("remote batches are the same bytes as local ones") {
  const PictureFolder pictures;
  LocalWorker first, second;
  Names names;
  names.set({first.address(), second.address()});
  LocalFeeder feeder({.threads = 1, .workers = names.lookup()});
  REQUIRE(feeder.wait_metric("sluice_feeder_remote_workers", 2));
  TestClient client(feeder.socket());
  client.open("native", pictures.specification());
  const auto batches = client.run(kBatches, 8, 24);
  CHECK(same_bytes(batches, undisturbed_run(pictures, kBatches)));
  CHECK(feeder.metric("sluice_feeder_batches_total", "remote") > 0);
  CHECK(feeder.metric("sluice_feeder_first_remote_batch_timestamp_seconds") > 1e9);
  CHECK(feeder.metric("sluice_feeder_reissued_batches_total") == 0);
}

TEST_CASE("large samples travel in several chunks") {
  const PictureFolder pictures;
  LocalWorker worker;
  Names names;
  names.set({worker.address()});
  LocalFeeder feeder({.threads = 1, .arena_bytes = std::size_t{256} << 20, .workers = names.lookup()});
  REQUIRE(feeder.wait_metric("sluice_feeder_remote_workers", 1));
  const auto run = [&](LocalFeeder& by) {
    TestClient client(by.socket());
    client.open("native", pictures.specification(300));
    return client.run(12, 10, 24);
  };
  LocalFeeder alone({.threads = 1, .arena_bytes = std::size_t{256} << 20});
  CHECK(same_bytes(run(feeder), run(alone)));
  CHECK(feeder.metric("sluice_feeder_batches_total", "remote") > 0);
}

TEST_CASE("a worker that breaks off in the middle loses no batch and adds none") {
  const PictureFolder pictures;
  LocalWorker first, second;
  Names names;
  names.set({first.address(), second.address()});
  LocalFeeder feeder({.threads = 1, .workers = names.lookup()});
  REQUIRE(feeder.wait_metric("sluice_feeder_remote_workers", 2));
  TestClient client(feeder.socket());
  client.open("native", pictures.specification());
  const auto batches = client.run(kBatches, 8, 24, [&](std::size_t done) {
    if (done == 10) first.stop();
  });
  CHECK(same_bytes(batches, undisturbed_run(pictures, kBatches)));
  CHECK(feeder.metric("sluice_feeder_remote_workers") == 1);
}

TEST_CASE("workers come and go while a client runs") {
  const PictureFolder pictures;
  Names names;
  LocalFeeder feeder({.threads = 1, .workers = names.lookup()});
  TestClient client(feeder.socket());
  client.open("native", pictures.specification());
  LocalWorker first, second;
  const auto batches = client.run(kBatches, 8, 24, [&](std::size_t done) {
    if (done == 5) {
      names.set({first.address()});
      REQUIRE(feeder.wait_metric("sluice_feeder_remote_workers", 1));
    }
    if (done == 20) {
      names.set({first.address(), second.address()});
      REQUIRE(feeder.wait_metric("sluice_feeder_remote_workers", 2));
    }
    if (done == 40) first.stop();
  });
  CHECK(same_bytes(batches, undisturbed_run(pictures, kBatches)));
  CHECK(feeder.metric("sluice_feeder_batches_total", "remote") > 0);
}

TEST_CASE("a draining worker finishes what it has, and nothing is issued twice") {
  const PictureFolder pictures;
  LocalWorker worker;
  Names names;
  names.set({worker.address()});
  LocalFeeder feeder({.threads = 1, .workers = names.lookup()});
  REQUIRE(feeder.wait_metric("sluice_feeder_remote_workers", 1));
  TestClient client(feeder.socket());
  client.open("native", pictures.specification());
  bool idle = false;
  const auto batches = client.run(kBatches, 8, 24, [&](std::size_t done) {
    if (done != 10) return;
    names.set({});
    worker.service().drain();
    idle = worker.service().wait_until_idle(std::chrono::steady_clock::now() + std::chrono::seconds(60));
  });
  CHECK(idle);
  CHECK(same_bytes(batches, undisturbed_run(pictures, kBatches)));
  CHECK(feeder.metric("sluice_feeder_duplicate_batches_total") == 0);
}

TEST_CASE("what a worker cannot read, the trainer's own pod may") {
  // The worker's "pod" lacks the file: it fails there, and the local executor's word is final.
  const PictureFolder pictures;
  LocalWorker worker;
  Names names;
  names.set({worker.address()});
  LocalFeeder feeder({.threads = 1, .workers = names.lookup()});
  REQUIRE(feeder.wait_metric("sluice_feeder_remote_workers", 1));
  std::filesystem::remove(pictures.root / "7.jpg");
  TestClient client(feeder.socket());
  client.open("native", pictures.specification());
  for (std::uint64_t seq = 0; seq < 6; ++seq) client.request(seq, {6, 7});
  for (int i = 0; i < 6; ++i) {
    const auto answer = client.receive();
    CHECK(answer.json["type"] == "error");
    CHECK(answer.json["exception_type"] == "FileNotFoundError");
  }
}

transport::TlsMaterial material(const http::testing::CertificateAuthority& authority,
                                const std::string& names = std::string("DNS:") + transport::kWorkerServerName) {
  const auto identity = authority.issue("sluice", names);
  return {authority.certificate_pem(), identity.certificate_pem, identity.key_pem};
}

TEST_CASE("mutual TLS: only the job's own certificates meet") {
  const PictureFolder pictures;
  const http::testing::CertificateAuthority ours("our job"), theirs("another job");
  LocalWorker worker(1, material(ours));
  Names names;
  names.set({worker.address()});
  const auto joined = [&](const transport::Credentials& credentials) {
    LocalFeeder feeder({.threads = 1, .workers = names.lookup(), .credentials = credentials});
    TestClient client(feeder.socket());
    client.open("native", pictures.specification());
    // Long enough for several attempts to connect where they succeed at once.
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(3);
    while (feeder.metric("sluice_feeder_remote_workers") == 0 && std::chrono::steady_clock::now() < deadline)
      client.run(1, 8, 24);
    return feeder.metric("sluice_feeder_remote_workers") == 1;
  };
  CHECK(joined(material(ours)));
  SECTION("a feeder of another job is turned away") { CHECK(!joined(material(theirs))); }
  SECTION("a feeder without certificate is turned away") { CHECK(!joined({})); }
  SECTION("a feeder that trusts us but shows another job's certificate is turned away") {
    auto mixed = material(theirs);
    mixed.authority = ours.certificate_pem();
    CHECK(!joined(mixed));
  }
  SECTION("a worker with a certificate for another name is not trusted") {
    LocalWorker impostor(1, material(ours, "DNS:elsewhere.example"));
    names.set({impostor.address()});
    CHECK(!joined(material(ours)));
  }
}

}  // namespace
}  // namespace sluice::feeder
