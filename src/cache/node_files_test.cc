// Files of two processes over one node's cache: each is read from the source once, and every byte is right whatever
// becomes of the cache.
#include <future>

#include "src/base/testing/catch.h"
#include "src/cache/cached_files.h"
#include "src/cache/testing/node.h"
#include "src/cache/testing/slow_files.h"
#include "src/cache/testing/store_fixture.h"

namespace sluice::cache {
namespace {

using testing::Bytes;
using testing::Node;

constexpr int kFiles = 40;
constexpr std::size_t kFileBytes = 5000;

std::string file_path(int i) { return "/data/" + std::to_string(i) + ".jpg"; }
Bytes content_of(int i, int version = 1) { return testing::value_of(testing::key_of(i, version), kFileBytes); }

struct FilesOfNode {
  FilesOfNode() {
    for (int i = 0; i < kFiles; ++i) source->write(file_path(i), content_of(i));
    clock.advance(std::chrono::hours(1));
    node.start();
    for (auto* files : {&first, &second}) {
      *files = std::make_unique<CachedFiles>(
          source, node_cache_at(std::make_unique<testing::NodeLine>(node), files == &first ? 1 : 2, clock), "team",
          clock);
      REQUIRE((*files)->wait_until_opened());
    }
  }
  // Reads every file and compares; the number of reads of the source.
  int epoch(const std::unique_ptr<CachedFiles>& files, int version = 1,
            const std::function<void(int)>& before_file = nullptr) const {
    const int before = source->reads;
    Bytes bytes;
    for (int i = 0; i < kFiles; ++i) {
      if (before_file) before_file(i);
      REQUIRE(files->read(file_path(i), bytes).ok());
      CHECK(bytes == content_of(i, version));
    }
    return source->reads - before;
  }

  sluice::testing::ManualClock clock;
  Node node{clock};
  std::shared_ptr<testing::SlowFiles> source = std::make_shared<testing::SlowFiles>(clock);
  std::unique_ptr<CachedFiles> first, second;
};

TEST_CASE("two processes read each file once, and not again after the daemon has started anew") {
  FilesOfNode cache;
  CHECK(cache.epoch(cache.first) == kFiles);
  CHECK(cache.epoch(cache.second) == 0);
  CHECK(cache.epoch(cache.first) == 0);
  cache.node.start();
  CHECK(cache.epoch(cache.second) == 0);
  CHECK(cache.second->counters().hits() == 2 * kFiles);
  CHECK(cache.second->counters().misses == 0);
}

TEST_CASE("a file that changes is read anew by both") {
  FilesOfNode cache;
  cache.epoch(cache.first);
  for (int i = 0; i < kFiles; ++i) cache.source->write(file_path(i), content_of(i, 2));
  cache.clock.advance(std::chrono::hours(1));
  CHECK(cache.epoch(cache.second, 2) == kFiles);
  CHECK(cache.epoch(cache.first, 2) == 0);
}

TEST_CASE("bytes are right while the daemon is full, damaged, killed, started anew or late") {
  FilesOfNode cache;
  SECTION("full") {
    cache.node.start({.bytes = 20 * kFileBytes});
    CHECK(cache.epoch(cache.first) == kFiles);
    const int reads = cache.epoch(cache.second);
    CHECK(reads > 0);
    CHECK(reads < kFiles);
    CHECK(cache.epoch(cache.first) == reads);
  }
  SECTION("damaged on its disk") {
    cache.epoch(cache.first);
    auto& bytes = *cache.node.disk->files.begin()->second;
    for (std::size_t at = 100; at < bytes.size(); at += 10'000) bytes[at] ^= 4;
    CHECK(cache.epoch(cache.second) > 0);
    CHECK(cache.epoch(cache.first) == 0);
    CHECK(cache.node.counters->store.damaged > 0);
  }
  SECTION("damaged on the way") {
    cache.epoch(cache.first);
    cache.node.on_its_way = [](Bytes& answer) { answer[answer.size() / 2] ^= 4; };
    CHECK(cache.epoch(cache.second) == kFiles);
    CHECK(cache.second->counters().damaged == kFiles);
  }
  SECTION("a full disk") {
    cache.node.disk->room = 12'345;
    CHECK(cache.epoch(cache.first) == kFiles);
    CHECK(cache.epoch(cache.second) > kFiles / 2);
  }
  SECTION("killed within an epoch, and never back") {
    cache.epoch(cache.first);
    const int reads = cache.epoch(cache.second, 1, [&](int i) {
      if (i == kFiles / 2) cache.node.stop();
    });
    CHECK(reads == kFiles / 2);
    CHECK(cache.epoch(cache.first) == kFiles);
  }
  SECTION("killed within an epoch, and back some files later") {
    cache.epoch(cache.first);
    const int reads = cache.epoch(cache.second, 1, [&](int i) {
      if (i == 10) cache.node.stop();
      if (i == 15) cache.node.start();
    });
    CHECK(reads >= 5);
    CHECK(reads < 30);  // the back-off of a second is 20 reads of the source
    CHECK(cache.epoch(cache.second) == 0);
  }
  SECTION("late") {
    cache.epoch(cache.first);
    cache.node.fails_with = Error(ErrorCode::kDeadlineExceeded, "no answer in time");
    cache.node.takes = NodeCacheClient::kPatience;
    const int before = cache.node.questions;
    CHECK(cache.epoch(cache.second) == kFiles);
    CHECK(cache.node.questions - before < 4);
  }
}

TEST_CASE("objects are read ahead by the cache's answers: what another process has kept is not, what has gone is") {
  FilesOfNode cache;
  cache.source->write("s3://b/k", content_of(1));
  const auto state = *cache.source->identify("s3://b/k");
  const pipeline::FilePart part("s3://b/k", {0, 100, state.bytes, state.modified_ns}, {"\"e\"", nullptr});
  const auto reads = [&](const std::unique_ptr<CachedFiles>& files) {
    const int before = cache.source->reads, asked_before = cache.node.questions - cache.node.keeps;
    cache.source->ahead.clear();
    const auto ahead = files->read_ahead([&](std::size_t) { return part; }, 1, {});
    REQUIRE(ahead != nullptr);
    std::promise<void> come;
    if (ahead->when_come([&] { come.set_value(); })) come.get_future().wait();
    Bytes bytes;
    REQUIRE(files->read(part, bytes).ok());
    CHECK(cache.node.questions - cache.node.keeps - asked_before <= 2);  // the second tells what a question takes
    const int count = cache.source->reads - before;
    CHECK(cache.source->ahead.size() == static_cast<std::size_t>(count));
    return count;
  };
  CHECK(reads(cache.first) == 1);
  CHECK(reads(cache.second) == 0);
  cache.node.disk = std::make_shared<testing::DiskContent>();
  cache.node.start();
  CHECK(reads(cache.second) == 1);
  cache.node.stop();
  CHECK(reads(cache.first) == 1);
}

// As a pod sees a volume: at a path of its own, with numbers of its own.
struct Pod {
  Pod(FilesOfNode& cache, const std::string& mounts, const std::string& own_name)
      : source(std::make_shared<testing::SlowFiles>(cache.clock)) {
    source->volumes = *pipeline::SharedVolumes::parse(mounts);
    files = std::make_unique<CachedFiles>(
        source, node_cache_at(std::make_unique<testing::NodeLine>(cache.node), std::nullopt, cache.clock), "team",
        cache.clock, Keep::kSource, 0, own_name);
    REQUIRE(files->wait_until_opened());
  }
  bool reads_source_for(const std::string& path, const Bytes& content) const {
    const int before = source->reads;
    Bytes bytes;
    REQUIRE(files->read(path, bytes).ok());
    CHECK(bytes == content);
    return source->reads > before;
  }

  const std::shared_ptr<testing::SlowFiles> source;
  std::unique_ptr<CachedFiles> files;
};

TEST_CASE("pods share the files of their volumes wherever these are mounted, and no others") {
  FilesOfNode cache;
  Pod first(cache, R"({"/data": "claim-a"})", "pod 1:");
  Pod second(cache, R"({"/sets": "claim-a", "/data": "claim-b"})", "pod 2:");
  const auto write = [](const Pod& pod, const std::string& path, int content) {
    pod.source->write(path, content_of(content));
  };
  write(first, "/tmp/1.jpg", 3);
  write(second, "/tmp/1.jpg", 4);  // with the same numbers
  write(first, "/data/1.jpg", 1);
  write(second, "/data/1.jpg", 2);
  write(second, "/sets/1.jpg", 1);
  cache.clock.advance(std::chrono::hours(1));
  CHECK(first.reads_source_for("/data/1.jpg", content_of(1)));
  CHECK_FALSE(second.reads_source_for("/sets/1.jpg", content_of(1)));
  CHECK(second.reads_source_for("/data/1.jpg", content_of(2)));  // of another volume
  CHECK(first.reads_source_for("/tmp/1.jpg", content_of(3)));
  CHECK(second.reads_source_for("/tmp/1.jpg", content_of(4)));  // of none
  CHECK_FALSE(first.reads_source_for("/tmp/1.jpg", content_of(3)));
  CHECK_FALSE(second.reads_source_for("/tmp/1.jpg", content_of(4)));
  // Changed by a third pod.
  write(second, "/sets/1.jpg", 5);
  CHECK(second.reads_source_for("/sets/1.jpg", content_of(5)));
}

TEST_CASE("the other forms of files are shared, too") {
  FilesOfNode cache;
  const pipeline::Prefix prefix{"fingerprint", 1};
  const auto with_outputs = [&] {
    auto files = std::make_unique<CachedFiles>(
        cache.source, node_cache_at(std::make_unique<testing::NodeLine>(cache.node), 1, cache.clock), "team",
        cache.clock, Keep::kOutput);
    REQUIRE(files->wait_until_opened());
    return files;
  };
  const auto first = with_outputs(), second = with_outputs();
  Bytes bytes;
  const auto read = first->read_image(file_path(0), prefix, bytes);
  REQUIRE(read.ok());
  REQUIRE(read->wants_output_of);
  REQUIRE(first->has_room_for_output(file_path(0), prefix, *read->wants_output_of, 3));
  first->keep_output(file_path(0), prefix, *read->wants_output_of, Bytes{1, 2, 3});
  const auto again = second->read_image(file_path(0), prefix, bytes);
  REQUIRE(again.ok());
  CHECK(again->form == pipeline::FileForm::kOutput);
  CHECK(bytes == Bytes{1, 2, 3});
}

// Remembers what it is told, and has nothing.
class ListeningStore final : public RecordStore {
 public:
  bool find(const Key& key, Bytes&) override {
    asked.push_back(hash_of(key.place));
    return false;
  }
  bool has_room_for(const Key&, std::size_t) override { return false; }
  bool is_paused() override { return false; }
  void add(const Key&, std::span<const std::uint8_t>) override {}
  std::uint64_t free_bytes() const override { return 0; }
  bool takes_orders() const override { return true; }
  void announce(std::span<const std::uint64_t> places, const EpochOrder&) override {
    announced.assign(places.begin(), places.end());
  }

  std::vector<std::uint64_t> asked;
  std::vector<std::uint64_t> announced;
};

TEST_CASE("what is announced of an epoch are the places that its samples ask for") {
  for (const Keep keep : {Keep::kSource, Keep::kTranscoded, Keep::kOutput}) {
    INFO(name_of(keep));
    sluice::testing::ManualClock clock;
    const auto source = std::make_shared<testing::SlowFiles>(clock);
    for (int i = 0; i < kFiles; ++i) source->write(file_path(i), content_of(i));
    auto opened = std::make_unique<ListeningStore>();
    ListeningStore& store = *opened;
    const auto held = std::make_shared<std::unique_ptr<RecordStore>>(std::move(opened));
    const CachedFiles files(
        source,
        [held](Counters&, const std::stop_token&) { return Result<std::unique_ptr<RecordStore>>(std::move(*held)); },
        "team", clock, keep);
    REQUIRE(files.wait_until_opened());
    const pipeline::Prefix prefix{"fingerprint", 1};
    files.announce([](std::size_t i) { return pipeline::FilePart(file_path(static_cast<int>(i))); }, prefix,
                   {.length = kFiles});
    REQUIRE(store.announced.size() == kFiles);
    Bytes bytes;
    for (int i = 0; i < kFiles; ++i) {
      store.asked.clear();
      REQUIRE(files.read_image(file_path(i), prefix, bytes).ok());
      REQUIRE_FALSE(store.asked.empty());
      CHECK(store.asked.front() == store.announced[static_cast<std::size_t>(i)]);
    }
  }
}

}  // namespace
}  // namespace sluice::cache
