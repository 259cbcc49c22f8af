// The messages of the local protocol as values (docs/designs/first-slice.md section 4): the one place that knows their
// JSON. Parsing checks type and range of every field, so that a wrong peer is told the field and harms nobody.
// Thread safety: values and pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "src/base/result.h"

namespace sluice::transport {

inline constexpr int kLocalProtocol = 1;

struct TensorDescription {
  std::string dtype;
  std::vector<std::int64_t> shape;
  std::uint64_t offset = 0;  // bytes; what it is relative to is the message's business
  std::uint64_t nbytes = 0;
};

// What a person needs to find a failure in their code: Python's exception, or ours in its clothes. The pickled
// exception, if there is one, travels as the frame's blob.
struct Failure {
  std::string exception_type;
  std::string message;
  std::string traceback;
};

// ---- client -> feeder ----
struct HelloMessage {
  int protocol = 0;
  std::int64_t rank = 0;
  std::int64_t world_size = 1;
  std::int64_t pid = 0;
};
struct PipelineMessage {
  std::uint64_t id = 0;
  std::string executor;  // "native" or "python"
  std::string python;    // the interpreter, for "python"
  std::uint32_t num_workers = 0;
  std::uint32_t prefetch_batches = 0;  // the client wants a window of at least this many
  std::uint64_t batch_bytes_hint = 0;
};
struct OpenMessage {
  std::uint64_t stream = 0;
  std::uint64_t pipeline = 0;
  std::uint64_t base_seed = 0;
  std::uint64_t epoch = 0;
};
struct RequestMessage {
  std::uint64_t stream = 0;
  std::uint64_t seq = 0;
  std::uint64_t position = 0;
  std::vector<std::int64_t> indices;
};
struct ReleaseMessage {
  std::vector<std::uint64_t> slots;
};
struct ProgressMessage {
  std::uint64_t stream = 0;
  std::uint64_t batches = 0;
  std::uint64_t samples = 0;
  double compute_seconds = 0;
  double wait_seconds = 0;
  double queue_depth = 0;
  double queue_capacity = 0;
  double epoch = 0;
};
struct CloseMessage {
  std::uint64_t stream = 0;
};
using ClientMessage = std::variant<HelloMessage, PipelineMessage, OpenMessage, RequestMessage, ReleaseMessage,
                                   ProgressMessage, CloseMessage>;

// Errors: InvalidArgument "request.indices[3]: must be a whole number".
Result<ClientMessage> parse_client_message(std::string_view json);

// ---- feeder -> client ----
struct BatchMessage {
  std::uint64_t stream = 0;
  std::uint64_t seq = 0;
  std::uint64_t slot = 0;
  bool copy = false;
  std::vector<TensorDescription> tensors;  // offsets absolute in the arena
  double seconds = 0;
  std::string_view placement;
};
struct ErrorMessage {
  std::optional<std::uint64_t> stream;
  std::optional<std::uint64_t> seq;
  std::optional<std::uint64_t> pipeline;
  Failure failure;
};

std::string welcome_json(std::size_t arena_bytes, std::string_view session);
std::string ready_json(std::uint64_t pipeline, std::string_view fingerprint);
std::string not_ready_json(std::uint64_t pipeline, std::string_view error);
std::string window_json(std::size_t batches);
std::string to_json(const BatchMessage& message);
std::string to_json(const ErrorMessage& message);

// ---- parent -> Python child ----
struct ExecuteMessage {
  std::uint64_t id = 0;
  std::uint64_t pipeline = 0;
  std::uint64_t stream = 0;
  std::uint64_t seq = 0;
  std::uint64_t base_seed = 0;
  std::uint64_t epoch = 0;
  std::uint64_t position = 0;
  const std::vector<std::int64_t>* indices = nullptr;
  std::uint32_t worker_id = 0;
  std::uint32_t num_workers = 0;
};

std::string load_json(std::uint64_t pipeline);
std::string to_json(const ExecuteMessage& message);
std::string slot_json(std::uint64_t id, std::uint64_t offset);
std::string no_slot_json(std::uint64_t id, std::string_view error);
std::string quit_json();

// ---- Python child -> parent ----
struct LoadedMessage {
  std::uint64_t pipeline = 0;
};
struct AllocMessage {
  std::uint64_t id = 0;
  std::uint64_t bytes = 0;
};
struct DoneMessage {
  std::uint64_t id = 0;
  std::vector<TensorDescription> tensors;  // offsets relative to the slot
  double seconds = 0;
};
struct ChildErrorMessage {
  std::optional<std::uint64_t> id;
  std::optional<std::uint64_t> pipeline;
  Failure failure;
};
using ChildMessage = std::variant<LoadedMessage, AllocMessage, DoneMessage, ChildErrorMessage>;

Result<ChildMessage> parse_child_message(std::string_view json);

}  // namespace sluice::transport
