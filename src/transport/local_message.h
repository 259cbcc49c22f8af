// The messages of the local protocol as values (docs/designs/protocols.md section 4): the one place that knows their
// JSON. Parsing checks type and range of every field, so that a wrong peer is told the field and does no harm.
// Thread safety: values and pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "src/base/epoch_order.h"
#include "src/base/result.h"
#include "src/transport/batch.h"
#include "src/transport/function_call.h"

namespace sluice::transport {

inline constexpr int kLocalProtocol = 2;

// A failure for the user, to find it in their code: Python's exception, or Sluice's error in the same form. The pickled
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
  std::uint32_t virtual_workers = 0;  // that make its batches, each in their order; 0: any executor, in any order
  std::optional<EpochOrder> order;    // in which the samples of a native pipeline are used; none: not known
  bool portable = false;  // a request says all that its virtual worker has made before: any executor may take it up
};
// Of a stream with virtual workers the frame's blob may hold the batches that the virtual worker has made before.
struct RequestMessage {
  std::uint64_t stream = 0;
  BatchSpec batch;  // base_seed and epoch are the stream's and do not travel
};
struct ReleaseMessage {
  std::vector<std::uint64_t> slots;
};
struct ProgressMessage {
  std::uint64_t stream = 0;
  std::uint64_t batches = 0;
  std::uint64_t samples = 0;
  std::uint64_t skipped_samples = 0;  // of these, left out of their batches: their reading or transforming failed
  double compute_seconds = 0;
  double wait_seconds = 0;
  double queue_depth = 0;
  double queue_capacity = 0;
  double epoch = 0;
  std::optional<std::uint64_t> remaining_samples;  // that the training will still take; none: it does not say
};
struct CloseMessage {
  std::uint64_t stream = 0;
  // The Python processes of its pipeline end, unless another stream has it. The answer is `closed`.
  bool ends_executors = false;
};
struct ForgetMessage {
  std::uint64_t pipeline = 0;
};
using ClientMessage = std::variant<HelloMessage, PipelineMessage, OpenMessage, RequestMessage, ReleaseMessage,
                                   ProgressMessage, CloseMessage, ForgetMessage>;

// Errors: InvalidArgument "request.indices[3]: must be a whole number".
Result<ClientMessage> parse_client_message(std::string_view json);

// ---- feeder -> client ----
struct BatchMessage {
  std::uint64_t stream = 0;
  std::uint64_t seq = 0;
  std::uint64_t slot = 0;
  bool copy = false;
  std::vector<TensorDescription> tensors;  // offsets absolute in the arena
  double seconds = 0;                      // CPU of its executor, and what the feeder has spent on its tensors
  std::string_view placement;
  std::vector<OpCost> ops = {};                // of those seconds, by operation
  std::optional<double> blocked_seconds = {};  // as in DoneMessage, of any executor
  bool holds_files = false;                    // its process keeps files open that it has opened for batches
  std::vector<KeptCost> kept = {};             // of the functions whose results may be kept
  bool from_memory = false;                    // as in DoneMessage, of any executor
};
struct ErrorMessage {
  std::optional<std::uint64_t> stream;
  std::optional<std::uint64_t> seq;
  std::optional<std::uint64_t> pipeline;
  Failure failure;
};

// `takes_orders`: the orders of epochs are of use here.
std::string welcome_json(std::size_t arena_bytes, std::string_view session, bool takes_orders = false);
std::string ready_json(std::uint64_t pipeline, std::string_view fingerprint);
std::string not_ready_json(std::uint64_t pipeline, std::string_view error);
std::string window_json(std::size_t batches);
std::string closed_json(std::uint64_t stream);
std::string to_json(const BatchMessage& message);
std::string to_json(const ErrorMessage& message);

// ---- parent -> Python child ----
struct ExecuteMessage {
  std::uint64_t id = 0;
  std::uint64_t pipeline = 0;
  const BatchSpec* batch = nullptr;
  std::uint32_t worker_id = 0;
  std::uint32_t num_workers = 0;
};

// `keeps_results`: the child may ask for results of functions, and have them kept.
std::string load_json(std::uint64_t pipeline, bool keeps_results = false);
std::string fork_json();
std::string reap_json(std::int64_t pid);
std::string state_json(std::uint64_t pipeline);
std::string to_json(const ExecuteMessage& message);
std::string slot_json(std::uint64_t id, std::uint64_t offset);
std::string no_slot_json(std::uint64_t id, std::string_view error);

// The frame's blob is the result, if there is one.
struct FoundMessage {
  std::uint64_t id = 0;
  bool is_found = false;
  bool keeps = false;      // the child may send the result that it makes
  std::uint64_t rest = 0;  // so many calls of the function need no question
  double seconds = 0;      // that finding it took, by the clock
};
std::string to_json(const FoundMessage& message);

// ---- Python child -> parent ----
struct LoadedMessage {
  std::uint64_t pipeline = 0;
};
struct ForkedMessage {
  std::int64_t pid = 0;
};
struct ReapedMessage {
  std::int64_t status = 0;  // as waitpid gives it
};
struct AllocMessage {
  std::uint64_t id = 0;
  std::uint64_t bytes = 0;
};
struct DoneMessage {
  std::uint64_t id = 0;
  std::vector<TensorDescription> tensors;  // offsets relative to the slot
  double seconds = 0;                      // CPU
  std::optional<double> blocked_seconds;   // that making it neither ran nor waited for a CPU; none: not known
  std::vector<OpCost> ops;
  std::vector<CallReport> kept;  // of functions whose results may be kept
  bool from_memory = false;      // nothing was read for it; false: perhaps
};
// Is there a result of this call? The answer is `found`. The frame's blob is `call.arguments`.
struct FindMessage {
  std::uint64_t id = 0;
  FunctionCall call;
};
// The result of a call that was asked for under this number, as the frame's blob. No answer.
struct KeepMessage {
  std::uint64_t id = 0;
};
struct ChildErrorMessage {
  std::optional<std::uint64_t> id;
  std::optional<std::uint64_t> pipeline;
  Failure failure;
};
using ChildMessage = std::variant<LoadedMessage, ForkedMessage, ReapedMessage, AllocMessage, DoneMessage, FindMessage,
                                  KeepMessage, ChildErrorMessage>;

Result<ChildMessage> parse_child_message(std::string_view json);

}  // namespace sluice::transport
