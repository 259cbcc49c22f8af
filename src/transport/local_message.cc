#include "src/transport/local_message.h"

#include <nlohmann/json.hpp>

#include "src/transport/json_reader.h"

namespace sluice::transport {
namespace {

using nlohmann::json;

constexpr std::size_t kTensorsMax = 65536;

// Invalid UTF-8 in an error text must not cost us the message.
std::string dump(const json& object) { return object.dump(-1, ' ', false, json::error_handler_t::replace); }

template <typename Message>
Result<ClientMessage> checked(const JsonReader& reader, Message message) {
  if (reader.error()) return *reader.error();
  return ClientMessage(std::move(message));
}

json tensors_json(const std::vector<TensorDescription>& tensors) {
  json list = json::array();
  for (const TensorDescription& tensor : tensors) {
    list.push_back(
        {{"dtype", tensor.dtype}, {"shape", tensor.shape}, {"offset", tensor.offset}, {"nbytes", tensor.nbytes}});
  }
  return list;
}

Result<std::vector<TensorDescription>> parse_tensors(const json& object, const std::string& path) {
  const auto field = object.find("tensors");
  if (field == object.end() || !field->is_array() || field->size() > kTensorsMax) {
    return invalid_argument(path + ".tensors: must be a list of at most " + std::to_string(kTensorsMax));
  }
  std::vector<TensorDescription> tensors;
  for (const json& entry : *field) {
    JsonReader reader(entry, path + ".tensors[" + std::to_string(tensors.size()) + "]");
    TensorDescription tensor;
    reader.required("dtype", tensor.dtype);
    reader.required("shape", tensor.shape);
    reader.required("offset", tensor.offset);
    reader.required("nbytes", tensor.nbytes);
    if (reader.error()) return *reader.error();
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

void read_failure(JsonReader& reader, Failure& failure) {
  failure.exception_type = "RuntimeError";
  reader.optional("exception_type", failure.exception_type);
  reader.optional("message", failure.message);
  reader.optional("traceback", failure.traceback);
}

Result<ClientMessage> parse_hello(JsonReader& reader) {
  HelloMessage message;
  reader.required("protocol", message.protocol);
  reader.optional("rank", message.rank);
  reader.optional("world_size", message.world_size);
  reader.optional("pid", message.pid);
  return checked(reader, message);
}

Result<ClientMessage> parse_pipeline(JsonReader& reader) {
  PipelineMessage message;
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
  return checked(reader, std::move(message));
}

Result<ClientMessage> parse_open(JsonReader& reader) {
  OpenMessage message;
  reader.required("stream", message.stream);
  reader.required("pipeline", message.pipeline);
  reader.required("base_seed", message.base_seed);
  reader.required("epoch", message.epoch);
  return checked(reader, message);
}

Result<ClientMessage> parse_request(JsonReader& reader) {
  RequestMessage message;
  reader.required("stream", message.stream);
  reader.required("seq", message.seq);
  reader.required("position", message.position);
  reader.required("indices", message.indices);
  return checked(reader, std::move(message));
}

Result<ClientMessage> parse_release(JsonReader& reader) {
  ReleaseMessage message;
  reader.required("slots", message.slots);
  return checked(reader, std::move(message));
}

Result<ClientMessage> parse_progress(JsonReader& reader) {
  ProgressMessage message;
  reader.required("stream", message.stream);
  reader.required("batches", message.batches);
  reader.required("samples", message.samples);
  reader.required("compute_seconds", message.compute_seconds);
  reader.required("wait_seconds", message.wait_seconds);
  reader.optional("queue_depth", message.queue_depth);
  reader.optional("queue_capacity", message.queue_capacity);
  reader.optional("epoch", message.epoch);
  return checked(reader, message);
}

Result<ClientMessage> parse_close(JsonReader& reader) {
  CloseMessage message;
  reader.required("stream", message.stream);
  return checked(reader, message);
}

struct Parsed {
  json object;
  std::string type;
};

Result<Parsed> parse_object(std::string_view text) {
  Parsed parsed;
  parsed.object = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!parsed.object.is_object()) return invalid_argument("frame: the JSON part is not an object");
  JsonReader reader(parsed.object, "frame");
  reader.required("type", parsed.type);
  if (reader.error()) return *reader.error();
  return parsed;
}

}  // namespace

Result<ClientMessage> parse_client_message(std::string_view text) {
  struct Parser {
    std::string_view type;
    Result<ClientMessage> (*parse)(JsonReader&);
  };
  static constexpr Parser kParsers[] = {
      {"request", parse_request}, {"release", parse_release}, {"progress", parse_progress}, {"open", parse_open},
      {"close", parse_close},     {"hello", parse_hello},     {"pipeline", parse_pipeline},
  };
  SLUICE_TRY(const Parsed parsed, parse_object(text));
  for (const Parser& parser : kParsers) {
    if (parser.type != parsed.type) continue;
    JsonReader reader(parsed.object, parsed.type);
    return parser.parse(reader);
  }
  return invalid_argument("frame.type: unknown type '" + parsed.type.substr(0, 64) + "'");
}

Result<ChildMessage> parse_child_message(std::string_view text) {
  SLUICE_TRY(const Parsed parsed, parse_object(text));
  JsonReader reader(parsed.object, parsed.type);
  ChildMessage message;
  if (parsed.type == "done") {
    DoneMessage done;
    reader.required("id", done.id);
    reader.required("seconds", done.seconds);
    SLUICE_TRY(done.tensors, parse_tensors(parsed.object, parsed.type));
    message = std::move(done);
  } else if (parsed.type == "alloc") {
    AllocMessage alloc;
    reader.required("id", alloc.id);
    reader.required("bytes", alloc.bytes);
    message = alloc;
  } else if (parsed.type == "loaded") {
    LoadedMessage loaded;
    reader.required("pipeline", loaded.pipeline);
    message = loaded;
  } else if (parsed.type == "error") {
    ChildErrorMessage error;
    reader.optional("id", error.id);
    reader.optional("pipeline", error.pipeline);
    read_failure(reader, error.failure);
    message = std::move(error);
  } else {
    return invalid_argument("frame.type: unknown type '" + parsed.type.substr(0, 64) + "'");
  }
  if (reader.error()) return *reader.error();
  return message;
}

std::string welcome_json(std::size_t arena_bytes, std::string_view session) {
  return dump({{"type", "welcome"}, {"protocol", kLocalProtocol}, {"arena_bytes", arena_bytes}, {"session", session}});
}

std::string ready_json(std::uint64_t pipeline, std::string_view fingerprint) {
  return dump({{"type", "ready"}, {"pipeline", pipeline}, {"fingerprint", fingerprint}});
}

std::string not_ready_json(std::uint64_t pipeline, std::string_view error) {
  return dump({{"type", "ready"}, {"pipeline", pipeline}, {"error", error}});
}

std::string window_json(std::size_t batches) { return dump({{"type", "window"}, {"batches", batches}}); }

std::string to_json(const BatchMessage& message) {
  return dump({{"type", "batch"},
               {"stream", message.stream},
               {"seq", message.seq},
               {"slot", message.slot},
               {"copy", message.copy},
               {"tensors", tensors_json(message.tensors)},
               {"seconds", message.seconds},
               {"placement", message.placement}});
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

std::string load_json(std::uint64_t pipeline) { return dump({{"type", "load"}, {"pipeline", pipeline}}); }

std::string to_json(const ExecuteMessage& message) {
  return dump({{"type", "execute"},
               {"id", message.id},
               {"pipeline", message.pipeline},
               {"stream", message.stream},
               {"seq", message.seq},
               {"base_seed", message.base_seed},
               {"epoch", message.epoch},
               {"position", message.position},
               {"indices", *message.indices},
               {"worker_id", message.worker_id},
               {"num_workers", message.num_workers}});
}

std::string slot_json(std::uint64_t id, std::uint64_t offset) {
  return dump({{"type", "slot"}, {"id", id}, {"offset", offset}});
}

std::string no_slot_json(std::uint64_t id, std::string_view error) {
  return dump({{"type", "slot"}, {"id", id}, {"error", error}});
}

std::string quit_json() { return dump({{"type", "quit"}}); }

}  // namespace sluice::transport
