#include "src/transport/local_message.h"

#include <nlohmann/json.hpp>

#include "src/base/testing/catch.h"

namespace sluice::transport {
namespace {

TEST_CASE("a request is read with its numbers intact") {
  const auto message = parse_client_message(
      R"({"type":"request","stream":3,"seq":18446744073709551615,"position":5,"indices":[1,-2,9223372036854775807],"later":1})");
  REQUIRE(message.ok());
  const auto& request = std::get<RequestMessage>(*message);
  CHECK(request.stream == 3);
  CHECK(request.batch.seq == 18446744073709551615ULL);
  CHECK(request.batch.indices == std::vector<std::int64_t>{1, -2, 9223372036854775807LL});
}

TEST_CASE("how much of a training is left is known only where the client says it") {
  const std::string known =
      R"({"type":"progress","stream":0,"batches":1,"samples":8,"compute_seconds":0,"wait_seconds":0)";
  const auto remaining = [](const std::string& json) {
    return std::get<ProgressMessage>(*parse_client_message(json)).remaining_samples;
  };
  CHECK(remaining(known + R"(,"remaining_samples":800})") == 800);
  CHECK(remaining(known + R"(,"remaining_samples":0})") == 0);
  CHECK_FALSE(remaining(known + R"(,"remaining_samples":null})"));
  CHECK_FALSE(remaining(known + "}"));
}

TEST_CASE("a client that says nothing of skipped samples has skipped none") {
  const std::string known =
      R"({"type":"progress","stream":0,"batches":1,"samples":8,"compute_seconds":0,"wait_seconds":0)";
  const auto skipped = [](const std::string& json) {
    return std::get<ProgressMessage>(*parse_client_message(json)).skipped_samples;
  };
  CHECK(skipped(known + R"(,"skipped_samples":3})") == 3);
  CHECK(skipped(known + "}") == 0);
}

TEST_CASE("the order of an epoch is told by a seed, whole or dealt out, or not at all") {
  const auto order = [](const std::string& field) {
    return std::get<OpenMessage>(
               *parse_client_message(R"({"type":"open","stream":1,"pipeline":2,"base_seed":3,"epoch":4)" + field + "}"))
        .order;
  };
  CHECK_FALSE(order(""));
  CHECK(order(R"(,"order":{"seed":18446744073709551615,"length":10})") ==
        EpochOrder{.seed = 0xFFFFFFFFFFFFFFFF, .length = 10});
  CHECK(order(R"(,"order":{"seed":5,"length":10,"rank":2,"ranks":3,"drops_last":true,"is_next":true})") ==
        EpochOrder{.seed = 5, .length = 10, .rank = 2, .ranks = 3, .drops_last = true, .is_next = true});
}

TEST_CASE("a wrong client is told the field") {
  struct Case {
    const char* name;
    const char* json;
    const char* want;
  };
  const Case cases[] = {
      {"not JSON", "{", "not an object"},
      {"not an object", "[1]", "not an object"},
      {"no type", "{}", "frame.type: is missing"},
      {"unknown type", R"({"type":"dance"})", "unknown type 'dance'"},
      {"missing field", R"({"type":"open","stream":1})", "open.pipeline: is missing"},
      {"an order without a seed",
       R"({"type":"open","stream":1,"pipeline":2,"base_seed":3,"epoch":4,"order":{"length":1}})",
       "open.order.seed: is missing"},
      {"text for a number", R"({"type":"close","stream":"1"})", "close.stream: must be a whole number"},
      {"negative", R"({"type":"close","stream":-1})", "close.stream: must be a whole number, not negative"},
      {"fraction", R"({"type":"close","stream":1.5})", "close.stream: must be a whole number"},
      {"index too large", R"({"type":"request","stream":1,"seq":0,"position":0,"indices":[0,18446744073709551615]})",
       "request.indices[1]"},
      {"index no number", R"({"type":"request","stream":1,"seq":0,"position":0,"indices":["a"]})",
       "request.indices[0]"},
      {"executor unknown", R"({"type":"pipeline","id":1,"executor":"lua"})",
       "pipeline.executor: must be native or python"},
      {"python without interpreter", R"({"type":"pipeline","id":1,"executor":"python"})", "pipeline.python"},
      {"slots no list", R"({"type":"release","slots":7})", "release.slots: must be a list"},
      {"progress no number",
       R"({"type":"progress","stream":0,"batches":0,"samples":0,"compute_seconds":"x","wait_seconds":0})",
       "progress.compute_seconds"},
      {"less than nothing remains",
       R"({"type":"progress","stream":0,"batches":0,"samples":0,"compute_seconds":0,"wait_seconds":0,"remaining_samples":-1})",
       "progress.remaining_samples: must be a whole number, not negative"},
  };
  for (const Case& test : cases) {
    INFO(test.name);
    const auto message = parse_client_message(test.json);
    REQUIRE(!message.ok());
    CHECK(message.error().code() == ErrorCode::kInvalidArgument);
    CHECK_THAT(message.error().message(), Catch::Contains(test.want));
  }
}

TEST_CASE("a batch names its slot, its tensors and where it was made") {
  const BatchMessage message{.stream = 1,
                             .seq = 2,
                             .slot = 3,
                             .copy = true,
                             .tensors = {{"float32", {64, 3, 224, 224}, 4096, 38535168}},
                             .seconds = 0.5,
                             .placement = "remote"};
  const auto object = nlohmann::json::parse(to_json(message));
  CHECK(object == nlohmann::json::parse(
                      R"({"type":"batch","stream":1,"seq":2,"slot":3,"copy":true,"seconds":0.5,"placement":"remote",
      "tensors":[{"dtype":"float32","shape":[64,3,224,224],"offset":4096,"nbytes":38535168}]})"));
}

TEST_CASE("a batch tells its costs where they are known") {
  BatchMessage message{.stream = 1, .seq = 2, .slot = 3, .seconds = 0.5, .placement = "local"};
  CHECK(!nlohmann::json::parse(to_json(message)).contains("ops"));
  CHECK(!nlohmann::json::parse(to_json(message)).contains("blocked_seconds"));
  message.ops = {{"read", 0.125, 700}, {"decode", 0.25, 9}};
  CHECK(!nlohmann::json::parse(to_json(message)).contains("holds_files"));
  message.blocked_seconds = 0;
  CHECK(!nlohmann::json::parse(to_json(message)).contains("from_memory"));
  message.holds_files = true;
  message.from_memory = true;
  const auto object = nlohmann::json::parse(to_json(message));
  CHECK(object["ops"] == nlohmann::json::parse(R"([["read",0.125,700],["decode",0.25,9]])"));
  CHECK(object["blocked_seconds"] == 0);
  CHECK(object["holds_files"] == true);
  CHECK(object["from_memory"] == true);
}

TEST_CASE("a child's costs are read, and nonsense in their place is refused") {
  const auto with_ops = [](const std::string& ops) {
    return parse_child_message(R"({"type":"done","id":1,"seconds":0.25,"tensors":[],"ops":)" + ops + "}");
  };
  CHECK(std::get<DoneMessage>(*with_ops(R"([["dataset",0.125,0],["collate",0.5,12]])")).ops ==
        std::vector<OpCost>{{"dataset", 0.125, 0}, {"collate", 0.5, 12}});
  CHECK(std::get<DoneMessage>(*with_ops("[]")).ops.empty());
  std::string too_many = R"(["a",0,0])";
  for (std::size_t i = 0; i < kOpCostsMax; ++i) too_many += R"(,["a",0,0])";
  for (const std::string& wrong :
       {std::string("7"), std::string("[7]"), std::string(R"([["a",1]])"), std::string(R"([["a","1",0]])"),
        std::string(R"([["a",1,-1]])"), "[" + too_many + "]"}) {
    INFO(wrong);
    REQUIRE(!with_ops(wrong).ok());
    CHECK_THAT(with_ops(wrong).error().message(), Catch::Contains("done.ops: must be a list of at most 64"));
  }
}

TEST_CASE("a batch tells what the calls of kept functions were") {
  BatchMessage message{.stream = 1, .seq = 2, .slot = 3, .seconds = 0.5, .placement = "local"};
  CHECK(!nlohmann::json::parse(to_json(message)).contains("kept"));
  message.kept = {{"m.f", 5, 4, 0.25, 1000}};
  CHECK(nlohmann::json::parse(to_json(message))["kept"] == nlohmann::json::parse(R"([["m.f",5,4,0.25,1000]])"));
}

TEST_CASE("what a child has seen of functions is read, and nonsense in its place is refused") {
  const auto with_kept = [](const std::string& kept) {
    return parse_child_message(R"({"type":"done","id":1,"seconds":0.25,"tensors":[],"kept":)" + kept + "}");
  };
  const auto read = with_kept(
      R"([{"function":"m.f","calls":1,"call_seconds":2,"cold_calls":3,"cold_seconds":4,"hits":5,"hit_seconds":6,"hit_bytes":7,"stores":8,"store_seconds":9,"damaged":10,"late":11}])");
  CHECK(std::get<DoneMessage>(*read).kept == std::vector<CallReport>{{"m.f", 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}});
  CHECK(std::get<DoneMessage>(*with_kept(R"([{"function":"m.f"}])")).kept ==
        std::vector<CallReport>{{.function = "m.f"}});
  std::string too_many = R"({"function":"f"})";
  for (std::size_t i = 0; i < kKeptFunctionsMax; ++i) too_many += R"(,{"function":"f"})";
  struct Case {
    std::string kept;
    const char* want;
  };
  const Case cases[] = {
      {"7", "done.kept: must be a list"},
      {"[7]", "done.kept[0]: must be an object"},
      {R"([{"calls":1}])", "done.kept[0].function: is missing"},
      {R"([{"function":"f","hits":-1}])", "done.kept[0].hits: must be a whole number, not negative"},
      {"[" + too_many + "]", "done.kept: must be a list of at most 64"},
  };
  for (const Case& test : cases) {
    INFO(test.kept);
    REQUIRE(!with_kept(test.kept).ok());
    CHECK_THAT(with_kept(test.kept).error().message(), Catch::Contains(test.want));
  }
}

TEST_CASE("a call beyond the bounds is refused") {
  const auto find = [](const FunctionCall& call) {
    return parse_child_message(nlohmann::json{
        {"type", "find"}, {"id", 1}, {"function", call.function}, {"version", call.version}, {"files", call.files}}
                                   .dump());
  };
  const FunctionCall most{.function = std::string(kFunctionBytesMax, 'f'),
                          .version = std::string(kFunctionVersionBytesMax, 'v'),
                          .arguments = "",
                          .files = std::vector<std::string>(kFilesPerCallMax, std::string(kFilePathBytesMax, 'p'))};
  const auto read = find(most);
  REQUIRE(read.ok());
  CHECK(std::get<FindMessage>(*read).call.files == most.files);
  struct Case {
    const char* field;
    void (*lengthen)(FunctionCall& call);
  };
  const Case cases[] = {
      {"find.function", [](FunctionCall& call) { call.function += 'f'; }},
      {"find.version", [](FunctionCall& call) { call.version += 'v'; }},
      {"find.files", [](FunctionCall& call) { call.files.emplace_back("p"); }},
      {"find.files", [](FunctionCall& call) { call.files[0] += 'p'; }},
  };
  for (const Case& test : cases) {
    FunctionCall longer = most;
    test.lengthen(longer);
    REQUIRE(!find(longer).ok());
    CHECK_THAT(find(longer).error().message(), Catch::Contains(test.field));
  }
}

TEST_CASE("an error is sent even if its text is not UTF-8") {
  const ErrorMessage message{.stream = 1, .failure = {"OSError", "bad \xff name", ""}};
  const auto object = nlohmann::json::parse(to_json(message));
  CHECK(object["exception_type"] == "OSError");
  CHECK(!object.contains("seq"));
}

TEST_CASE("a child's messages are read") {
  CHECK(std::get<LoadedMessage>(*parse_child_message(R"({"type":"loaded","pipeline":4})")).pipeline == 4);
  CHECK(std::get<KeepMessage>(*parse_child_message(R"({"type":"keep","id":5})")).id == 5);
  CHECK(std::get<AllocMessage>(*parse_child_message(R"({"type":"alloc","id":1,"bytes":99})")).bytes == 99);
  const auto done = parse_child_message(
      R"({"type":"done","id":1,"seconds":0.25,"tensors":[{"dtype":"int64","shape":[],"offset":64,"nbytes":8}]})");
  REQUIRE(done.ok());
  CHECK(std::get<DoneMessage>(*done).tensors.at(0).offset == 64);
  const auto error =
      parse_child_message(R"({"type":"error","id":1,"exception_type":"KeyError","message":"'x'","traceback":"..."})");
  REQUIRE(error.ok());
  CHECK(std::get<ChildErrorMessage>(*error).failure.exception_type == "KeyError");
  CHECK(!parse_child_message(R"({"type":"done","id":1,"seconds":0.25,"tensors":[{"dtype":"int64"}]})").ok());
  CHECK(!parse_child_message(R"({"type":"welcome"})").ok());
}

}  // namespace
}  // namespace sluice::transport
