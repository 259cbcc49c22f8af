#include "src/transport/local_message.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "src/base/json_reader.h"

namespace sluice::transport {
namespace {

using nlohmann::json;

constexpr std::size_t kTensorsMax = 65536;

// Invalid UTF-8 in an error text must not cost us the message.
std::string dump(const json& object) { return object.dump(-1, ' ', false, json::error_handler_t::replace); }

json tensors_json(const std::vector<TensorDescription>& tensors) {
  json list = json::array();
  for (const TensorDescription& tensor : tensors) {
    list.push_back(
        {{"dtype", tensor.dtype}, {"shape", tensor.shape}, {"offset", tensor.offset}, {"nbytes", tensor.nbytes}});
  }
  return list;
}

// ---- one read() for each message: the fields it has ----

void read(JsonReader& reader, HelloMessage& message) {
  reader.required("protocol", message.protocol);
  reader.optional("rank", message.rank);
  reader.optional("world_size", message.world_size);
  reader.optional("pid", message.pid);
}

void read(JsonReader& reader, PipelineMessage& message) {
  reader.required("id", message.id);
  reader.required("executor", message.executor);
  reader.optional("python", message.python);
  reader.optional("num_workers", message.num_workers);
  reader.optional("prefetch_batches", message.prefetch_batches);
  reader.optional("batch_bytes_hint", message.batch_bytes_hint);
  if (message.executor != "native" && message.executor != "python") {
    reader.fail("executor", "must be native or python, not '" + message.executor + "'");
  }
  if (message.executor == "python" && message.python.empty()) reader.fail("python", "must name the interpreter");
}

EpochOrder read_order(JsonReader& open, const json& value) {
  EpochOrder order;
  JsonReader reader(value, "open.order");
  reader.required("seed", order.seed);
  reader.required("length", order.length);
  reader.optional("rank", order.rank);
  reader.optional("ranks", order.ranks);
  reader.optional("drops_last", order.drops_last);
  reader.optional("is_next", order.is_next);
  if (const auto& error = reader.error()) open.fail(*error);
  return order;
}

void read(JsonReader& reader, OpenMessage& message) {
  reader.required("stream", message.stream);
  reader.required("pipeline", message.pipeline);
  reader.required("base_seed", message.base_seed);
  reader.required("epoch", message.epoch);
  reader.optional("virtual_workers", message.virtual_workers);
  reader.optional("portable", message.portable);
  if (const json* order = reader.find("order"); order != nullptr && !order->is_null())
    message.order = read_order(reader, *order);
}

void read(JsonReader& reader, RequestMessage& message) {
  reader.required("stream", message.stream);
  reader.required("seq", message.batch.seq);
  reader.required("position", message.batch.position);
  reader.required("indices", message.batch.indices);
}

void read(JsonReader& reader, ReleaseMessage& message) { reader.required("slots", message.slots); }

void read(JsonReader& reader, ProgressMessage& message) {
  reader.required("stream", message.stream);
  reader.required("batches", message.batches);
  reader.required("samples", message.samples);
  reader.required("compute_seconds", message.compute_seconds);
  reader.required("wait_seconds", message.wait_seconds);
  reader.optional("queue_depth", message.queue_depth);
  reader.optional("queue_capacity", message.queue_capacity);
  reader.optional("epoch", message.epoch);
  reader.optional("remaining_samples", message.remaining_samples);
  reader.optional("skipped_samples", message.skipped_samples);
}

void read(JsonReader& reader, CloseMessage& message) {
  reader.required("stream", message.stream);
  reader.optional("ends_executors", message.ends_executors);
}

void read(JsonReader& reader, ForgetMessage& message) { reader.required("pipeline", message.pipeline); }

void read(JsonReader& reader, LoadedMessage& message) { reader.required("pipeline", message.pipeline); }

void read(JsonReader& reader, ForkedMessage& message) { reader.required("pid", message.pid); }

void read(JsonReader& reader, ReapedMessage& message) { reader.required("status", message.status); }

void read(JsonReader& reader, AllocMessage& message) {
  reader.required("id", message.id);
  reader.required("bytes", message.bytes);
}

void read(JsonReader& reader, TensorDescription& tensor) {
  reader.required("dtype", tensor.dtype);
  reader.required("shape", tensor.shape);
  reader.required("offset", tensor.offset);
  reader.required("nbytes", tensor.nbytes);
}

void read_ops(JsonReader& reader, std::vector<OpCost>& ops) {
  const json* list = reader.find("ops");
  if (list == nullptr) return;
  const std::string want = "must be a list of at most " + std::to_string(kOpCostsMax) + " lists [op, seconds, bytes]";
  if (!list->is_array() || list->size() > kOpCostsMax) return reader.fail("ops", want);
  for (const json& entry : *list) {
    if (!entry.is_array() || entry.size() != 3 || !entry[0].is_string() || !entry[1].is_number() ||
        !entry[2].is_number_unsigned())
      return reader.fail("ops", want);
    ops.push_back({entry[0].get<std::string>(), entry[1].get<double>(), entry[2].get<std::uint64_t>()});
  }
}

json ops_json(const std::vector<OpCost>& ops) {
  json list = json::array();
  for (const OpCost& cost : ops) list.push_back({cost.op, cost.seconds, cost.bytes});
  return list;
}

void read(JsonReader& reader, CallReport& report) {
  reader.required("function", report.function);
  reader.optional("calls", report.calls);
  reader.optional("call_seconds", report.call_seconds);
  reader.optional("cold_calls", report.cold_calls);
  reader.optional("cold_seconds", report.cold_seconds);
  reader.optional("hits", report.hits);
  reader.optional("hit_seconds", report.hit_seconds);
  reader.optional("hit_bytes", report.hit_bytes);
  reader.optional("stores", report.stores);
  reader.optional("store_seconds", report.store_seconds);
  reader.optional("damaged", report.damaged);
  reader.optional("late", report.late);
}

// The objects of a list of `done`.
template <typename Entry>
void read_list(JsonReader& reader, const std::string& name, std::size_t entries_max, std::vector<Entry>& entries) {
  const json* list = reader.find(name.c_str());
  if (list == nullptr || !list->is_array() || list->size() > entries_max)
    return reader.fail(name, "must be a list of at most " + std::to_string(entries_max));
  for (const json& entry : *list) {
    JsonReader part(entry, "done." + name + "[" + std::to_string(entries.size()) + "]");
    read(part, entries.emplace_back());
    if (part.error()) return reader.fail(*part.error());
  }
}

json kept_json(const std::vector<KeptCost>& kept) {
  json list = json::array();
  for (const KeptCost& cost : kept)
    list.push_back({cost.function, cost.calls, cost.hits, cost.saved_seconds, cost.bytes});
  return list;
}

void read(JsonReader& reader, FindMessage& message) {
  reader.required("id", message.id);
  reader.required("function", message.call.function);
  reader.required("version", message.call.version);
  reader.optional("files", message.call.files);
  const auto longer = [](std::size_t max) { return [max](const std::string& text) { return text.size() > max; }; };
  if (longer(kFunctionBytesMax)(message.call.function)) reader.fail("function", "is too long");
  if (longer(kFunctionVersionBytesMax)(message.call.version)) reader.fail("version", "is too long");
  const auto& files = message.call.files;
  if (files.size() > kFilesPerCallMax || std::any_of(files.begin(), files.end(), longer(kFilePathBytesMax)))
    reader.fail("files", "must be a list of at most " + std::to_string(kFilesPerCallMax) + " paths");
}

void read(JsonReader& reader, KeepMessage& message) { reader.required("id", message.id); }

void read(JsonReader& reader, DoneMessage& message) {
  reader.required("id", message.id);
  reader.required("seconds", message.seconds);
  reader.optional("blocked_seconds", message.blocked_seconds);
  reader.optional("from_memory", message.from_memory);
  read_ops(reader, message.ops);
  if (reader.find("kept") != nullptr) read_list(reader, "kept", kKeptFunctionsMax, message.kept);
  read_list(reader, "tensors", kTensorsMax, message.tensors);
}

void read(JsonReader& reader, ChildErrorMessage& message) {
  message.failure.exception_type = "RuntimeError";
  reader.optional("id", message.id);
  reader.optional("pipeline", message.pipeline);
  reader.optional("exception_type", message.failure.exception_type);
  reader.optional("message", message.failure.message);
  reader.optional("traceback", message.failure.traceback);
}

// ---- which message it is ----

template <typename AnyMessage>
struct Parser {
  std::string_view type;
  Result<AnyMessage> (*parse)(JsonReader&);
};

template <typename AnyMessage, typename Message>
Result<AnyMessage> parse_as(JsonReader& reader) {
  Message message;
  read(reader, message);
  if (reader.error()) return *reader.error();
  return AnyMessage(std::move(message));
}

template <typename AnyMessage, std::size_t kCount>
Result<AnyMessage> parse_message(std::string_view text, const Parser<AnyMessage> (&parsers)[kCount]) {
  const json object = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return invalid_argument("frame: the JSON part is not an object");
  std::string type;
  JsonReader frame(object, "frame");
  frame.required("type", type);
  if (frame.error()) return *frame.error();
  for (const Parser<AnyMessage>& parser : parsers) {
    if (parser.type != type) continue;
    JsonReader reader(object, type);
    return parser.parse(reader);
  }
  return invalid_argument("frame.type: unknown type '" + type.substr(0, 64) + "'");
}

}  // namespace

Result<ClientMessage> parse_client_message(std::string_view text) {
  using Any = ClientMessage;
  static constexpr Parser<Any> kParsers[] = {
      {"request", parse_as<Any, RequestMessage>},   {"release", parse_as<Any, ReleaseMessage>},
      {"progress", parse_as<Any, ProgressMessage>}, {"open", parse_as<Any, OpenMessage>},
      {"close", parse_as<Any, CloseMessage>},       {"hello", parse_as<Any, HelloMessage>},
      {"pipeline", parse_as<Any, PipelineMessage>}, {"forget", parse_as<Any, ForgetMessage>},
  };
  return parse_message(text, kParsers);
}

Result<ChildMessage> parse_child_message(std::string_view text) {
  using Any = ChildMessage;
  static constexpr Parser<Any> kParsers[] = {
      {"done", parse_as<Any, DoneMessage>},     {"alloc", parse_as<Any, AllocMessage>},
      {"find", parse_as<Any, FindMessage>},     {"keep", parse_as<Any, KeepMessage>},
      {"loaded", parse_as<Any, LoadedMessage>}, {"forked", parse_as<Any, ForkedMessage>},
      {"reaped", parse_as<Any, ReapedMessage>}, {"error", parse_as<Any, ChildErrorMessage>},
  };
  return parse_message(text, kParsers);
}

std::string welcome_json(std::size_t arena_bytes, std::string_view session, bool takes_orders) {
  json welcome{{"type", "welcome"}, {"protocol", kLocalProtocol}, {"arena_bytes", arena_bytes}, {"session", session}};
  if (takes_orders) welcome["takes_orders"] = true;
  return dump(welcome);
}

std::string ready_json(std::uint64_t pipeline, std::string_view fingerprint) {
  return dump({{"type", "ready"}, {"pipeline", pipeline}, {"fingerprint", fingerprint}});
}

std::string not_ready_json(std::uint64_t pipeline, std::string_view error) {
  return dump({{"type", "ready"}, {"pipeline", pipeline}, {"error", error}});
}

std::string window_json(std::size_t batches) { return dump({{"type", "window"}, {"batches", batches}}); }

std::string closed_json(std::uint64_t stream) { return dump({{"type", "closed"}, {"stream", stream}}); }

std::string to_json(const BatchMessage& message) {
  json object{{"type", "batch"},
              {"stream", message.stream},
              {"seq", message.seq},
              {"slot", message.slot},
              {"copy", message.copy},
              {"tensors", tensors_json(message.tensors)},
              {"seconds", message.seconds},
              {"placement", message.placement}};
  if (!message.ops.empty()) object["ops"] = ops_json(message.ops);
  if (message.blocked_seconds) object["blocked_seconds"] = *message.blocked_seconds;
  if (message.holds_files) object["holds_files"] = true;
  if (!message.kept.empty()) object["kept"] = kept_json(message.kept);
  if (message.from_memory) object["from_memory"] = true;
  return dump(object);
}

std::string to_json(const ErrorMessage& message) {
  json object{{"type", "error"},
              {"exception_type", message.failure.exception_type},
              {"message", message.failure.message},
              {"traceback", message.failure.traceback}};
  if (message.stream) object["stream"] = *message.stream;
  if (message.seq) object["seq"] = *message.seq;
  if (message.pipeline) object["pipeline"] = *message.pipeline;
  return dump(object);
}

std::string load_json(std::uint64_t pipeline, bool keeps_results) {
  json load{{"type", "load"}, {"pipeline", pipeline}};
  if (keeps_results) load["keeps_results"] = true;
  return dump(load);
}

std::string fork_json() { return dump({{"type", "fork"}}); }

std::string reap_json(std::int64_t pid) { return dump({{"type", "reap"}, {"pid", pid}}); }

std::string state_json(std::uint64_t pipeline) { return dump({{"type", "state"}, {"pipeline", pipeline}}); }

std::string to_json(const ExecuteMessage& message) {
  return dump({{"type", "execute"},
               {"id", message.id},
               {"pipeline", message.pipeline},
               {"seq", message.batch->seq},
               {"base_seed", message.batch->base_seed},
               {"epoch", message.batch->epoch},
               {"position", message.batch->position},
               {"indices", message.batch->indices},
               {"worker_id", message.worker_id},
               {"num_workers", message.num_workers}});
}

std::string slot_json(std::uint64_t id, std::uint64_t offset) {
  return dump({{"type", "slot"}, {"id", id}, {"offset", offset}});
}

std::string no_slot_json(std::uint64_t id, std::string_view error) {
  return dump({{"type", "slot"}, {"id", id}, {"error", error}});
}

std::string to_json(const FoundMessage& message) {
  return dump({{"type", "found"},
               {"id", message.id},
               {"is_found", message.is_found},
               {"keeps", message.keeps},
               {"rest", message.rest},
               {"seconds", message.seconds}});
}

}  // namespace sluice::transport
