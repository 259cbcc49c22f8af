// A feeder and a worker of different versions.
#include <atomic>
#include <mutex>

#include "src/base/logging.h"
#include "src/base/testing/catch.h"
#include "src/transport/remote_server.h"
#include "src/transport/worker_forms.h"
#include "worker-image/testing/local_feeder.h"
#include "worker-image/testing/picture_folder.h"
#include "worker-image/testing/test_client.h"

namespace sluice::feeder {
namespace {

// A worker that says hello in these words, and answers nothing.
class Announcing final : public transport::RemoteServerHandler {
 public:
  explicit Announcing(v1::Header hello) : hello_(std::move(hello)) {
    auto started = transport::RemoteServer::start("127.0.0.1:0", {}, *this);
    REQUIRE(started.ok());
    server_ = std::move(started).value();
  }

  void opened(std::shared_ptr<transport::RemoteStream> stream) override { stream->send(hello_); }
  void received(const std::shared_ptr<transport::RemoteStream>&, v1::Header, transport::Payload) override {
    ++messages;
  }
  void closed(const std::shared_ptr<transport::RemoteStream>&) override {}

  std::string address() const { return "127.0.0.1:" + std::to_string(server_->port()); }
  std::atomic<int> messages = 0;

 private:
  const v1::Header hello_;
  std::unique_ptr<transport::RemoteServer> server_;
};

v1::Header hello_of(std::uint32_t protocol) {
  v1::Header header;
  header.mutable_hello()->set_threads(1);
  header.mutable_hello()->set_credits(2);
  header.mutable_hello()->set_protocol(protocol);
  return header;
}

testing::LocalFeeder::Options with_worker(const Announcing& worker) {
  const std::string address = worker.address();
  return {.threads = 1, .workers = [address] { return Addresses{address}; }};
}

TEST_CASE("workers of another version are told of once, and the feeder makes the batches itself") {
  const testing::PictureFolder pictures;
  const auto [said, understood] = GENERATE(std::pair(2, 2), std::pair(0, 1));  // workers that say none are of the first
  Announcing worker(hello_of(static_cast<std::uint32_t>(said)));
  std::mutex mutex;
  std::vector<std::string> told;
  set_log_sink([&](std::string_view line) {
    std::lock_guard lock(mutex);
    if (line.find("another version") != std::string_view::npos) told.emplace_back(line);
  });
  {
    testing::LocalFeeder feeder(with_worker(worker));
    REQUIRE(feeder.wait_metric("sluice_feeder_refused_workers_total", 2));  // it tries again
    testing::TestClient client(feeder.socket());
    client.open("native", pictures.specification());
    CHECK(client.run(6, 8, 24).size() == 6);
    CHECK(feeder.metric("sluice_feeder_remote_workers") == 0);
    CHECK(feeder.wait_metric("sluice_feeder_batches_total", 6, "local"));  // counted after it is sent
    CHECK(feeder.metric("sluice_feeder_batches_total", "local") == 6);
  }
  set_log_sink(nullptr);
  CHECK(worker.messages == 0);
  REQUIRE(told.size() == 1);
  CHECK_THAT(told.front(), Catch::Contains("address=" + worker.address() +
                                           " their_protocol=" + std::to_string(understood) + " our_protocol=3"));
}

TEST_CASE("a worker of our version that says more than we know joins") {
  v1::Header hello = hello_of(transport::kProtocolVersion);
  const std::size_t known_bytes = hello.SerializeAsString().size();
  const std::string field_99 = {'\x98', '\x06', '\x01'};  // with the value 1
  REQUIRE(hello.mutable_hello()->MergeFromString(field_99));
  REQUIRE(hello.MergeFromString(field_99));
  REQUIRE(hello.SerializeAsString().size() > known_bytes + 5);  // it is sent
  const Announcing worker(hello);
  testing::LocalFeeder feeder(with_worker(worker));
  CHECK(feeder.wait_metric("sluice_feeder_remote_workers", 1));
}

}  // namespace
}  // namespace sluice::feeder
