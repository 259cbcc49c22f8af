// How a worker receives pipelines: in pieces, and what it refuses.
#include <fstream>

#include "src/base/logging.h"
#include "src/base/testing/catch.h"
#include "src/base/testing/temporary_directory.h"
#include "src/transport/worker_forms.h"
#include "worker-image/testing/worker_fixture.h"

namespace sluice::worker {
namespace {

using testing::python_blob;
using v1::Header;
using Fixture = testing::WorkerFixture;

TEST_CASE("a pipeline that cannot be run is refused with the reason") {
  struct Case {
    const char* name;
    executor::ExecutorKind kind;
    std::string blob;
    bool damaged;
    const char* want;
    std::size_t said_bytes = 0;
  };
  const std::string echo = python_blob("echo");
  const Case cases[] = {
      {"no specification", executor::ExecutorKind::kNative, "{", false, ""},
      {"damaged on the way", executor::ExecutorKind::kPython, echo, true, "arrived damaged", echo.size()},
      {"longer than was said", executor::ExecutorKind::kPython, echo, true, "longer than was said", echo.size() - 1},
      {"too large", executor::ExecutorKind::kPython, "", true, "too large", executor::kPipelineBytesMax + 1},
      {"the user's code cannot be imported", executor::ExecutorKind::kPython, python_blob("cannot load"), false,
       "no module"},
  };
  for (const Case& test : cases) {
    INFO(test.name);
    Fixture f;
    const auto stream = f.connect();
    if (test.damaged) {
      Header header;
      header.mutable_pipeline()->set_id(1);
      header.mutable_pipeline()->set_executor("python");
      header.mutable_pipeline()->set_protocol(transport::kProtocolVersion);
      header.mutable_pipeline()->set_fingerprint("of something else");
      header.mutable_pipeline()->set_bytes(test.said_bytes);
      f.say(stream, header, test.blob);
    } else {
      f.send_pipeline(stream, 1, test.kind, test.blob);
    }
    const Header answer = stream->wait(Header::kPipelineError).header;
    CHECK(answer.pipeline_error().id() == 1);
    CHECK_THAT(answer.pipeline_error().message(), Catch::Contains(test.want));
  }
}

TEST_CASE("a pipeline that takes long to load holds up no other one") {
  const testing::TemporaryDirectory folder;
  const auto release = folder.path / "release";
  Fixture f(1);
  const auto stream = f.connect();
  f.send_pipeline(stream, 1, executor::ExecutorKind::kPython,
                  R"({"behaviour": "cannot load", "release": ")" + release.string() + R"("})");
  f.send_pipeline(stream, 2, executor::ExecutorKind::kPython, python_blob("echo"));
  CHECK(stream->wait(Header::kPipelineReady).header.pipeline_ready().id() == 2);
  for (std::uint64_t id = 1; id <= 3; ++id) f.request(stream, id, {4}, 2);
  CHECK(stream->wait_answers(3).size() == 3);
  std::ofstream(release) << "now";
  CHECK(stream->wait(Header::kPipelineError).header.pipeline_error().id() == 1);
}

TEST_CASE("a feeder of another version is told so, in the answer and in the log") {
  Fixture f;
  const auto stream = f.connect();
  std::vector<std::string> lines;
  set_log_sink([&](std::string_view line) { lines.emplace_back(line); });
  Header header;
  header.mutable_pipeline()->set_id(1);
  header.mutable_pipeline()->set_protocol(7);
  f.say(stream, header, "");
  const Header answer = stream->wait(Header::kPipelineError).header;
  set_log_sink(nullptr);
  CHECK(answer.pipeline_error().message() == "the feeder speaks protocol 7, this data worker 3");
  REQUIRE(lines.size() == 1);
  CHECK_THAT(lines.front(), Catch::Contains("a feeder of another version is not served") &&
                                Catch::Contains("its_protocol=7 our_protocol=3"));
}

TEST_CASE("a pipeline that arrives in pieces is used when it is whole; pieces of others are ignored") {
  Fixture f;
  const auto stream = f.connect();
  f.send_part(stream, 1, "a piece of what was not begun");
  f.send_pipeline(stream, 1, executor::ExecutorKind::kPython, python_blob("echo"), /*first_bytes=*/5);
  CHECK(stream->wait(Header::kPipelineReady).header.pipeline_ready().id() == 1);
  f.request(stream, 1, {4});
  CHECK(stream->wait(Header::kChunk).header.chunk().id() == 1);
}

}  // namespace
}  // namespace sluice::worker
