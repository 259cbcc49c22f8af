// A worker behind its protocol without a network: a stream that keeps what is sent stands in for a feeder.
#pragma once

#include <condition_variable>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "src/base/testing/catch.h"
#include "src/executor/testing/metrics_text.h"
#include "src/transport/worker_forms.h"
#include "worker-image/testing/eventually.h"
#include "worker-image/worker/worker_service.h"

namespace sluice::testing {

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

// A worker service in memory, and what a feeder says to it.
struct WorkerFixture {
  explicit WorkerFixture(std::size_t threads = 1, std::size_t arena_bytes = std::size_t{4} << 20,
                         std::shared_ptr<const pipeline::FileReader> files = nullptr)
      : arena(*transport::Arena::create(arena_bytes)),
        service({.threads = threads,
                 .arena = arena,
                 .python_path = std::filesystem::absolute("src/executor/testing/python").string(),
                 .files = std::move(files)},
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
                     const std::string& blob, std::size_t first_bytes = std::string::npos) {
    Header header;
    auto* message = header.mutable_pipeline();
    message->set_id(id);
    message->set_fingerprint(executor::pipeline_fingerprint(kind, blob));
    message->set_executor(std::string(to_string(kind)));
    message->set_python("/usr/bin/python3");
    message->set_num_workers(2);
    message->set_protocol(transport::kProtocolVersion);
    message->set_bytes(blob.size());
    say(stream, header, blob.substr(0, first_bytes));
    if (first_bytes < blob.size()) send_part(stream, id, blob.substr(first_bytes));
  }

  void send_part(const std::shared_ptr<FakeStream>& stream, std::uint64_t id, const std::string& piece) {
    Header header;
    header.mutable_pipeline_part()->set_id(id);
    say(stream, header, piece);
  }

  void request(const std::shared_ptr<FakeStream>& stream, std::uint64_t id, const std::vector<std::int64_t>& indices,
               std::uint64_t pipeline = 1, std::uint64_t state = 0) {
    Header header;
    auto* message = header.mutable_request();
    message->set_state(state);
    message->set_id(id);
    message->set_pipeline(pipeline);
    message->mutable_batch()->mutable_indices()->Add(indices.begin(), indices.end());
    say(stream, header);
  }

  void send_state(const std::shared_ptr<FakeStream>& stream, std::uint64_t id, const std::string& blob) {
    Header header;
    header.mutable_state()->set_id(id);
    say(stream, header, blob);
  }

  void forget_state(const std::shared_ptr<FakeStream>& stream, std::uint64_t id) {
    Header header;
    header.mutable_forget()->add_states(id);
    say(stream, header);
  }

  void forget_pass(const std::shared_ptr<FakeStream>& stream, std::uint64_t pass) {
    Header header;
    header.mutable_forget()->add_passes(pass);
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
  worker::WorkerService service;
};

inline std::string python_blob(const std::string& behaviour) { return R"({"behaviour": ")" + behaviour + R"("})"; }

}  // namespace sluice::testing
