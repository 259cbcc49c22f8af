// The feeder with its own threads only, spoken to over its socket as a client does.
#include "worker-image/feeder/feeder.h"

#include <sys/stat.h>

#include <array>
#include <fstream>
#include <thread>

#include "src/base/testing/catch.h"
#include "src/executor/testing/whole_batch.h"
#include "worker-image/testing/eventually.h"
#include "worker-image/testing/local_feeder.h"
#include "worker-image/testing/picture_folder.h"
#include "worker-image/testing/test_client.h"

namespace sluice::feeder {
namespace {

using nlohmann::json;
using testing::LocalFeeder;
using testing::PictureFolder;
using testing::ReceivedBatch;
using testing::TestClient;

// What a batch must hold, computed here without feeder, threads or arena.
std::vector<std::string> expected_batch(const std::string& specification, std::uint64_t position,
                                        const std::vector<std::int64_t>& indices) {
  auto made = executor::make_pipeline(1, executor::ExecutorKind::kNative,
                                      *transport::SealedMemory::copy_of(specification), "", 0);
  REQUIRE(made.ok());
  executor::BatchRequest request;
  request.pipeline = *made;
  request.base_seed = 42;
  request.position = position;
  request.indices = indices;
  std::vector<std::byte> slot((*made)->native->schema().batch_bytes(indices.size()));
  executor::NativeScratch scratch;
  REQUIRE(testing::make_whole_batch(request, slot, scratch).ok());
  std::vector<std::string> tensors;
  for (const auto& tensor : executor::native_tensors(**made, indices.size())) {
    tensors.emplace_back(reinterpret_cast<const char*>(slot.data()) + tensor.offset, tensor.nbytes);
  }
  return tensors;
}

TEST_CASE("batches hold exactly the pipeline's bytes, whatever the order of execution") {
  const auto [threads, batch_size] =
      GENERATE(std::array<std::size_t, 2>{1, 20}, std::array<std::size_t, 2>{3, 4}, std::array<std::size_t, 2>{8, 20});
  const PictureFolder pictures;
  LocalFeeder feeder({.threads = threads});
  TestClient client(feeder.socket());
  const json ready = client.open("native", pictures.specification());
  CHECK(ready["fingerprint"] ==
        executor::pipeline_fingerprint(executor::ExecutorKind::kNative, pictures.specification()));
  const auto batches = client.run(20, batch_size, 24);
  for (std::size_t seq = 0; seq < batches.size(); ++seq) {
    const std::size_t first = seq * batch_size;
    std::vector<std::int64_t> indices;
    for (std::size_t i = first; i < first + batch_size; ++i) indices.push_back(static_cast<std::int64_t>(i % 24));
    CHECK(batches[seq].tensors == expected_batch(pictures.specification(), first, indices));
    CHECK(batches[seq].placement == "local");
  }
  const double samples = 20 * static_cast<double>(batch_size);
  CHECK(feeder.wait_metric("sluice_feeder_batches_total", 20, "local"));  // counted after it is sent
  CHECK(feeder.metric("sluice_feeder_batches_total", "local") == 20);
  CHECK(feeder.wait_metric("sluice_worker_samples_total", samples, "native"));
  CHECK(feeder.metric("sluice_worker_samples_total", "native") == samples);
}

TEST_CASE("what the answers say of the operations adds up to what the metrics say") {
  const PictureFolder pictures;
  LocalFeeder feeder({.threads = 3});
  TestClient client(feeder.socket());
  client.open("native", pictures.specification());
  std::map<std::string, std::uint64_t> said;
  for (const ReceivedBatch& batch : client.run(12, 4, 24)) {
    for (const auto& [op, bytes] : batch.op_bytes) said[op] += bytes;
  }
  CHECK(said.size() == 4);
  for (const auto& [op, bytes] : said) {
    INFO(op);
    CHECK(feeder.metric("sluice_worker_op_bytes_total", op) == static_cast<double>(bytes));
  }
}

TEST_CASE("several ranks share the feeder and the same pipeline") {
  const PictureFolder pictures;
  LocalFeeder feeder({});
  TestClient first(feeder.socket(), 0), second(feeder.socket(), 1);
  CHECK(first.open("native", pictures.specification()) == second.open("native", pictures.specification()));
  std::vector<ReceivedBatch> a, b;
  std::jthread other([&] { b = second.run(10, 4, 24); });
  a = first.run(10, 4, 24);
  other.join();
  for (std::size_t i = 0; i < 10; ++i) CHECK(a[i].tensors == b[i].tensors);
}

TEST_CASE("a large pipeline is hashed beside the batches of other clients, and before what its client says next") {
  constexpr std::size_t kPipelineBytes = std::size_t{32} << 20;
  const PictureFolder pictures;
  LocalFeeder feeder({});
  TestClient large(feeder.socket(), 0), other(feeder.socket(), 1);
  other.open("native", pictures.specification());
  const json registration = {
      {"type", "pipeline"}, {"executor", "python"}, {"python", "/usr/bin/python3"}, {"num_workers", 2}};
  // It may be done before the other's batch. On the thread that serves both, it always is.
  bool served_beside = false;
  for (std::uint64_t i = 0; i < 10 && !served_beside; ++i) {
    json message = registration;
    message["id"] = i;
    const std::string content = std::to_string(i) + std::string(kPipelineBytes, 'p');
    large.send(message, "", *transport::SealedMemory::copy_of(content));
    large.send({{"type", "open"}, {"stream", i}, {"pipeline", i}, {"base_seed", 42}, {"epoch", 0}});
    large.send({{"type", "forget"}, {"pipeline", i}});
    other.request(i, {0, 1});
    CHECK(other.take_batch(other.receive()).tensors == expected_batch(pictures.specification(), 2 * i, {0, 1}));
    const json ready = large.receive([&] { served_beside = true; }).json;
    CHECK(ready["fingerprint"] == executor::pipeline_fingerprint(executor::ExecutorKind::kPython, content));
    large.send({{"type", "dance"}});
    CHECK_THAT(large.receive().json["message"].get<std::string>(),
               Catch::Contains("unknown type"));  // no error before it
    large.send({{"type", "close"}, {"stream", i}});
  }
  CHECK(served_beside);
}

TEST_CASE("a wrong client is told the field and does no harm") {
  const PictureFolder pictures;
  LocalFeeder feeder({});
  TestClient client(feeder.socket());
  client.open("native", pictures.specification());
  struct Case {
    const char* name;
    json message;
    const char* want;
  };
  const Case cases[] = {
      {"unknown type", {{"type", "dance"}}, "unknown type"},
      {"unknown stream",
       {{"type", "request"}, {"stream", 9}, {"seq", 0}, {"position", 0}, {"indices", {0}}},
       "request.stream: 9"},
      {"huge index",
       {{"type", "request"}, {"stream", 1}, {"seq", 0}, {"position", 0}, {"indices", {0, 4611686018427387904}}},
       "indices[1]"},
      {"negative index",
       {{"type", "request"}, {"stream", 1}, {"seq", 0}, {"position", 0}, {"indices", {-1}}},
       "indices[0]"},
      {"unknown pipeline",
       {{"type", "open"}, {"stream", 2}, {"pipeline", 77}, {"base_seed", 0}, {"epoch", 0}},
       "open.pipeline: 77"},
      {"stream open already",
       {{"type", "open"}, {"stream", 1}, {"pipeline", 1}, {"base_seed", 0}, {"epoch", 0}},
       "open.stream: 1"},
      {"other virtual workers",
       {{"type", "open"}, {"stream", 2}, {"pipeline", 1}, {"base_seed", 0}, {"epoch", 0}, {"virtual_workers", 3}},
       "open.virtual_workers: must be the pipeline's num_workers"},
      {"slot of no client", {{"type", "release"}, {"slots", {123456}}}, "release.slots: 123456"},
      {"progress of no client",
       {{"type", "progress"},
        {"stream", 5},
        {"batches", 1},
        {"samples", 1},
        {"compute_seconds", 1},
        {"wait_seconds", 1}},
       "progress.stream"},
      {"closing nothing", {{"type", "close"}, {"stream", 5}}, "close.stream: 5"},
      {"forgetting nothing", {{"type", "forget"}, {"pipeline", 77}}, "forget.pipeline: 77"},
      {"hello twice", {{"type", "hello"}, {"protocol", 2}}, "hello"},
  };
  for (const Case& test : cases) {
    INFO(test.name);
    client.send(test.message);
    const auto answer = client.receive();
    CHECK(answer.json["type"] == "error");
    CHECK_THAT(answer.json["message"].get<std::string>(), Catch::Contains(test.want));
  }
  CHECK(client.run(2, 4, 24).size() == 2);
}

TEST_CASE("a forgotten pipeline serves the streams that are open, and no new ones") {
  const PictureFolder pictures;
  LocalFeeder feeder({});
  TestClient client(feeder.socket());
  client.open("native", pictures.specification());
  client.send({{"type", "forget"}, {"pipeline", 1}});
  CHECK(client.run(2, 4, 24).size() == 2);
  client.send({{"type", "open"}, {"stream", 2}, {"pipeline", 1}, {"base_seed", 0}, {"epoch", 0}});
  CHECK_THAT(client.receive().json["message"].get<std::string>(), Catch::Contains("open.pipeline: 1 is unknown"));
}

TEST_CASE("a broken frame ends that connection and no other") {
  const PictureFolder pictures;
  LocalFeeder feeder({});
  TestClient good(feeder.socket()), bad(feeder.socket());
  good.open("native", pictures.specification());
  bad.send_bytes(std::string(8, '\xff'));
  CHECK(bad.disconnected());
  CHECK(good.run(2, 4, 24).size() == 2);
}

TEST_CASE("a specification that is not native is refused with the reason") {
  LocalFeeder feeder({});
  TestClient client(feeder.socket());
  const json ready = client.open("native", R"({"version": 1, "source": {"kind": "tape"}, "ops": []})");
  CHECK(ready["type"] == "ready");
  CHECK(ready.contains("error"));
  CHECK(!ready.contains("fingerprint"));
}

TEST_CASE("a pipeline without sealed memory is refused, and the next one is not") {
  const PictureFolder pictures;
  LocalFeeder feeder({});
  TestClient client(feeder.socket());
  const json pipeline{{"type", "pipeline"}, {"id", 7}, {"executor", "native"}};
  client.send(pipeline, pictures.specification());
  const json ready = client.receive().json;
  CHECK(ready["pipeline"] == 7);
  CHECK_THAT(ready["error"].get<std::string>(), Catch::Contains("sealed"));
  CHECK(client.open("native", pictures.specification()).contains("fingerprint"));
  CHECK(client.run(2, 4, 24).size() == 2);
}

TEST_CASE("a damaged file is an error of its batch, with path and index") {
  const PictureFolder pictures;
  std::ofstream(pictures.root / "3.jpg") << "not a JPEG";
  LocalFeeder feeder({});
  TestClient client(feeder.socket());
  client.open("native", pictures.specification());
  client.request(0, {2, 3});
  const auto answer = client.receive();
  CHECK(answer.json["type"] == "error");
  CHECK(answer.json["seq"] == 0);
  CHECK_THAT(answer.json["message"].get<std::string>(), Catch::Contains("3.jpg") && Catch::Contains("index 3"));
  client.request(1, {2, 4});
  CHECK(client.receive().json["type"] == "batch");
}

TEST_CASE("a client that keeps every batch still gets the next ones, to be copied out") {
  const PictureFolder pictures;
  // Ten batches of 4 x 3 x 32 x 32 floats (49,152 bytes and labels: 14 pages) fit.
  LocalFeeder feeder({.arena_bytes = 10 * 14 * 4096});
  TestClient client(feeder.socket());
  client.open("native", pictures.specification());
  int copies = 0;
  for (std::uint64_t seq = 0; seq < 40; ++seq) {
    client.request(seq, {0, 1, 2, 3});
    const auto message = client.receive();
    REQUIRE(message.json["type"] == "batch");
    copies += message.json["copy"].get<bool>();
    client.take_batch(message, /*release=*/message.json["copy"]);
  }
  CHECK(copies >= 30);
}

TEST_CASE("what a client held is free again when it goes") {
  const PictureFolder pictures;
  LocalFeeder feeder({});
  const std::size_t all = feeder.arena().free_bytes();
  {
    TestClient client(feeder.socket());
    client.open("native", pictures.specification());
    for (std::uint64_t seq = 0; seq < 4; ++seq) client.request(seq, {0, 1, 2, 3});
    client.take_batch(client.receive(), /*release=*/false);
  }
  CHECK(testing::eventually([&] { return feeder.arena().free_bytes() == all; }));
}

TEST_CASE("what a client holds is not given to others before it closes its end") {
  const PictureFolder pictures;
  LocalFeeder feeder({});
  const std::size_t all = feeder.arena().free_bytes();
  TestClient other(feeder.socket());
  other.open("native", pictures.specification());
  {
    TestClient client(feeder.socket());
    client.open("native", pictures.specification());
    client.request(0, {0, 1, 2, 3});
    client.take_batch(client.receive(), /*release=*/false);
    client.send_bytes(std::string(8, '\xff'));
    CHECK(client.disconnected());
    CHECK(other.run(2, 4, 24).size() == 2);
    CHECK(feeder.arena().free_bytes() < all);
  }
  CHECK(testing::eventually([&] { return feeder.arena().free_bytes() == all; }));
}

TEST_CASE("closing a stream drops its requests; another stream goes on") {
  const PictureFolder pictures;
  LocalFeeder feeder({.threads = 1});
  TestClient client(feeder.socket());
  client.open("native", pictures.specification(), 7);
  for (std::uint64_t seq = 0; seq < 50; ++seq) client.request(seq, {0, 1, 2, 3}, 7);
  client.send({{"type", "close"}, {"stream", 7}});
  client.send({{"type", "open"}, {"stream", 1}, {"pipeline", 1}, {"base_seed", 42}, {"epoch", 0}});
  client.request(0, {5, 6});
  std::size_t of_closed = 0;
  while (true) {
    const auto message = client.receive();
    REQUIRE(message.json["type"] == "batch");
    client.take_batch(message);
    if (message.json["stream"] == 1) break;
    ++of_closed;
  }
  CHECK(of_closed < 50);
}

TEST_CASE("progress becomes counters of the rank, over streams and repeated reports") {
  const PictureFolder pictures;
  LocalFeeder feeder({});
  TestClient client(feeder.socket(), 3);
  client.open("native", pictures.specification());
  const auto report = [&](int batches, double compute) {
    client.send({{"type", "progress"},
                 {"stream", 1},
                 {"batches", batches},
                 {"samples", 4 * batches},
                 {"compute_seconds", compute},
                 {"wait_seconds", 0.5},
                 {"queue_depth", 2},
                 {"queue_capacity", 5},
                 {"epoch", 1},
                 {"remaining_samples", 1000 - 4 * batches}});
  };
  report(10, 1.0);
  report(15, 1.5);
  client.send({{"type", "close"}, {"stream", 1}});
  client.send({{"type", "open"}, {"stream", 1}, {"pipeline", 1}, {"base_seed", 1}, {"epoch", 1}});
  report(5, 0.25);
  CHECK(feeder.wait_metric("sluice_trainer_remaining_samples", 980, "3"));  // the last figure of a report
  CHECK(feeder.metric("sluice_trainer_batches_total", "3") == 20);
  CHECK(feeder.metric("sluice_trainer_samples_total", "3") == 80);
  CHECK(feeder.metric("sluice_trainer_step_seconds_total", "compute") == Approx(1.75));
  CHECK(feeder.metric("sluice_trainer_queue_capacity") == 5);
  CHECK(feeder.metric("sluice_trainer_remaining_samples", "3") == 980);
}

TEST_CASE("a changed CPU quota changes threads and window") {
  const PictureFolder pictures;
  LocalFeeder feeder({.threads = 4});
  TestClient client(feeder.socket());
  client.open("native", pictures.specification());
  client.run(2, 4, 24);
  const std::size_t before = client.window();
  feeder.core().tick(1);
  CHECK(feeder.metric("sluice_worker_threads") == 1);
  client.run(2, 4, 24);
  CHECK(client.window() < before);
}

TEST_CASE("where loaders bound the threads, there are as many as the largest num_workers") {
  const PictureFolder pictures;
  LocalFeeder feeder({.threads = 4, .threads_by_loaders = true});
  CHECK(feeder.metric("sluice_worker_threads") == 4);
  {
    TestClient client(feeder.socket());
    client.open("native", pictures.specification());
    CHECK(feeder.metric("sluice_worker_threads") == TestClient::kNumWorkers);
    client.run(2, 4, 24);
    feeder.core().tick(4);
    CHECK(feeder.metric("sluice_worker_threads") == TestClient::kNumWorkers);
    feeder.core().tick(1);
    CHECK(feeder.metric("sluice_worker_threads") == 1);
  }
  CHECK(testing::eventually([&] {
    feeder.core().tick(4);
    return feeder.metric("sluice_worker_threads") == 4;  // its loaders went with the client
  }));
}

TEST_CASE("ranks that share a feeder have the threads that feeders of their own would have") {
  const PictureFolder pictures;
  LocalFeeder feeder({.threads = 3, .threads_by_loaders = true, .ranks = 4});
  {
    TestClient first(feeder.socket(), 0), second(feeder.socket(), 1);
    CHECK(feeder.core().clients() == 2);
    first.open("native", pictures.specification());
    CHECK(feeder.metric("sluice_worker_threads") == TestClient::kNumWorkers);
    second.open("native", pictures.specification());
    CHECK(feeder.metric("sluice_worker_threads") == 2 * TestClient::kNumWorkers);
    feeder.core().tick(1);
    CHECK(feeder.metric("sluice_worker_threads") == 2);  // the quota, for each
    CHECK(same_bytes(first.run(4, 4, 24), second.run(4, 4, 24)));
  }
  CHECK(testing::eventually([&] { return feeder.core().clients() == 0; }));
}

TEST_CASE("a second feeder on the same socket is refused; a dead one's socket is replaced") {
  LocalFeeder feeder({});
  LocalFeeder other({});
  const auto taken = SocketServer::start(feeder.socket(), other.core());
  REQUIRE(!taken.ok());
  CHECK(taken.error().code() == ErrorCode::kAlreadyExists);
  struct stat status {};
  REQUIRE(::stat(feeder.socket().c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);  // batches are pickles: for the trainer's user only
}

}  // namespace
}  // namespace sluice::feeder
