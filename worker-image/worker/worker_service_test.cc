// The worker behind its protocol: credits, cancelled batches, lost and draining feeders, pipelines that cannot be run.
// No network: a stream that keeps what is sent stands in for a feeder.
#include "worker-image/worker/worker_service.h"

#include <fstream>

#include "src/base/testing/catch.h"
#include "src/executor/testing/metrics_text.h"
#include "worker-image/testing/eventually.h"
#include "worker-image/testing/picture_folder.h"

namespace sluice::worker {
namespace {

using testing::PictureFolder;
using v1::Header;

// Keeps every message, and the memory behind its payload until it is told that the feeder has read.
class FakeStream final : public transport::RemoteStream {
 public:
  struct Message {
    Header header;
    std::string payload;
    std::shared_ptr<const void> owner;
  };

  void send(const Header& header, std::span<const std::byte> payload, std::shared_ptr<const void> owner) override {
    std::lock_guard lock(mutex_);
    messages_.push_back(
        {header, {reinterpret_cast<const char*>(payload.data()), payload.size()}, reads_ ? nullptr : std::move(owner)});
    changed_.notify_all();
  }
  void finish() override {
    std::lock_guard lock(mutex_);
    finished_ = true;
    changed_.notify_all();
  }

  // The n-th message of `kind`; waits a minute for it.
  Message wait(Header::BodyCase kind, std::size_t n = 1) {
    std::unique_lock lock(mutex_);
    const auto nth = [&] {
      std::size_t count = 0;
      return std::find_if(messages_.begin(), messages_.end(),
                          [&](const Message& m) { return m.header.body_case() == kind && ++count == n; });
    };
    REQUIRE(changed_.wait_for(lock, std::chrono::seconds(60), [&] { return nth() != messages_.end(); }));
    return *nth();
  }
  // Waits for `count` answers (last chunks and failures); their ids in order.
  std::vector<std::uint64_t> wait_answers(std::size_t count) {
    std::unique_lock lock(mutex_);
    REQUIRE(changed_.wait_for(lock, std::chrono::seconds(60), [&] { return answers_locked().size() >= count; }));
    return answers_locked();
  }
  bool wait_finished() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(60), [&] { return finished_; });
  }
  bool finished() {
    std::lock_guard lock(mutex_);
    return finished_;
  }
  // From here on it reads nothing, or everything, also what it had not.
  void set_reads(bool reads) {
    std::lock_guard lock(mutex_);
    reads_ = reads;
    if (!reads) return;
    for (Message& message : messages_) message.owner = nullptr;
  }

 private:
  std::vector<std::uint64_t> answers_locked() const {
    std::vector<std::uint64_t> ids;
    for (const Message& m : messages_) {
      if (m.header.has_failure()) ids.push_back(m.header.failure().id());
      if (m.header.has_chunk() && m.header.chunk().last()) ids.push_back(m.header.chunk().id());
    }
    return ids;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Message> messages_;
  bool reads_ = true;
  bool finished_ = false;
};

struct Fixture {
  explicit Fixture(std::size_t threads = 1, std::size_t arena_bytes = std::size_t{4} << 20)
      : arena(*transport::Arena::create(arena_bytes)),
        service({.threads = threads,
                 .arena = arena,
                 .python_path = std::filesystem::absolute("src/executor/testing/python").string()},
                metrics) {}

  std::shared_ptr<FakeStream> connect() {
    auto stream = std::make_shared<FakeStream>();
    service.opened(stream);
    return stream;
  }

  void say(const std::shared_ptr<FakeStream>& stream, Header header, const std::string& payload = "") {
    const auto bytes = std::make_shared<const std::string>(payload);
    service.received(
        stream, std::move(header),
        transport::Payload({{reinterpret_cast<const std::uint8_t*>(bytes->data()), bytes->size()}}, bytes));
  }

  void send_pipeline(const std::shared_ptr<FakeStream>& stream, std::uint64_t id, executor::ExecutorKind kind,
                     const std::string& blob) {
    Header header;
    auto* message = header.mutable_pipeline();
    message->set_id(id);
    message->set_fingerprint(executor::pipeline_fingerprint(kind, blob));
    message->set_executor(std::string(to_string(kind)));
    message->set_python("/usr/bin/python3");
    message->set_num_workers(2);
    say(stream, header, blob);
  }

  void request(const std::shared_ptr<FakeStream>& stream, std::uint64_t id, const std::vector<std::int64_t>& indices,
               std::uint64_t pipeline = 1) {
    Header header;
    auto* message = header.mutable_request();
    message->set_id(id);
    message->set_pipeline(pipeline);
    message->mutable_indices()->Add(indices.begin(), indices.end());
    say(stream, header);
  }

  void cancel(const std::shared_ptr<FakeStream>& stream, std::uint64_t id) {
    Header header;
    header.mutable_cancel()->set_id(id);
    say(stream, header);
  }

  // Threads let go of their memory after the answer.
  bool all_memory_comes_back() {
    return testing::eventually([&] { return arena->free_bytes() == arena->bytes(); });
  }

  prometheus::Registry registry;
  executor::ExecutorMetrics metrics{registry, {"job", "namespace"}, "remote"};
  std::shared_ptr<transport::Arena> arena;
  WorkerService service;
};

std::string python_blob(const std::string& behaviour) { return R"({"behaviour": ")" + behaviour + R"("})"; }

TEST_CASE("a feeder is greeted with threads and credits, and its batches are answered") {
  const PictureFolder pictures(4);
  Fixture f(3);
  const auto stream = f.connect();
  const Header hello = stream->wait(Header::kHello).header;
  CHECK(hello.hello().threads() == 3);
  CHECK(hello.hello().credits() == 6);
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

TEST_CASE("a pipeline that cannot be run is refused with the reason") {
  struct Case {
    const char* name;
    executor::ExecutorKind kind;
    std::string blob;
    bool damaged;
    const char* want;
  };
  const Case cases[] = {
      {"no specification", executor::ExecutorKind::kNative, "{", false, ""},
      {"damaged on the way", executor::ExecutorKind::kPython, python_blob("echo"), true, "arrived damaged"},
      {"the user's code cannot be imported", executor::ExecutorKind::kPython, python_blob("cannot load"), false,
       "no module"},
  };
  for (const Case& test : cases) {
    INFO(test.name);
    Fixture f;
    const auto stream = f.connect();
    if (test.damaged) {
      Header header;
      header.mutable_pipeline()->set_id(1);
      header.mutable_pipeline()->set_executor("python");
      header.mutable_pipeline()->set_fingerprint("of something else");
      f.say(stream, header, test.blob);
    } else {
      f.send_pipeline(stream, 1, test.kind, test.blob);
    }
    const Header answer = stream->wait(Header::kPipelineError).header;
    CHECK(answer.pipeline_error().id() == 1);
    CHECK_THAT(answer.pipeline_error().message(), Catch::Contains(test.want));
  }
}

TEST_CASE("whoever asks for more than the credits, or for what is not loaded, is refused; the rest is answered") {
  const PictureFolder pictures(4);
  Fixture f(1);
  const auto stream = f.connect();
  f.send_pipeline(stream, 1, executor::ExecutorKind::kNative, pictures.specification(8));
  stream->set_reads(false);
  // The thread waits for memory with the first: nothing is answered before all have been asked for.
  transport::ArenaSlot all = f.arena->try_allocate(f.arena->bytes());
  for (std::uint64_t id = 1; id <= 4; ++id) f.request(stream, id, {0, 1});
  f.request(stream, 5, {0}, /*pipeline=*/99);
  CHECK(stream->wait_answers(3) == std::vector<std::uint64_t>{3, 4, 5});
  CHECK(stream->wait(Header::kFailure, 1).header.failure().message() == "more requests than credits");
  CHECK(stream->wait(Header::kFailure, 3).header.failure().message() == "the pipeline is not loaded here");
  all = {};
  CHECK(stream->wait_answers(5) == std::vector<std::uint64_t>{3, 4, 5, 1, 2});
  // The answer freed its credit: the next request may come at once.
  f.request(stream, 6, {3});
  CHECK(stream->wait_answers(6).back() == 6);
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

}  // namespace
}  // namespace sluice::worker
