// The cache behind the feeder and the worker: the same batches, and a second epoch that leaves the source alone.
#include "worker-image/program/source_cache.h"

#include <prometheus/registry.h>

#include "src/base/testing/catch.h"
#include "src/base/testing/manual_clock.h"
#include "src/cache/segment_store.h"
#include "src/executor/testing/metrics_text.h"
#include "worker-image/testing/local_feeder.h"
#include "worker-image/testing/picture_folder.h"
#include "worker-image/testing/test_client.h"
#include "worker-image/testing/worker_fixture.h"

namespace sluice::program {
namespace {

constexpr std::int64_t kPictures = 24;

TEST_CASE("the form of what is kept is one of three, and chosen for each pipeline without a word of it") {
  const auto keep = [](const char* form) {
    return (*read_cache_settings({.directory = "/cache", .bytes = "1000", .form = form}))->keep;
  };
  CHECK(keep(nullptr) == cache::Keep::kAutomatic);
  CHECK(keep("") == cache::Keep::kAutomatic);
  CHECK(keep("auto") == cache::Keep::kAutomatic);
  CHECK(keep("source") == cache::Keep::kSource);
  CHECK(keep("transcoded") == cache::Keep::kTranscoded);
  CHECK(keep("prefix") == cache::Keep::kOutput);
  const auto refused = read_cache_settings({.directory = "/cache", .bytes = "1000", .form = "Transcoded"});
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().message() == "SLUICE_CACHE_FORM=Transcoded: use auto, source, transcoded or prefix");
  CHECK_FALSE(read_cache_settings({.form = "transcoded"})->has_value());
}

TEST_CASE("the two variables ask for a cache together, or are refused by name") {
  struct Case {
    const char* directory;
    const char* bytes;
    const char* error;
    const char* socket = nullptr;
  };
  for (const Case& c :
       {Case{"/cache", nullptr, "SLUICE_CACHE_BYTES is not set"}, Case{nullptr, "1000", "SLUICE_CACHE_DIR is not set"},
        Case{"", "1000", "SLUICE_CACHE_DIR is not set"},
        Case{"/cache", "10GB", "SLUICE_CACHE_BYTES=10GB: use a number of bytes"},
        Case{"/cache", "-1", "SLUICE_CACHE_BYTES=-1: use a number of bytes"},
        Case{"/cache", "0", "SLUICE_CACHE_BYTES=0: use a number of bytes"},
        Case{"/cache", "1000", "SLUICE_CACHE_SOCKET is set beside SLUICE_CACHE_DIR", "/run/cache.sock"},
        Case{nullptr, "1000", "SLUICE_CACHE_SOCKET is set beside SLUICE_CACHE_DIR", "/run/cache.sock"},
        Case{nullptr, nullptr, "SLUICE_CACHE_SOCKET=cache.sock: use the path of", "cache.sock"}}) {
    const auto refused = read_cache_settings({.directory = c.directory, .bytes = c.bytes, .socket = c.socket});
    REQUIRE_FALSE(refused.ok());
    CHECK_THAT(refused.error().message(), Catch::StartsWith(c.error));
  }
  for (const char* nothing : {static_cast<const char*>(nullptr), ""})
    CHECK_FALSE(read_cache_settings({.directory = nothing, .bytes = nothing, .socket = nothing})->has_value());
  CHECK((*read_cache_settings({.socket = "/run/cache.sock"}))->socket == "/run/cache.sock");
  const auto settings = read_cache_settings({.directory = "/cache", .bytes = "20000000000"});
  REQUIRE(settings.ok());
  REQUIRE(settings->has_value());
  CHECK((*settings)->directory == "/cache");
  CHECK((*settings)->bytes == 20'000'000'000);
}

TEST_CASE("the service that the operator names is used, unless the job names a cache of its own") {
  const CacheVariables by_operator{
      .service = "cache.svc:7473", .service_files = "/etc/sluice/cache", .volumes = R"({"/data": "claim-a"})"};
  const auto settings = read_cache_settings(by_operator);
  REQUIRE(settings.ok());
  CHECK((*settings)->service == "cache.svc:7473");
  CHECK((*settings)->service_files == "/etc/sluice/cache");
  CHECK((*settings)->volumes.place_of("/data/1.jpg") == "claim-a/1.jpg");
  CHECK((*settings)->directory.empty());

  CacheVariables own = by_operator;
  own.directory = "/cache";
  own.bytes = "1000";
  CHECK((*read_cache_settings(own))->directory == "/cache");
  CHECK((*read_cache_settings(own))->service.empty());
  own.bytes = nullptr;
  CHECK_THAT(read_cache_settings(own).error().message(), Catch::StartsWith("SLUICE_CACHE_BYTES is not set"));
  own = by_operator;
  own.socket = "/run/cache.sock";
  CHECK((*read_cache_settings(own))->socket == "/run/cache.sock");
  CHECK((*read_cache_settings(own))->service.empty());

  CacheVariables wrong = by_operator;
  wrong.service_files = nullptr;
  CHECK_THAT(read_cache_settings(wrong).error().message(), Catch::StartsWith("SLUICE_CACHE_SERVICE_FILES is not set"));
  wrong = by_operator;
  wrong.volumes = "/data=claim-a";
  CHECK_THAT(read_cache_settings(wrong).error().message(), Catch::StartsWith("SLUICE_CACHE_VOLUMES: "));
  wrong.service = "";  // how a job goes without
  CHECK_FALSE(read_cache_settings(wrong)->has_value());
}

// The file system, as if each read took so long.
class SlowFiles final : public pipeline::FileReader {
 public:
  SlowFiles(sluice::testing::ManualClock& clock, std::chrono::milliseconds takes) : clock_(clock), takes_(takes) {}

  Result<void> read(const pipeline::FilePart& part, std::vector<std::uint8_t>& bytes) const override {
    ++reads;
    clock_.advance(takes_);
    return files_->read(part, bytes);
  }
  Result<pipeline::FileIdentity> identify(const std::string& path) const override { return files_->identify(path); }

  mutable std::atomic<int> reads = 0;

 private:
  sluice::testing::ManualClock& clock_;
  const std::chrono::milliseconds takes_;
  const std::shared_ptr<const pipeline::FileReader> files_ = pipeline::make_system_file_reader();
};

struct SlowSource {
  SlowSource() {
    // The pictures have been written just now by the real clock; for this one that is long ago.
    clock.jump_wall(std::chrono::system_clock::now() - clock.wall_now() + std::chrono::hours(1));
    cached = std::make_shared<const cache::CachedFiles>(
        files, cache::store_on(cache::make_system_disk(disk.path.string()), {.bytes = 64 << 20}, clock), "namespace",
        clock);
    REQUIRE(cached->wait_until_opened());
  }

  const sluice::testing::PictureFolder pictures{kPictures};
  const sluice::testing::TemporaryDirectory disk;
  sluice::testing::ManualClock clock;
  std::shared_ptr<SlowFiles> files = std::make_shared<SlowFiles>(clock, std::chrono::milliseconds(40));
  std::shared_ptr<const cache::CachedFiles> cached;
};

TEST_CASE("a feeder's batches are the same from the cache, and the second epoch does not read the source") {
  const SlowSource source;
  const auto epochs = [&](const std::shared_ptr<const pipeline::FileReader>& files) {
    sluice::testing::LocalFeeder feeder({.threads = 1, .files = files});
    sluice::testing::TestClient client(feeder.socket());
    client.open("native", source.pictures.specification());
    return client.run(6, 8, kPictures);  // every picture twice
  };
  const auto expected = epochs(nullptr);
  CHECK(same_bytes(epochs(source.cached), expected));
  CHECK(source.files->reads == kPictures);
  CHECK(same_bytes(epochs(source.cached), expected));
  CHECK(source.files->reads == kPictures);
  CHECK(source.cached->counters().hits() == 3 * kPictures);
}

TEST_CASE("a worker reads through the cache, too, and its metrics tell of it") {
  const SlowSource source;
  prometheus::Registry registry;
  SourceCache cache(registry, {"job", "namespace"}, "remote", source.cached, SourceCache::Place::kOwnDisk);
  sluice::testing::WorkerFixture worker(1, std::size_t{4} << 20, cache.files());
  const auto stream = worker.connect();
  worker.send_pipeline(stream, 1, executor::ExecutorKind::kNative, source.pictures.specification());
  stream->wait(v1::Header::kPipelineReady);
  for (std::uint64_t request = 1; request <= 3; ++request) {
    worker.request(stream, request, {0, 1, 2, 3});
    stream->wait_answers(request);
  }
  CHECK(stream->wait(v1::Header::kChunk, 1).payload == stream->wait(v1::Header::kChunk, 3).payload);
  CHECK(source.files->reads == 4);
  cache.tick();
  cache.tick();  // adds nothing
  const std::set<std::string> lines = sluice::testing::metrics_lines(registry);
  const std::string constant = R"(job_namespace="namespace",training_job="job",)";
  const std::string labels = constant + R"(placement="remote")";
  CHECK(lines.contains("sluice_cache_hits_total{" + constant + R"(form="source",placement="remote"} 8)"));
  CHECK(lines.contains("sluice_cache_misses_total{" + labels + "} 4"));
  CHECK(lines.contains("sluice_cache_files{" + labels + "} 4"));
}

}  // namespace
}  // namespace sluice::program
