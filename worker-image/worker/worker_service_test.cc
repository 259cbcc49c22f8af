// The worker behind its protocol: credits, cancelled batches, lost and draining feeders.
#include "worker-image/worker/worker_service.h"

#include <fstream>

#include "src/base/testing/catch.h"
#include "src/executor/testing/metrics_text.h"
#include "worker-image/testing/eventually.h"
#include "worker-image/testing/picture_folder.h"
#include "worker-image/testing/worker_fixture.h"

namespace sluice::worker {
namespace {

using testing::FakeStream;
using testing::PictureFolder;
using testing::python_blob;
using v1::Header;
using Fixture = testing::WorkerFixture;

TEST_CASE("a feeder is greeted with threads and credits, and its batches are answered") {
  const PictureFolder pictures(4);
  Fixture f(3);
  const auto stream = f.connect();
  const Header hello = stream->wait(Header::kHello).header;
  CHECK(hello.hello().threads() == 3);
  CHECK(hello.hello().credits() == 6);
  CHECK(hello.hello().waiting_max() > 0);
  f.send_pipeline(stream, 1, executor::ExecutorKind::kNative, pictures.specification(8));
  CHECK(stream->wait(Header::kPipelineReady).header.pipeline_ready().id() == 1);
  f.request(stream, 7, {0, 1, 2});
  const auto chunk = stream->wait(Header::kChunk);
  CHECK(chunk.header.chunk().id() == 7);
  CHECK(chunk.header.chunk().samples() == 3);
  CHECK(chunk.header.chunk().last());
  CHECK(chunk.payload.size() == 3 * 8 * 8 * 3);
  CHECK(f.all_memory_comes_back());
}

TEST_CASE(
    "requests beyond credits and what may wait, or of a pipeline that is not loaded, are refused; the rest is "
    "answered") {
  const PictureFolder pictures(4);
  Fixture f(1);
  const auto stream = f.connect();
  f.send_pipeline(stream, 1, executor::ExecutorKind::kNative, pictures.specification(8));
  stream->set_reads(false);
  // The thread waits for memory with the first: nothing is answered before all have been asked for.
  transport::ArenaSlot all = f.arena->try_allocate(f.arena->bytes());
  const v1::Hello hello = stream->wait(Header::kHello).header.hello();
  const std::uint64_t held = hello.credits() + hello.waiting_max();
  for (std::uint64_t id = 1; id <= held + 2; ++id) f.request(stream, id, {0, 1});
  f.request(stream, held + 3, {0}, /*pipeline=*/99);
  const std::vector<std::uint64_t> refused{held + 1, held + 2, held + 3};
  CHECK(stream->wait_answers(3) == refused);
  CHECK(stream->wait(Header::kFailure, 1).header.failure().message() == "more requests than credits");
  CHECK(stream->wait(Header::kFailure, 3).header.failure().message() == "the pipeline is not loaded here");
  all = {};
  CHECK(stream->wait_answers(held + 3).size() == held + 3);
  // The answer freed its credit: the next request may come at once.
  f.request(stream, held + 4, {3});
  CHECK(stream->wait_answers(held + 4).back() == held + 4);
}

TEST_CASE("batches that wait are in the making together on one thread") {
  const testing::TemporaryDirectory folder;
  Fixture f(1);
  const auto stream = f.connect();
  const std::string meet = R"({"behaviour": "meet", "children": 4, "folder": ")" + folder.path.string() + R"("})";
  f.send_pipeline(stream, 1, executor::ExecutorKind::kPython, meet);
  for (std::uint64_t id = 1; id <= 5; ++id) f.request(stream, id, {0, 1});
  CHECK(stream->wait_answers(5).size() == 5);
  CHECK(f.all_memory_comes_back());
}

TEST_CASE("an error of the data is told with sample and file, and the next batch is made") {
  const PictureFolder pictures(4);
  std::ofstream(pictures.root / "2.jpg") << "not a JPEG";
  Fixture f;
  const auto stream = f.connect();
  f.send_pipeline(stream, 1, executor::ExecutorKind::kNative, pictures.specification(8));
  f.request(stream, 1, {0, 2});
  const auto failure = stream->wait(Header::kFailure).header.failure();
  CHECK_THAT(failure.message(), Catch::Contains("sample 1 of the batch, index 2") && Catch::Contains("2.jpg"));
  f.request(stream, 2, {0, 99});
  CHECK_THAT(stream->wait(Header::kFailure, 2).header.failure().message(), Catch::Contains("indices[1]: 99"));
  f.request(stream, 3, {0, 1});
  CHECK(stream->wait_answers(3).back() == 3);
  CHECK(f.all_memory_comes_back());
}

TEST_CASE("Python batches: answers, exceptions with their pickle, and children that die") {
  struct Case {
    const char* behaviour;
    const char* want;  // "": a batch
  };
  for (const Case& test : {Case{"echo", ""}, Case{"raise", "'x'"}, Case{"exit", "exited with code 3"},
                           Case{"segfault", "killed by signal 11"}, Case{"tensor outside", "outside its slot"}}) {
    INFO(test.behaviour);
    Fixture f;
    const auto stream = f.connect();
    f.send_pipeline(stream, 1, executor::ExecutorKind::kPython, python_blob(test.behaviour));
    CHECK(stream->wait(Header::kPipelineReady).header.pipeline_ready().id() == 1);
    f.request(stream, 7, {10, 20});
    CHECK(stream->wait_answers(1) == std::vector<std::uint64_t>{7});
    if (*test.want == '\0') {
      const auto chunk = stream->wait(Header::kChunk);
      CHECK(chunk.header.chunk().structure() == "structure");
      CHECK(chunk.header.chunk().tensors_size() == 1);
      CHECK(chunk.payload.size() == 4 * sizeof(std::int64_t));
    } else {
      const auto failure = stream->wait(Header::kFailure);
      CHECK_THAT(failure.header.failure().message(), Catch::Contains(test.want));
      CHECK(failure.payload == (std::string(test.behaviour) == "raise" ? "pickled" : ""));
    }
    CHECK(f.all_memory_comes_back());
  }
}

TEST_CASE("a batch is made in the state that its request names; a forgotten one is unknown") {
  Fixture f;
  const auto stream = f.connect();
  f.send_pipeline(stream, 1, executor::ExecutorKind::kPython, R"({"behaviour": "environment", "names": []})");
  stream->wait(Header::kPipelineReady);
  f.send_state(stream, 5, "epoch 3");
  f.request(stream, 7, {10}, 1, 5);
  CHECK_THAT(stream->wait(Header::kChunk).header.chunk().structure(), Catch::Contains(R"("epoch 3")"));
  f.forget_state(stream, 5);
  f.request(stream, 8, {10}, 1, 5);
  CHECK_THAT(stream->wait(Header::kFailure).header.failure().message(), Catch::Contains("state is not known"));
}

TEST_CASE("virtual workers have a process each for their pass, and another one after it is forgotten") {
  Fixture f(2);
  const auto stream = f.connect();
  f.send_pipeline(stream, 1, executor::ExecutorKind::kPython, python_blob("remembers"));
  stream->wait(Header::kPipelineReady);
  const auto process = [&](std::uint64_t id, std::uint64_t seq, std::uint64_t pass) {
    Header header;
    auto* message = header.mutable_request();
    message->set_id(id);
    message->set_pipeline(1);
    message->set_pass(pass);
    message->mutable_batch()->set_seq(seq);
    f.say(stream, header);
    return stream->wait(Header::kChunk, id).header.chunk().structure();
  };
  const std::string first = process(1, 0, 7), other = process(2, 1, 7);
  CHECK(first != other);
  CHECK(process(3, 2, 7) == first);
  CHECK(process(4, 0, 8) != first);
  f.forget_pass(stream, 7);
  CHECK(process(5, 4, 7) != first);
}

TEST_CASE("a cancelled request is answered all the same, and costs no work") {
  const PictureFolder pictures(4);
  Fixture f(1);
  const auto stream = f.connect();
  f.send_pipeline(stream, 1, executor::ExecutorKind::kNative, pictures.specification(8));
  transport::ArenaSlot all = f.arena->try_allocate(f.arena->bytes());
  f.request(stream, 1, {0});
  f.request(stream, 2, {0});
  f.cancel(stream, 2);
  f.cancel(stream, 99);
  all = {};
  CHECK(stream->wait_answers(2).back() == 2);
  CHECK_THAT(stream->wait(Header::kFailure).header.failure().message(), Catch::Contains("no longer wanted"));
  CHECK(f.all_memory_comes_back());
}

TEST_CASE("a feeder that goes takes its requests along; another one's are made") {
  const PictureFolder pictures(4);
  Fixture f(1);
  const auto gone = f.connect(), stays = f.connect();
  for (const auto& stream : {gone, stays})
    f.send_pipeline(stream, 1, executor::ExecutorKind::kNative, pictures.specification(8));
  transport::ArenaSlot all = f.arena->try_allocate(f.arena->bytes());
  for (std::uint64_t id = 1; id <= 2; ++id) {
    f.request(gone, id, {0});
    f.request(stays, 10 + id, {0});
  }
  f.service.closed(gone);
  f.service.closed(gone);  // a second time changes nothing
  f.request(gone, 3, {0});
  all = {};
  CHECK(stays->wait_answers(2) == std::vector<std::uint64_t>{11, 12});
  CHECK(f.all_memory_comes_back());
}

TEST_CASE("a draining worker finishes what it has, then ends each stream; newcomers are sent away") {
  const PictureFolder pictures(4);
  Fixture f(1);
  const auto busy = f.connect(), idle = f.connect();
  f.send_pipeline(busy, 1, executor::ExecutorKind::kNative, pictures.specification(8));
  transport::ArenaSlot all = f.arena->try_allocate(f.arena->bytes());
  f.request(busy, 1, {0, 1});
  f.request(busy, 2, {2, 3});
  f.service.drain();
  CHECK(f.service.draining());
  busy->wait(Header::kDraining);
  idle->wait(Header::kDraining);
  CHECK(idle->finished());
  CHECK(!busy->finished());
  CHECK(!f.service.wait_until_idle(std::chrono::steady_clock::now()));
  all = {};
  CHECK(busy->wait_answers(2) == std::vector<std::uint64_t>{1, 2});
  CHECK(busy->wait_finished());
  const auto late = f.connect();
  late->wait(Header::kDraining);
  CHECK(late->finished());
  f.request(busy, 3, {0});  // crossed our Draining: the end of the stream is its answer
  for (const auto& stream : {busy, idle}) f.service.closed(stream);
  CHECK(f.service.wait_until_idle(std::chrono::steady_clock::now() + std::chrono::seconds(60)));
  CHECK(busy->wait_answers(2).size() == 2);
}

TEST_CASE("what is not read stays in the arena, and no more than that is made") {
  const PictureFolder pictures(4);
  Fixture f(1, /*arena_bytes=*/std::size_t{3} << 20);
  const auto stream = f.connect();
  f.send_pipeline(stream, 1, executor::ExecutorKind::kNative, pictures.specification(500));  // 750 KB a sample
  stream->set_reads(false);
  f.request(stream, 1, {0, 1, 2, 3, 0, 1, 2, 3});
  for (std::size_t n = 1; n <= 4; ++n) stream->wait(Header::kChunk, n);
  CHECK(f.arena->free_bytes() < (std::size_t{1} << 20));
  stream->set_reads(true);
  CHECK(stream->wait_answers(1) == std::vector<std::uint64_t>{1});
  CHECK(f.all_memory_comes_back());
}

TEST_CASE("no more feeders than the bound; one that goes makes room") {
  Fixture f;
  std::vector<std::shared_ptr<FakeStream>> streams;
  for (std::size_t i = 0; i < WorkerService::kStreamsMax; ++i) streams.push_back(f.connect());
  CHECK(!streams.back()->finished());
  CHECK(f.connect()->finished());
  f.service.closed(streams.front());
  CHECK(!f.connect()->finished());
}

TEST_CASE("the queue's gauge falls to nothing when all is answered") {
  const PictureFolder pictures(4);
  Fixture f(1);
  const auto stream = f.connect();
  f.send_pipeline(stream, 1, executor::ExecutorKind::kNative, pictures.specification(8));
  for (std::uint64_t id = 1; id <= 2; ++id) f.request(stream, id, {0});
  stream->wait_answers(2);
  const std::string want =
      R"(sluice_worker_queue_depth{job_namespace="namespace",training_job="job",placement="remote"} 0)";
  CHECK(testing::eventually([&] { return testing::metrics_lines(f.registry).contains(want); }));
}

TEST_CASE("a worker knows since when no feeder has been connected") {
  Fixture f;
  const auto first = f.connect(), second = f.connect();
  CHECK_FALSE(f.service.unused_since());  // though they ask for nothing
  f.service.closed(first);
  f.service.closed(second);
  CHECK(f.service.unused_since());
}

}  // namespace
}  // namespace sluice::worker
