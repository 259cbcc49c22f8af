#include "worker-image/testing/test_client.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <thread>

namespace sluice::testing {
namespace {

using transport::FrameSocket;
using transport::UniqueFd;

constexpr std::chrono::milliseconds kLookInterval{2};

FrameSocket::Deadline patience() { return std::chrono::steady_clock::now() + std::chrono::seconds(60); }

UniqueFd connect_to(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
  const auto deadline = patience();
  while (std::chrono::steady_clock::now() < deadline) {
    UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) return fd;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  throw std::runtime_error("no feeder listens on " + path);
}

}  // namespace

bool same_bytes(const std::vector<ReceivedBatch>& a, const std::vector<ReceivedBatch>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const auto& x, const auto& y) { return x.tensors == y.tensors; });
}

TestClient::TestClient(const std::string& socket_path, int rank)
    : socket_(std::make_unique<FrameSocket>(connect_to(socket_path))) {
  send({{"type", "hello"}, {"protocol", 2}, {"rank", rank}, {"world_size", 1}, {"pid", 1}});
  welcome_ = receive_any().json;
  if (welcome_["type"] != "welcome") throw std::runtime_error("expected welcome, got " + welcome_.dump());
  const UniqueFd arena = socket_->take_passed_fd();
  arena_bytes_ = welcome_["arena_bytes"];
  void* data = ::mmap(nullptr, arena_bytes_, PROT_READ, MAP_SHARED, arena.get(), 0);
  if (data == MAP_FAILED) throw std::runtime_error("the arena cannot be mapped");
  arena_ = static_cast<const char*>(data);
}

TestClient::~TestClient() {
  if (arena_ != nullptr) ::munmap(const_cast<char*>(arena_), arena_bytes_);
}

void TestClient::send(const nlohmann::json& message, std::string_view blob,
                      const transport::SealedMemoryHandle& memory) {
  if (!socket_->send(message.dump(), blob, patience(), memory ? memory->fd() : -1).ok())
    throw std::runtime_error("the feeder is gone");
}

void TestClient::send_bytes(std::string_view bytes) {
  (void)!::send(socket_->fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
}

TestClient::Message TestClient::receive_any(const std::function<void()>& on_wait) {
  const FrameSocket::Deadline deadline = patience();
  while (true) {
    auto frame = socket_->receive(on_wait ? std::chrono::steady_clock::now() + kLookInterval : deadline);
    if (frame.ok()) return {nlohmann::json::parse(frame->json), std::move(frame->blob)};
    const bool late = frame.error().code() == ErrorCode::kDeadlineExceeded;
    if (!on_wait || !late || std::chrono::steady_clock::now() > deadline)
      throw std::runtime_error(frame.error().to_string());
    on_wait();
  }
}

TestClient::Message TestClient::receive(const std::function<void()>& on_wait) {
  while (true) {
    Message message = receive_any(on_wait);
    if (message.json["type"] != "window") return message;
    window_ = message.json["batches"];
  }
}

bool TestClient::disconnected() {
  while (true) {
    const auto frame = socket_->receive(patience());
    if (!frame.ok()) return frame.error().code() == ErrorCode::kUnavailable;
  }
}

nlohmann::json TestClient::open(const std::string& executor, const std::string& blob, std::uint64_t stream) {
  send({{"type", "pipeline"},
        {"id", 1},
        {"executor", executor},
        {"python", "/usr/bin/python3"},
        {"num_workers", kNumWorkers}},
       "", *transport::SealedMemory::copy_of(blob));
  const nlohmann::json ready = receive().json;
  if (ready.contains("fingerprint")) {
    send({{"type", "open"}, {"stream", stream}, {"pipeline", 1}, {"base_seed", 42}, {"epoch", 0}});
  }
  return ready;
}

void TestClient::request(std::uint64_t seq, const std::vector<std::int64_t>& indices, std::uint64_t stream) {
  send({{"type", "request"},
        {"stream", stream},
        {"seq", seq},
        {"position", seq * indices.size()},
        {"indices", indices}});
}

ReceivedBatch TestClient::take_batch(const Message& message, bool release) {
  ReceivedBatch batch;
  for (const auto& tensor : message.json["tensors"]) {
    const std::size_t offset = tensor["offset"], nbytes = tensor["nbytes"];
    if (offset % 64 != 0 || offset > arena_bytes_ || nbytes > arena_bytes_ - offset)
      throw std::runtime_error("bad tensor " + tensor.dump());
    batch.tensors.emplace_back(arena_ + offset, nbytes);
  }
  batch.structure = message.blob;
  batch.placement = message.json["placement"];
  batch.copy = message.json["copy"];
  batch.slot = message.json["slot"];
  for (const auto& cost : message.json.value("ops", nlohmann::json::array())) {
    batch.op_bytes[cost.at(0)] += cost.at(2).get<std::uint64_t>();
    if (cost.at(1) < 0) throw std::runtime_error("less than no time: " + cost.dump());
  }
  if (release) send({{"type", "release"}, {"slots", {batch.slot}}});
  return batch;
}

std::vector<ReceivedBatch> TestClient::run(std::size_t count, std::size_t batch, std::size_t samples,
                                           const std::function<void(std::size_t)>& on_batch,
                                           const std::function<void()>& on_wait) {
  std::map<std::uint64_t, ReceivedBatch> received;
  std::size_t sent = 0;
  while (received.size() < count) {
    for (; sent < count && sent - received.size() < std::max<std::size_t>(2, window_); ++sent) {
      std::vector<std::int64_t> indices;
      for (std::size_t i = 0; i < batch; ++i)
        indices.push_back(static_cast<std::int64_t>((sent * batch + i) % samples));
      request(sent, indices);
    }
    const Message message = receive(on_wait);
    if (message.json["type"] != "batch") throw std::runtime_error("expected a batch, got " + message.json.dump());
    if (!received.emplace(message.json["seq"], take_batch(message)).second)
      throw std::runtime_error("a batch came twice");
    if (on_batch) on_batch(received.size());
  }
  std::vector<ReceivedBatch> in_order;
  for (auto& [seq, one] : received) in_order.push_back(std::move(one));
  return in_order;
}

}  // namespace sluice::testing
