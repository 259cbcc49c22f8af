// The operator renews a job's certificates while a feeder and its workers run, in the steps of
// operator/act/certificate_rotation.h; the kubelets replace the mounted files at different times.
#include <mutex>

#include "src/base/logging.h"
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
using testing::TestClient;
using transport::TlsMaterial;

// A mounted Secret: the files are links into a folder that is replaced as a whole.
class MountedSecret {
 public:
  explicit MountedSecret(const TlsMaterial& material) {
    replace(material);
    for (const char* name : {"ca.crt", "tls.crt", "tls.key"})
      std::filesystem::create_symlink(std::filesystem::path("..data") / name, directory_.path / name);
  }

  void replace(const TlsMaterial& material) {
    const std::string version = "..version_" + std::to_string(++versions_);
    directory_.file(version + "/ca.crt", material.authority);
    directory_.file(version + "/tls.crt", material.certificate);
    directory_.file(version + "/tls.key", material.key);
    std::filesystem::create_symlink(version, directory_.path / "..data_tmp");
    std::filesystem::rename(directory_.path / "..data_tmp", directory_.path / "..data");
    std::filesystem::remove_all(directory_.path / ("..version_" + std::to_string(versions_ - 1)));
  }

  transport::Credentials credentials() const {
    const auto read = transport::read_credentials(directory_.path.string(), false);
    REQUIRE(read.ok());
    return *read;
  }

 private:
  const testing::TemporaryDirectory directory_;
  int versions_ = 0;
};

struct Step {
  TlsMaterial before, both, after;
};

Step steps() {
  const http::testing::CertificateAuthority old_authority("before"), new_authority("after");
  const std::string name = std::string("DNS:") + transport::kWorkerServerName;
  const auto old_leaf = old_authority.issue("sluice", name), new_leaf = new_authority.issue("sluice", name);
  const std::string both = old_authority.certificate_pem() + new_authority.certificate_pem();
  return {{old_authority.certificate_pem(), old_leaf.certificate_pem, old_leaf.key_pem},
          {both, old_leaf.certificate_pem, old_leaf.key_pem},
          {both, new_leaf.certificate_pem, new_leaf.key_pem}};
}

bool connects(const LocalWorker& worker, const transport::Credentials& credentials) {
  const std::string address = worker.address();
  LocalFeeder feeder({.threads = 1, .workers = [address] { return Addresses{address}; }, .credentials = credentials});
  return feeder.wait_metric("sluice_feeder_remote_workers", 1);
}

TEST_CASE(
    "a stream goes on while its files are replaced, and connections that begin then show and trust the new ones") {
  const PictureFolder pictures;
  const Step step = steps();
  MountedSecret workers_files(step.before), feeders_files(step.before);
  LocalWorker first(1, workers_files.credentials());
  std::mutex mutex;
  Addresses addresses{first.address()};
  const auto lookup = [&] {
    std::lock_guard lock(mutex);
    return addresses;
  };
  LocalFeeder feeder({.threads = 1, .workers = lookup, .credentials = feeders_files.credentials()});
  REQUIRE(feeder.wait_metric("sluice_feeder_remote_workers", 1));
  TestClient client(feeder.socket());
  client.open("native", pictures.specification());
  const auto replace_files = [&](std::size_t batch) {
    if (batch == 10) workers_files.replace(step.both);
    if (batch == 20) feeders_files.replace(step.both);
    if (batch == 30) workers_files.replace(step.after);
    if (batch == 40) feeders_files.replace(step.after);
  };
  CHECK(client.run(60, 8, 24, replace_files).size() == 60);
  CHECK(feeder.metric("sluice_feeder_remote_workers") == 1);
  CHECK(feeder.metric("sluice_feeder_reissued_batches_total") == 0);

  // A worker that begins now, which shows what only the new authority has issued.
  LocalWorker second(1, TlsMaterial{step.after});
  {
    std::lock_guard lock(mutex);
    addresses.insert(second.address());
  }
  CHECK(feeder.wait_metric("sluice_feeder_remote_workers", 2));
  // The first worker, which has run since before: it trusts the new authority ...
  TlsMaterial only_new = step.after;
  only_new.authority = step.both.authority.substr(step.before.authority.size());
  CHECK(connects(first, only_new));  // ... and shows what that one has issued.
}

TEST_CASE("a peer with the files before a step and one with those after it connect, both ways round") {
  const Step step = steps();
  const auto [feeders, workers] = GENERATE_COPY(table<TlsMaterial, TlsMaterial>(
      {{step.before, step.both}, {step.both, step.before}, {step.both, step.after}, {step.after, step.both}}));
  const MountedSecret feeders_files(feeders), workers_files(workers);
  const LocalWorker worker(1, workers_files.credentials());
  CHECK(connects(worker, feeders_files.credentials()));
}

TEST_CASE("damaged new files are told once, and those before stay in use") {
  const Step step = steps();
  MountedSecret files(step.before);
  const transport::Credentials credentials = files.credentials();
  TlsMaterial mixed = step.before;
  mixed.certificate = step.after.certificate;  // of another key
  const TlsMaterial damaged = GENERATE(true, false) ? mixed : TlsMaterial{"", "", ""};
  std::vector<std::string> lines;
  set_log_sink([&](std::string_view line) { lines.emplace_back(line); });
  files.replace(damaged);
  for (int connection = 0; connection < 3; ++connection) CHECK(credentials.now() == step.before);
  set_log_sink(nullptr);
  REQUIRE(lines.size() == 1);
  CHECK_THAT(lines.front(), Catch::Contains("cannot be used"));
  files.replace(step.both);
  CHECK(credentials.now() == step.both);
}

TEST_CASE("the end of the certificate in use is known") {
  const Step step = steps();
  const MountedSecret files(step.before);
  const auto expires = files.credentials().expires();
  REQUIRE(expires);
  const auto left = *expires - std::chrono::system_clock::now();
  CHECK(left > std::chrono::minutes(55));
  CHECK(left <= std::chrono::minutes(60));
}

}  // namespace
}  // namespace sluice::feeder
