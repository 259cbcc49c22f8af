// A worker's messages and their effect: chunks in the wrong order, of the wrong size or shape, twice, for no batch, or
// while there is no memory. No network: messages are handed to RemoteWorker as gRPC would hand them.
#include "worker-image/feeder/remote_worker.h"

#include <cstring>
#include <optional>

#include "src/base/testing/catch.h"
#include "src/transport/worker_forms.h"
#include "worker-image/testing/fake_wire.h"
#include "worker-image/testing/picture_folder.h"

namespace sluice::feeder {
namespace {

using executor::Batch;
using executor::BatchFailure;
using executor::ExecutorKind;
using testing::PictureFolder;

struct Told {
  RequestId id = 0;
  BatchOutcome outcome;
};

class WorkerEvents final : public ExecutorEvents {
 public:
  void executor_joined(ExecutorId, const std::string&, std::size_t threads, std::size_t credits, std::size_t) override {
    joined.emplace_back(threads, credits);
  }
  void executor_refused(const std::string&, std::uint32_t) override { FAIL("a worker of our version"); }
  void executor_draining(ExecutorId) override { ++draining; }
  void executor_lost(ExecutorId, const std::string&) override { ++lost; }
  void pipeline_ready(ExecutorId, PipelineNumber pipeline) override { ready.push_back(pipeline); }
  void pipeline_refused(ExecutorId, PipelineNumber pipeline, const std::string&) override {
    refused.push_back(pipeline);
  }
  void finished(ExecutorId, RequestId request, BatchOutcome outcome) override {
    told.push_back({request, std::move(outcome)});
  }

  std::vector<std::pair<std::size_t, std::size_t>> joined;
  std::vector<PipelineNumber> ready, refused;
  std::vector<Told> told;
  int draining = 0;
  int lost = 0;
};

constexpr std::size_t kPage = transport::kSlotAlignment;

struct WorkerOnWire {
  explicit WorkerOnWire(std::size_t arena_bytes = std::size_t{8} << 20)
      : arena(*transport::Arena::create(arena_bytes)),
        worker(std::make_unique<RemoteWorker>(1, "10.0.0.1:7471", wire.connect(), arena, events)) {}

  // The permit counts how many messages are being held back.
  void say(v1::Header header, const std::string& payload = "") {
    const auto bytes = std::make_shared<const std::string>(payload);
    std::vector<transport::Payload::Piece> pieces;
    if (!bytes->empty()) pieces.emplace_back(reinterpret_cast<const std::uint8_t*>(bytes->data()), bytes->size());
    ++permits;
    worker->received(std::move(header), transport::Payload(std::move(pieces), bytes),
                     transport::ReadPermit(nullptr, [this](void*) { --permits; }));
  }

  void ask(RequestId id, const executor::PipelineHandle& pipeline, std::vector<std::int64_t> indices) {
    auto request = std::make_shared<executor::BatchRequest>();
    request->pipeline = pipeline;
    request->indices = std::move(indices);
    worker->execute(id, request);
  }

  const Batch& batch() const {
    REQUIRE(events.told.size() == 1);
    REQUIRE(std::holds_alternative<Batch>(events.told[0].outcome));
    return std::get<Batch>(events.told[0].outcome);
  }
  std::string failure() const {
    REQUIRE(events.told.size() == 1);
    REQUIRE(std::holds_alternative<BatchFailure>(events.told[0].outcome));
    return std::get<BatchFailure>(events.told[0].outcome).failure.message;
  }
  bool all_memory_is_free() const { return arena->free_bytes() == arena->bytes(); }

  int permits = 0;
  testing::FakeWire wire;
  WorkerEvents events;
  std::shared_ptr<transport::Arena> arena;
  std::unique_ptr<RemoteWorker> worker;
};

executor::PipelineHandle python_pipeline() {
  return *executor::make_pipeline(1, ExecutorKind::kPython, *transport::SealedMemory::copy_of("blob"), "python3", 1);
}

struct Tensor {
  std::uint64_t offset = 0;
  std::uint64_t nbytes = 0;
};

v1::Header python_chunk(RequestId id, std::uint64_t offset, bool last, const std::vector<Tensor>& tensors = {}) {
  v1::Header header;
  auto* chunk = header.mutable_chunk();
  chunk->set_id(id);
  chunk->set_offset(offset);
  chunk->set_last(last);
  chunk->set_from_memory(last);
  if (last) chunk->set_seconds(0.5);
  if (offset == 0) chunk->set_structure("structure");
  for (const Tensor& tensor : tensors) {
    auto* entry = chunk->add_tensors();
    entry->set_dtype("uint8");
    entry->add_shape(static_cast<std::int64_t>(tensor.nbytes));
    entry->set_offset(tensor.offset);
    entry->set_nbytes(tensor.nbytes);
  }
  return header;
}

TEST_CASE("a Python batch is put together from its chunks, in its own slot") {
  WorkerOnWire f;
  f.ask(7, python_pipeline(), {0, 1});
  f.say(python_chunk(7, 0, false, {{0, 100}, {128, 72}}), std::string(128, 'a'));
  CHECK(f.events.told.empty());
  f.say(python_chunk(7, 128, true), std::string(72, 'b'));
  CHECK(f.events.told[0].id == 7);
  const Batch& batch = f.batch();
  CHECK(batch.structure == "structure");
  CHECK((batch.busy_seconds == 0.5 && batch.from_memory));
  REQUIRE(batch.tensors.size() == 2);
  CHECK(batch.tensors[1].offset == 128);
  const auto* data = reinterpret_cast<const char*>(batch.slot.data());
  CHECK(std::string(data, 200) == std::string(128, 'a') + std::string(72, 'b'));
  CHECK(f.permits == 0);
  f.events.told.clear();
  CHECK(f.all_memory_is_free());
}

TEST_CASE("a wrong Python chunk fails its batch, frees its memory and is the last that counts") {
  struct Case {
    const char* name;
    std::vector<std::pair<v1::Header, std::string>> chunks;
    const char* want;
  };
  constexpr std::uint64_t kHuge = std::uint64_t{1} << 63;
  const std::string hundred(100, 'x');
  const Case cases[] = {
      {"the second chunk first", {{python_chunk(7, 100, false, {{0, 200}}), hundred}}, "out of place"},
      {"a chunk twice",
       {{python_chunk(7, 0, false, {{0, 200}}), hundred}, {python_chunk(7, 0, false, {{0, 200}}), hundred}},
       "out of place"},
      {"a gap",
       {{python_chunk(7, 0, false, {{0, 300}}), hundred}, {python_chunk(7, 200, true), hundred}},
       "out of place"},
      {"more bytes than the slot",
       {{python_chunk(7, 0, false, {{0, 100}}), std::string(kPage + 1, 'x')}},
       "out of place"},
      {"the last one too early", {{python_chunk(7, 0, true, {{0, 101}}), hundred}}, "not complete"},
      {"nothing at all", {{python_chunk(7, 0, true, {{0, 1}}), ""}}, "not complete"},
      {"a tensor that is not aligned", {{python_chunk(7, 0, true, {{1, 99}}), hundred}}, "not aligned"},
      {"a tensor beyond all memory", {{python_chunk(7, 0, true, {{kHuge, 64}}), hundred}}, "too large"},
      {"sizes whose sum wraps", {{python_chunk(7, 0, true, {{kHuge, kHuge}}), hundred}}, "too large"},
      {"more than the arena", {{python_chunk(7, 0, true, {{0, std::uint64_t{1} << 39}}), hundred}}, "--arena-bytes"},
  };
  for (const Case& test : cases) {
    INFO(test.name);
    WorkerOnWire f;
    f.ask(7, python_pipeline(), {0});
    for (const auto& [header, payload] : test.chunks) f.say(header, payload);
    CHECK_THAT(f.failure(), Catch::Contains(test.want));
    f.say(python_chunk(7, 0, true, {{0, 100}}), hundred);  // the batch is gone
    CHECK(f.events.told.size() == 1);
    CHECK(f.permits == 0);
    CHECK(f.all_memory_is_free());
  }
}

TEST_CASE("a batch without tensors is a batch") {
  WorkerOnWire f;
  f.ask(7, python_pipeline(), {0});
  f.say(python_chunk(7, 0, true));
  CHECK(f.batch().tensors.empty());
}

v1::Header native_chunk(RequestId id, std::size_t first, std::size_t samples, bool last) {
  v1::Header header;
  auto* chunk = header.mutable_chunk();
  chunk->set_id(id);
  chunk->set_first_sample(first);
  chunk->set_samples(samples);
  chunk->set_last(last);
  return header;
}

TEST_CASE("a native batch takes whole samples, in order, and nothing else") {
  const PictureFolder pictures(4);
  const auto pipeline = *executor::make_pipeline(1, ExecutorKind::kNative,
                                                 *transport::SealedMemory::copy_of(pictures.specification(8)), "", 0);
  const std::size_t bytes = pipeline->native->wire_sample_bytes();
  REQUIRE(bytes == 8 * 8 * 3);
  using Chunks = std::vector<std::pair<v1::Header, std::size_t>>;  // with payloads of so many bytes
  struct Case {
    const char* name;
    Chunks chunks;
    const char* want;  // "": a batch
  };
  const Case cases[] = {
      {"at once", Chunks{{native_chunk(7, 0, 3, true), 3 * bytes}}, ""},
      {"in pieces", Chunks{{native_chunk(7, 0, 1, false), bytes}, {native_chunk(7, 1, 2, true), 2 * bytes}}, ""},
      {"with an empty piece", Chunks{{native_chunk(7, 0, 0, false), 0}, {native_chunk(7, 0, 3, true), 3 * bytes}}, ""},
      {"out of order", Chunks{{native_chunk(7, 1, 2, false), 2 * bytes}}, "out of place"},
      {"a piece twice", Chunks{{native_chunk(7, 0, 1, false), bytes}, {native_chunk(7, 0, 1, false), bytes}},
       "out of place"},
      {"too many samples", Chunks{{native_chunk(7, 0, 4, true), 4 * bytes}}, "out of place"},
      {"a number of samples that wraps", Chunks{{native_chunk(7, 0, ~std::size_t{0}, true), bytes}}, "out of place"},
      {"half a sample", Chunks{{native_chunk(7, 0, 1, false), bytes / 2}}, "out of place"},
      {"pixels of another size", Chunks{{native_chunk(7, 0, 3, true), 3 * bytes + 3}}, "out of place"},
      {"the last one too early", Chunks{{native_chunk(7, 0, 2, true), 2 * bytes}}, "not complete"},
      {"all samples, and not the last", Chunks{{native_chunk(7, 0, 3, false), 3 * bytes}}, "not complete"},
  };
  for (const Case& test : cases) {
    INFO(test.name);
    WorkerOnWire f;
    f.ask(7, pipeline, {2, 0, 1});
    for (const auto& [header, size] : test.chunks) f.say(header, std::string(size, '\x40'));
    if (*test.want == '\0') {
      const Batch& batch = f.batch();
      REQUIRE(batch.tensors.size() == 2);
      std::int64_t labels[3];
      std::memcpy(labels, batch.slot.data() + batch.tensors[1].offset, sizeof(labels));
      CHECK(labels[0] == 2);
      CHECK(labels[1] == 0);
    } else {
      CHECK_THAT(f.failure(), Catch::Contains(test.want));
      CHECK(f.all_memory_is_free());
    }
    CHECK(f.permits == 0);
  }
}

TEST_CASE("while there is no memory for a batch, its worker is not read") {
  WorkerOnWire f(4 * kPage);
  transport::ArenaSlot all = f.arena->try_allocate(4 * kPage);
  f.ask(7, python_pipeline(), {0});
  f.say(python_chunk(7, 0, true, {{0, 100}}), std::string(100, 'a'));
  CHECK(f.permits == 1);
  CHECK(f.events.told.empty());
  SECTION("memory comes: the batch is placed, and reading goes on") {
    all = {};
    CHECK(f.permits == 0);
    CHECK(f.batch().tensors.size() == 1);
  }
  SECTION("the batch was cancelled: its memory goes straight back") {
    f.worker->cancel(7);
    all = {};
    CHECK(f.permits == 0);
    CHECK(f.events.told.size() == 1);  // an answer all the same: it frees the credit
    f.events.told.clear();
    CHECK(f.all_memory_is_free());
  }
  SECTION("the worker is gone before memory comes") {
    f.worker.reset();
    all = {};
    CHECK(f.permits == 0);
    CHECK(f.events.told.empty());
    CHECK(f.all_memory_is_free());
  }
  SECTION("the arena gives up on it") {
    f.arena->cancel(1, Error(ErrorCode::kResourceExhausted, "the trainer keeps everything"));
    CHECK(f.permits == 0);
    CHECK(f.failure() == "the trainer keeps everything");
  }
}

TEST_CASE("a cancelled batch gives its memory back at once, and is answered when its last chunk comes") {
  WorkerOnWire f;
  f.ask(7, python_pipeline(), {0});
  f.say(python_chunk(7, 0, false, {{0, 300}}), std::string(100, 'a'));
  CHECK(!f.all_memory_is_free());
  f.worker->cancel(7);
  CHECK(f.all_memory_is_free());
  f.say(python_chunk(7, 100, false), std::string(100, 'a'));
  CHECK(f.events.told.empty());
  f.say(python_chunk(7, 200, true), std::string(100, 'a'));
  CHECK_THAT(f.failure(), Catch::Contains("no longer wanted"));
  CHECK(f.all_memory_is_free());
}

TEST_CASE("a worker hears of a pipeline once, of requests, of the end of their pass, and of nothing once it is gone") {
  WorkerOnWire f;
  const auto pipeline = python_pipeline();
  for (int times = 0; times < 2; ++times) f.worker->load(pipeline);
  auto request = std::make_shared<executor::BatchRequest>(executor::BatchRequest{{3, 4, 5, 6, {7, -8}}, pipeline});
  request->virtual_workers = std::make_shared<executor::VirtualWorkers>(1, true, 11);
  f.worker->execute(9, request);
  f.worker->cancel(9);
  request->virtual_workers.reset();
  f.worker->load(pipeline);
  f.worker->closed("for the test");
  f.worker->load(
      *executor::make_pipeline(2, ExecutorKind::kPython, *transport::SealedMemory::copy_of("other"), "python3", 1));
  f.worker->execute(10, request);
  f.worker->cancel(10);
  const auto sent = f.wire.sent("10.0.0.1:7471");
  REQUIRE(sent.size() == 4);
  CHECK(sent[0].header.pipeline().id() == 1);
  CHECK(sent[0].header.pipeline().fingerprint() == pipeline->fingerprint);
  CHECK(sent[0].header.pipeline().python() == "python3");
  CHECK(sent[0].payload == "blob");
  const v1::Request& message = sent[1].header.request();
  CHECK(std::tuple(message.id(), message.pipeline(), message.pass()) == std::tuple(9u, 1u, 11u));
  const transport::BatchSpec batch = transport::from_proto(message.batch());
  CHECK(std::tuple(batch.seq, batch.base_seed, batch.epoch, batch.position) == std::tuple(3u, 4u, 5u, 6u));
  CHECK(batch.indices == std::vector<std::int64_t>{7, -8});
  CHECK(sent[2].header.cancel().id() == 9);
  const auto& ended = sent[3].header.forget().passes();
  CHECK(std::vector<std::uint64_t>(ended.begin(), ended.end()) == std::vector<std::uint64_t>{11});
}

TEST_CASE("a large pipeline is sent in pieces, in order and whole") {
  WorkerOnWire f;
  const std::string blob = std::string(executor::kChunkBytes, 'a') + std::string(executor::kChunkBytes, 'b') + "c";
  f.worker->load(
      *executor::make_pipeline(5, ExecutorKind::kPython, *transport::SealedMemory::copy_of(blob), "python3", 1));
  const auto sent = f.wire.sent("10.0.0.1:7471");
  REQUIRE(sent.size() == 3);
  CHECK(sent[0].header.pipeline().bytes() == blob.size());
  CHECK(sent[1].header.pipeline_part().id() == 5);
  CHECK(sent[2].header.pipeline_part().id() == 5);
  CHECK((sent[0].payload + sent[1].payload + sent[2].payload == blob));
}

TEST_CASE("chunks of batches that were not asked for are dropped") {
  WorkerOnWire f;
  f.say(python_chunk(99, 0, true, {{0, 100}}), std::string(100, 'a'));
  f.worker->cancel(99);
  CHECK(f.events.told.empty());
  CHECK(f.permits == 0);
  CHECK(f.all_memory_is_free());
}

TEST_CASE("a worker's failure comes with the exception and frees what had arrived") {
  WorkerOnWire f;
  f.ask(7, python_pipeline(), {0});
  f.say(python_chunk(7, 0, false, {{0, 300}}), std::string(100, 'a'));
  v1::Header header;
  header.mutable_failure()->set_id(7);
  header.mutable_failure()->set_exception_type("KeyError");
  header.mutable_failure()->set_message("'x'");
  header.mutable_failure()->set_traceback("line 1");
  f.say(header, "pickled");
  CHECK(f.failure() == "'x'");
  const auto& failure = std::get<BatchFailure>(f.events.told[0].outcome);
  CHECK(failure.failure.exception_type == "KeyError");
  CHECK(failure.failure.traceback == "line 1");
  CHECK(failure.exception == "pickled");
  CHECK(f.all_memory_is_free());
}

TEST_CASE("what a worker says of itself is passed on; hello counts once, and the unknown is ignored") {
  WorkerOnWire f;
  v1::Header hello, ready, refused, draining, unknown;
  hello.mutable_hello()->set_threads(3);
  hello.mutable_hello()->set_credits(6);
  hello.mutable_hello()->set_protocol(transport::kProtocolVersion);
  ready.mutable_pipeline_ready()->set_id(4);
  refused.mutable_pipeline_error()->set_id(5);
  draining.mutable_draining();
  CHECK(!f.worker->has_joined());
  for (const v1::Header& header : {hello, hello, ready, refused, draining, unknown}) f.say(header);
  CHECK(f.worker->has_joined());
  CHECK(f.events.joined == std::vector<std::pair<std::size_t, std::size_t>>{{3, 6}});
  CHECK(f.events.ready == std::vector<PipelineNumber>{4});
  CHECK(f.events.refused == std::vector<PipelineNumber>{5});
  CHECK(f.events.draining == 1);
}

TEST_CASE("the end of the stream loses a worker that had joined, and frees what had arrived") {
  WorkerOnWire f;
  bool joined = false;
  SECTION("it had joined") {
    v1::Header hello;
    hello.mutable_hello()->set_protocol(transport::kProtocolVersion);
    f.say(hello);
    joined = true;
  }
  SECTION("it had not") {}
  f.ask(7, python_pipeline(), {0});
  f.say(python_chunk(7, 0, false, {{0, 300}}), std::string(100, 'a'));
  CHECK(!f.worker->is_over());
  f.worker->closed("for the test");
  CHECK(f.worker->is_over());
  CHECK(f.events.lost == (joined ? 1 : 0));
  CHECK(f.all_memory_is_free());
  f.ask(8, python_pipeline(), {0});
  CHECK(f.events.told.empty());
}

}  // namespace
}  // namespace sluice::feeder
