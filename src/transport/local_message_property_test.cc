// Every message of the local protocol with every field missing or wrong, cut at every place, and with bytes changed at
// random. The result is always a message or an error that names the field.
#include <rapidcheck.h>

#include <nlohmann/json.hpp>
#include <set>

#include "src/base/testing/catch.h"
#include "src/transport/local_message.h"

namespace sluice::transport {
namespace {

using nlohmann::json;

struct Sample {
  json message;
  std::set<std::string> required;  // besides "type"
};

// One of each kind, every field with a value that differs from its default.
std::vector<Sample> client_samples() {
  return {
      {{{"type", "hello"}, {"protocol", 2}, {"rank", 3}, {"world_size", 4}, {"pid", 77}}, {"protocol"}},
      {{{"type", "pipeline"},
        {"id", 1},
        {"executor", "python"},
        {"python", "/usr/bin/python3"},
        {"num_workers", 2},
        {"prefetch_batches", 4},
        {"batch_bytes_hint", 4096}},
       {"id", "executor", "python"}},
      {{{"type", "open"},
        {"stream", 1},
        {"pipeline", 2},
        {"base_seed", 3},
        {"epoch", 4},
        {"virtual_workers", 5},
        {"order", {{"seed", 6}, {"length", 7}, {"rank", 1}, {"ranks", 2}, {"drops_last", true}, {"is_next", true}}}},
       {"stream", "pipeline", "base_seed", "epoch"}},
      {{{"type", "request"}, {"stream", 1}, {"seq", 2}, {"position", 3}, {"indices", {4, 5}}},
       {"stream", "seq", "position", "indices"}},
      {{{"type", "release"}, {"slots", {1, 2}}}, {"slots"}},
      {{{"type", "progress"},
        {"stream", 1},
        {"batches", 2},
        {"samples", 3},
        {"compute_seconds", 0.5},
        {"wait_seconds", 0.25},
        {"queue_depth", 4},
        {"queue_capacity", 5},
        {"epoch", 6},
        {"remaining_samples", 7},
        {"skipped_samples", 1}},
       {"stream", "batches", "samples", "compute_seconds", "wait_seconds"}},
      {{{"type", "close"}, {"stream", 1}}, {"stream"}},
  };
}

std::vector<Sample> child_samples() {
  const json tensor = {{"dtype", "int64"}, {"shape", {2, 3}}, {"offset", 64}, {"nbytes", 48}};
  return {
      {{{"type", "loaded"}, {"pipeline", 1}}, {"pipeline"}},
      {{{"type", "alloc"}, {"id", 1}, {"bytes", 99}}, {"id", "bytes"}},
      {{{"type", "done"}, {"id", 1}, {"seconds", 0.25}, {"blocked_seconds", 0.5}, {"tensors", {tensor}}},
       {"id", "seconds", "tensors"}},
      {{{"type", "find"}, {"id", 1}, {"function", "m.f"}, {"version", "1 ab"}, {"files", {"/a"}}},
       {"id", "function", "version"}},
      {{{"type", "keep"}, {"id", 1}}, {"id"}},
      {{{"type", "error"},
        {"id", 1},
        {"pipeline", 2},
        {"exception_type", "KeyError"},
        {"message", "'x'"},
        {"traceback", "line"}},
       {}},
  };
}

// Both directions as one list: "" or the error.
struct Direction {
  const char* name;
  std::vector<Sample> samples;
  std::string (*error)(const std::string&);
};

template <auto kParse>
std::string error_of(const std::string& text) {
  const auto parsed = kParse(text);
  if (parsed.ok()) return "";
  REQUIRE(parsed.error().code() == ErrorCode::kInvalidArgument);
  return std::string(parsed.error().message());
}

std::vector<Direction> directions() {
  return {{"client", client_samples(), error_of<parse_client_message>},
          {"child", child_samples(), error_of<parse_child_message>}};
}

TEST_CASE("a message lacks a field: an error that names it if it is needed, else its default") {
  for (const Direction& direction : directions()) {
    for (const Sample& sample : direction.samples) {
      const std::string type = sample.message["type"];
      CHECK(direction.error(sample.message.dump()).empty());
      for (const auto& [field, value] : sample.message.items()) {
        INFO(direction.name << " " << type << "." << field);
        json without = sample.message;
        without.erase(field);
        const std::string error = direction.error(without.dump());
        if (field == "type") {
          CHECK(error == "frame.type: is missing");
        } else if (sample.required.contains(field)) {
          CHECK_THAT(error, Catch::StartsWith(type + "." + field));
        } else {
          CHECK(error.empty());
        }
      }
    }
  }
}

TEST_CASE("a field has the wrong type: an error that names it") {
  const json wrong_values[] = {json::object(), json(-1.5), json(true), json({{"a", 1}}), json::array({json::array()})};
  for (const Direction& direction : directions()) {
    for (const Sample& sample : direction.samples) {
      const std::string type = sample.message["type"];
      for (const auto& [field, value] : sample.message.items()) {
        for (const json& wrong : wrong_values) {
          if (wrong.is_number() && value.is_number_float()) continue;  // a negative second is a number
          if (wrong.is_number() &&
              (field == "queue_depth" || field == "queue_capacity" || (type == "progress" && field == "epoch")))
            continue;
          INFO(direction.name << " " << type << "." << field << " = " << wrong.dump());
          json message = sample.message;
          message[field] = wrong;
          CHECK_THAT(direction.error(message.dump()),
                     Catch::StartsWith(field == "type" ? "frame.type" : type + "." + field));
        }
      }
    }
  }
}

TEST_CASE("unknown fields are ignored") {
  for (const Direction& direction : directions()) {
    for (Sample sample : direction.samples) {
      sample.message["since version 2"] = {{"a", {1, 2}}};
      CHECK(direction.error(sample.message.dump()).empty());
    }
  }
}

TEST_CASE("no prefix of a message is a message") {
  for (const Direction& direction : directions()) {
    for (const Sample& sample : direction.samples) {
      const std::string text = sample.message.dump();
      for (std::size_t length = 0; length < text.size(); ++length) {
        INFO(text.substr(0, length));
        CHECK(direction.error(text.substr(0, length)) == "frame: the JSON part is not an object");
      }
    }
  }
}

TEST_CASE("bytes changed at random never do more than make an error", "[property]") {
  const auto all = directions();
  const bool held = rc::check("mutate and parse", [&] {
    const Direction& direction = all[*rc::gen::inRange<std::size_t>(0, all.size())];
    const Sample& sample = direction.samples[*rc::gen::inRange<std::size_t>(0, direction.samples.size())];
    std::string text = sample.message.dump();
    const int changes = *rc::gen::inRange(1, 6);
    for (int i = 0; i < changes; ++i) {
      const std::size_t at = *rc::gen::inRange<std::size_t>(0, text.size());
      switch (*rc::gen::inRange(0, 3)) {
        case 0: text[at] = *rc::gen::arbitrary<char>(); break;
        case 1:
          text.insert(at, *rc::gen::element<std::string>("\"", "{", "]", "-", "1e999", "\\u0000", "\xff", "null"));
          break;
        default: text.erase(at, 1 + *rc::gen::inRange<std::size_t>(0, 3)); break;
      }
      if (text.empty()) text = " ";
    }
    (void)direction.error(text);
  });
  CHECK(held);
}

TEST_CASE("a message nested a million deep is refused without using up the stack") {
  const std::string deep = std::string(1000000, '[') + std::string(1000000, ']');
  CHECK(error_of<parse_client_message>(deep) == "frame: the JSON part is not an object");
  CHECK(!error_of<parse_client_message>(R"({"type":"release","slots":)" + deep + "}").empty());
}

TEST_CASE("a child cannot describe more tensors than a batch may have") {
  json message = {{"type", "done"}, {"id", 1}, {"seconds", 0}, {"tensors", json::array()}};
  for (int i = 0; i < 65537; ++i) message["tensors"].push_back(0);
  CHECK(error_of<parse_child_message>(message.dump()) == "done.tensors: must be a list of at most 65536");
}

TEST_CASE("a wrong tensor is told by its place") {
  const json good = {{"dtype", "int64"}, {"shape", {1}}, {"offset", 0}, {"nbytes", 8}};
  struct Case {
    const char* name;
    json tensor;
    const char* want;
  };
  json negative = good, no_shape = good;
  negative["offset"] = -64;
  no_shape.erase("shape");
  const Case cases[] = {
      {"no object", 7, "done.tensors[1]: must be an object"},
      {"negative offset", negative, "done.tensors[1].offset: must be a whole number, not negative"},
      {"no shape", no_shape, "done.tensors[1].shape: is missing"},
  };
  for (const Case& test : cases) {
    INFO(test.name);
    const json message = {{"type", "done"}, {"id", 1}, {"seconds", 0}, {"tensors", {good, test.tensor}}};
    CHECK(error_of<parse_child_message>(message.dump()) == test.want);
  }
}

TEST_CASE("what we say is what the contract says") {
  struct Case {
    std::string said;
    const char* want;
  };
  const BatchSpec batch{4, 5, 6, 7, {5, -6}};
  const ExecuteMessage execute{.id = 1, .pipeline = 2, .batch = &batch, .worker_id = 8, .num_workers = 9};
  const Case cases[] = {
      {welcome_json(4096, "s"), R"({"type":"welcome","protocol":2,"arena_bytes":4096,"session":"s"})"},
      {welcome_json(4096, "s", true),
       R"({"type":"welcome","protocol":2,"arena_bytes":4096,"session":"s","takes_orders":true})"},
      {ready_json(1, "abc"), R"({"type":"ready","pipeline":1,"fingerprint":"abc"})"},
      {not_ready_json(1, "no"), R"({"type":"ready","pipeline":1,"error":"no"})"},
      {window_json(5), R"({"type":"window","batches":5})"},
      {load_json(3), R"({"type":"load","pipeline":3})"},
      {load_json(3, true), R"({"type":"load","pipeline":3,"keeps_results":true})"},
      {to_json(FoundMessage{.id = 1, .keeps = true, .rest = 2, .seconds = 0.5}),
       R"({"type":"found","id":1,"is_found":false,"keeps":true,"rest":2,"seconds":0.5})"},
      {slot_json(1, 8192), R"({"type":"slot","id":1,"offset":8192})"},
      {no_slot_json(1, "full"), R"({"type":"slot","id":1,"error":"full"})"},
      {to_json(execute),
       R"({"type":"execute","id":1,"pipeline":2,"seq":4,"base_seed":5,"epoch":6,"position":7,"indices":[5,-6],"worker_id":8,"num_workers":9})"},
      {to_json(ErrorMessage{.stream = 1, .seq = 2, .pipeline = 3, .failure = {"KeyError", "'x'", "line 1"}}),
       R"({"type":"error","stream":1,"seq":2,"pipeline":3,"exception_type":"KeyError","message":"'x'","traceback":"line 1"})"},
  };
  for (const Case& test : cases) CHECK(json::parse(test.said) == json::parse(test.want));
}

}  // namespace
}  // namespace sluice::transport
