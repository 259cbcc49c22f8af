#include "src/base/testing/catch.h"
#include "src/cache/testing/cached_files_fixture.h"

namespace sluice::cache {
namespace {

using testing::Bytes;
using transport::FunctionCall;

const std::string kFile = "/data/clip.wav";
const Bytes kValue{1, 2, 3, 4};

struct ResultsFixture : testing::CachedFilesFixture {
  ResultsFixture() {
    source->write(kFile, Bytes(100));
    clock.advance(std::chrono::hours(1));
    start(Keep::kSource);
  }
  bool has(const FunctionCall& call) const {
    Bytes value;
    const auto states = files->states_of(call);
    return states && files->find_result(call, *states, value) && value == kValue;
  }
  void keep(const FunctionCall& call) const { files->keep_result(call, *files->states_of(call), kValue); }
};

// A process that asks the same store from another machine.
void start_as(ResultsFixture& cache, const std::string& own_name) {
  cache.files.reset();
  cache.files = std::make_unique<CachedFiles>(
      cache.source, store_on(std::make_unique<testing::MemoryDisk>(cache.disk), {.bytes = 10 << 20}, cache.clock),
      "team", cache.clock, Keep::kSource, 0, own_name);
  REQUIRE(cache.files->wait_until_opened());
}

FunctionCall call_of(const std::string& arguments = "a") {
  return {.function = "m.mel", .version = "1 c0de", .arguments = arguments, .files = {kFile}};
}

TEST_CASE("a result is found again, by the next process too") {
  ResultsFixture cache;
  CHECK_FALSE(cache.has(call_of()));
  cache.keep(call_of());
  CHECK(cache.has(call_of()));
  cache.start(Keep::kSource);
  CHECK(cache.has(call_of()));
  CHECK(cache.files->counters().results.hits == 1);
  CHECK(cache.files->counters().results.hit_bytes == kValue.size());
}

TEST_CASE("what differs from the call is another call") {
  ResultsFixture cache;
  cache.keep(call_of());
  struct Case {
    const char* story;
    void (*change)(ResultsFixture& cache, FunctionCall& call);
  };
  const Case cases[] = {
      {"other arguments", [](ResultsFixture&, FunctionCall& call) { call.arguments = "b"; }},
      {"bytes that move from the function to its arguments",
       [](ResultsFixture&, FunctionCall& call) {
         call.function = "m.me";
         call.arguments = "la";
       }},
      {"another function", [](ResultsFixture&, FunctionCall& call) { call.function = "m.mel2"; }},
      {"another version", [](ResultsFixture&, FunctionCall& call) { call.version = "2 c0de"; }},
      {"other code", [](ResultsFixture&, FunctionCall& call) { call.version = "1 c0df"; }},
      {"no file", [](ResultsFixture&, FunctionCall& call) { call.files.clear(); }},
      {"a file that has changed", [](ResultsFixture& it, FunctionCall&) { it.source->write(kFile, Bytes(100, 7)); }},
      {"another name space",
       [](ResultsFixture& it, FunctionCall&) { it.start(Keep::kSource, {.bytes = 10 << 20}, "other"); }},
  };
  for (const Case& each : cases) {
    INFO(each.story);
    ResultsFixture own;
    own.keep(call_of());
    FunctionCall call = call_of();
    each.change(own, call);
    CHECK_FALSE(own.has(call));
  }
}

TEST_CASE("a result is not kept where its file may have been another one") {
  ResultsFixture cache;
  SECTION("it has changed during the call") {
    const auto before = *cache.files->states_of(call_of());
    cache.source->write(kFile, Bytes(100, 7));
    cache.clock.advance(std::chrono::hours(1));
    cache.files->keep_result(call_of(), before, kValue);
  }
  SECTION("it was written a moment ago") {
    cache.source->write(kFile, Bytes(100, 7));
    cache.clock.advance(std::chrono::seconds(9));
    cache.keep(call_of());
  }
  CHECK_FALSE(cache.has(call_of()));
  CHECK(cache.files->counters().not_stored_changing == 1);
}

TEST_CASE("a file that is not there has no state") {
  ResultsFixture cache;
  FunctionCall call = call_of();
  call.files.emplace_back("/data/gone.wav");
  CHECK_FALSE(cache.files->states_of(call));
}

TEST_CASE("a call without files needs no time to settle") {
  ResultsFixture cache;
  FunctionCall call = call_of();
  call.files.clear();
  cache.keep(call);
  CHECK(cache.has(call));
}

TEST_CASE("what the disk has no room for is counted") {
  ResultsFixture cache;
  const auto states = *cache.files->states_of(call_of());
  CHECK(cache.files->has_room_for_result(call_of(), states, 1000));
  CHECK_FALSE(cache.files->has_room_for_result(call_of(), states, 1 << 30));
  CHECK(cache.files->counters().not_stored_full == 1);
}

TEST_CASE("a damaged record is no result") {
  ResultsFixture cache;
  cache.keep(call_of());
  for (auto& [name, file] : cache.disk->files) file->back() ^= 1;
  CHECK_FALSE(cache.has(call_of()));
  CHECK(cache.files->counters().damaged >= 1);
}

TEST_CASE("results of machines that share a store are one only where all their files are shared") {
  struct Case {
    const char* story;
    std::vector<std::string> files;
    bool is_shared;
  };
  const Case cases[] = {
      {"a shared file", {"/mnt/clip.wav"}, true},
      {"an own file", {kFile}, false},
      {"a shared file and an own one", {"/mnt/clip.wav", kFile}, false},
      {"no file: the arguments may name a folder", {}, false},
  };
  for (const Case& each : cases) {
    INFO(each.story);
    ResultsFixture cache;
    cache.source->write("/mnt/clip.wav", Bytes(100));
    cache.clock.advance(std::chrono::hours(1));
    cache.source->volumes = *pipeline::SharedVolumes::parse(R"({"/mnt":"claim"})");
    FunctionCall call = call_of();
    call.files = each.files;
    start_as(cache, "machine 1:");
    cache.keep(call);
    CHECK(cache.has(call));
    start_as(cache, "machine 2:");
    CHECK(cache.has(call) == each.is_shared);
  }
}

}  // namespace
}  // namespace sluice::cache
