// A client of the local protocol for tests: what python/sluice does, without the training loop.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "src/transport/frame.h"
#include "src/transport/sealed_memory.h"

namespace sluice::testing {

// A batch's bytes, tensor by tensor, and where it came from.
struct ReceivedBatch {
  std::vector<std::string> tensors;
  std::string structure;
  std::string placement;
  bool copy = false;
  std::uint64_t slot = 0;
  std::map<std::string, std::uint64_t> op_bytes;  // what each operation is said to have made
};

bool same_bytes(const std::vector<ReceivedBatch>& a, const std::vector<ReceivedBatch>& b);

// Throws std::runtime_error when the feeder does not answer within a minute: the test fails there.
// Thread safety: none.
class TestClient {
 public:
  static constexpr std::size_t kNumWorkers = 2;  // of its pipelines

  // Connects (waiting for the socket to appear) and says hello.
  explicit TestClient(const std::string& socket_path, int rank = 0);
  ~TestClient();

  // With `memory`, a descriptor of it travels along.
  void send(const nlohmann::json& message, std::string_view blob = {},
            const transport::SealedMemoryHandle& memory = nullptr);
  void send_bytes(std::string_view bytes);

  // The next message that is not `window` (those are noted).
  struct Message {
    nlohmann::json json;
    std::string blob;
  };
  Message receive(const std::function<void()>& on_wait = nullptr);
  // True if the feeder closes the connection next, whatever it says before.
  bool disconnected();

  // Registers a pipeline as number 1 and opens stream `stream` on it. Returns the `ready` message.
  nlohmann::json open(const std::string& executor, const std::string& blob, std::uint64_t stream = 1);
  void request(std::uint64_t seq, const std::vector<std::int64_t>& indices, std::uint64_t stream = 1);
  // Copies the bytes out of the arena; with `release`, gives the slot back.
  ReceivedBatch take_batch(const Message& message, bool release = true);

  // Requests batches 0..count-1 of `batch` consecutive indices (modulo `samples`), as many at once as the window
  // allows, and returns them in order. `on_batch` runs after each, `on_wait` while there is nothing to receive. An
  // error message, or a batch that comes twice, ends the run with an exception.
  std::vector<ReceivedBatch> run(std::size_t count, std::size_t batch, std::size_t samples,
                                 const std::function<void(std::size_t)>& on_batch = nullptr,
                                 const std::function<void()>& on_wait = nullptr);

  std::size_t window() const { return window_; }
  const nlohmann::json& welcome() const { return welcome_; }

 private:
  Message receive_any(const std::function<void()>& on_wait = nullptr);

  std::unique_ptr<transport::FrameSocket> socket_;
  nlohmann::json welcome_;
  const char* arena_ = nullptr;
  std::size_t arena_bytes_ = 0;
  std::size_t window_ = 0;
};

}  // namespace sluice::testing
