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
using testing::same_bytes;
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

constexpr std::size_t kBatches = 60;

// Two workers, a feeder that knows the first `listed` of them, and a client with a pipeline.
struct Site {
  explicit Site(std::size_t listed, int size = 32, std::size_t arena_bytes = std::size_t{32} << 20) {
    Addresses addresses;
    if (listed > 0) addresses.insert(first.address());
    if (listed > 1) addresses.insert(second.address());
    names.set(addresses);
    feeder = std::make_unique<LocalFeeder>(
        LocalFeeder::Options{.threads = 1, .arena_bytes = arena_bytes, .workers = names.lookup()});
    REQUIRE(feeder->wait_metric("sluice_feeder_remote_workers", static_cast<double>(listed)));
    client = std::make_unique<TestClient>(feeder->socket());
    client->open("native", pictures.specification(size));
  }

  // What a feeder without workers makes of the same requests.
  std::vector<ReceivedBatch> undisturbed(std::size_t count, int size = 32) const {
    LocalFeeder alone({.arena_bytes = feeder->arena().bytes()});
    TestClient other(alone.socket());
    other.open("native", pictures.specification(size));
    return other.run(count, 8, 24);
  }

  double made_remotely() const { return feeder->metric("sluice_feeder_batches_total", "remote"); }

  const PictureFolder pictures;
  LocalWorker first, second;
  Names names;
  std::unique_ptr<LocalFeeder> feeder;
  std::unique_ptr<TestClient> client;
};

// The local executor takes part, too: these tests count what arrived, not who made it, except where a worker must have
// been used.

TEST_CASE("remote batches are the same bytes as local ones") {
  Site site(2);
  CHECK(same_bytes(site.client->run(kBatches, 8, 24), site.undisturbed(kBatches)));
  CHECK(site.made_remotely() > 0);
  CHECK(site.feeder->metric("sluice_feeder_first_remote_batch_timestamp_seconds") > 1e9);
  CHECK(site.feeder->metric("sluice_feeder_reissued_batches_total") == 0);
}

TEST_CASE("operations are said to have made the same, wherever a batch was made") {
  for (const int size : {32, 300}) {  // one chunk a batch, and several
    Site site(1, size, std::size_t{256} << 20);
    const auto batches = site.client->run(kBatches, 8, 24), undisturbed = site.undisturbed(kBatches, size);
    CHECK(site.made_remotely() > 0);
    for (std::size_t i = 0; i < batches.size(); ++i) CHECK(batches[i].op_bytes == undisturbed[i].op_bytes);
    const auto side = static_cast<std::uint64_t>(size);
    CHECK(undisturbed[0].op_bytes.at("resample") == 8 * 3 * side * side);
    CHECK(undisturbed[0].op_bytes.at("finish") == 8 * 3 * side * side * sizeof(float));
    CHECK(undisturbed[0].op_bytes.contains("read"));
    CHECK(undisturbed[0].op_bytes.contains("decode"));
  }
}

TEST_CASE("large samples travel in several chunks") {
  Site site(1, 300, std::size_t{256} << 20);
  CHECK(same_bytes(site.client->run(12, 8, 24), site.undisturbed(12, 300)));
  CHECK(site.made_remotely() > 0);
}

TEST_CASE("a worker that breaks off in the middle loses no batch and adds none") {
  Site site(2);
  const auto batches = site.client->run(kBatches, 8, 24, [&](std::size_t done) {
    if (done == 10) site.first.stop();
  });
  CHECK(same_bytes(batches, site.undisturbed(kBatches)));
  CHECK(site.feeder->metric("sluice_feeder_remote_workers") == 1);
}

TEST_CASE("workers come and go while a client runs") {
  Site site(0);
  const auto batches = site.client->run(kBatches, 8, 24, [&](std::size_t done) {
    if (done == 5) {
      site.names.set({site.first.address()});
      REQUIRE(site.feeder->wait_metric("sluice_feeder_remote_workers", 1));
    }
    if (done == 20) {
      site.names.set({site.first.address(), site.second.address()});
      REQUIRE(site.feeder->wait_metric("sluice_feeder_remote_workers", 2));
    }
    if (done == 40) site.first.stop();
  });
  CHECK(same_bytes(batches, site.undisturbed(kBatches)));
  CHECK(site.made_remotely() > 0);
}

TEST_CASE("a draining worker finishes what it has, and nothing is issued again for it") {
  Site site(1);
  bool idle = false;
  const auto batches = site.client->run(kBatches, 8, 24, [&](std::size_t done) {
    if (done != 10) return;
    site.names.set({});
    site.first.service().drain();
    idle = site.first.service().wait_until_idle(std::chrono::steady_clock::now() + std::chrono::seconds(60));
  });
  CHECK(idle);
  CHECK(same_bytes(batches, site.undisturbed(kBatches)));
  // What it was sent while it said that it drains is asked for again: no more than it has credits.
  CHECK(site.feeder->metric("sluice_feeder_reissued_batches_total") <= 2);
}

TEST_CASE("what neither a worker nor the trainer's own pod can read is an error of the data") {
  Site site(1);
  std::filesystem::remove(site.pictures.root / "7.jpg");
  for (std::uint64_t seq = 0; seq < 6; ++seq) site.client->request(seq, {6, 7});
  for (int i = 0; i < 6; ++i) {
    const auto answer = site.client->receive();
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
