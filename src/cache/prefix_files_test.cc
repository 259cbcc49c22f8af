// A cache that keeps what the first operations of pipelines make: the samples are the files', whatever becomes of it.
#include "src/base/testing/catch.h"
#include "src/cache/cached_files.h"
#include "src/cache/testing/cached_files_fixture.h"
#include "src/cache/testing/picture_pipelines.h"
#include "src/pipeline/testing/jpeg_encoder.h"

namespace sluice::cache {
namespace {

using testing::Bytes;
using testing::kRandomFromTheStart;
using testing::kValidation;
using testing::path_of;

constexpr int kPictures = 12;
constexpr const char* kRandomCrop =
    R"([{"op": "decode_rgb"}, {"op": "resize", "size": [40]}, {"op": "random_crop", "size": [32, 32]},
    {"op": "random_horizontal_flip", "p": 0.5}])";

Bytes small_picture(int i, int version = 1) {
  return pipeline::testing::encode_picture({48 + i, 60}, {.quality = 80 + version});
}

struct PrefixFiles : testing::CachedFilesFixture {
  PrefixFiles() {
    source->takes = std::chrono::nanoseconds(0);  // as fast as the cache
    write(1);
    clock.advance(std::chrono::hours(1));
    start(Keep::kOutput);
  }
  const Counters& counters() const { return files->counters(); }
  void write(int version) {
    for (int i = 0; i < kPictures; ++i) source->write(path_of(i), small_picture(i, version));
  }

  Bytes epoch_of(const char* ops, std::uint32_t seed, std::shared_ptr<const pipeline::FileReader> reader) const {
    return testing::epoch_of(*testing::pipeline_of(ops, kPictures, std::move(reader)), seed);
  }
  // Compares an epoch with one of the files alone; the number of reads of the source that it took.
  int epoch(const char* ops, std::uint32_t seed = 1) const {
    const Bytes expected = epoch_of(ops, seed, source);
    const int before = source->reads;
    CHECK(epoch_of(ops, seed, testing::borrowed(*files)) == expected);
    return source->reads - before;
  }
};

TEST_CASE("the second epoch of a validation set and of random crops reads no file, from a fast source, too") {
  for (const char* ops : {kValidation, kRandomCrop}) {
    PrefixFiles cache;
    CHECK(cache.epoch(ops, 1) == kPictures);
    CHECK(cache.counters().records == kPictures);
    for (std::uint32_t seed = 2; seed < 5; ++seed) CHECK(cache.epoch(ops, seed) == 0);
    CHECK(cache.counters().outputs.hits == 3 * kPictures);
    CHECK(cache.counters().source.hits == 0);
    cache.start(Keep::kOutput);  // a new process
    CHECK(cache.epoch(ops, 9) == 0);
  }
}

TEST_CASE("pipelines with the same first operations share what they make, and others do not") {
  PrefixFiles cache;
  const std::string another = std::string(kRandomCrop).replace(std::string(kRandomCrop).find("40"), 2, "44");
  CHECK(cache.epoch(kRandomCrop) == kPictures);
  CHECK(cache.epoch(kValidation) == kPictures);
  CHECK(cache.epoch(another.c_str()) == kPictures);
  CHECK(cache.counters().records == 3 * kPictures);
  for (const char* ops : {kRandomCrop, kValidation, another.c_str()}) CHECK(cache.epoch(ops, 5) == 0);
}

TEST_CASE("where the first operation is random, the bytes of slow files are kept") {
  PrefixFiles cache;
  CHECK(cache.epoch(kRandomFromTheStart) == kPictures);
  CHECK(cache.epoch(kRandomFromTheStart) == kPictures);
  cache.source->takes = std::chrono::milliseconds(50);
  CHECK(cache.epoch(kRandomFromTheStart) == kPictures);
  CHECK(cache.epoch(kRandomFromTheStart, 2) == 0);
  CHECK(cache.counters().source.hits == kPictures);
  CHECK(cache.epoch(kValidation) == 0);  // made from what is kept
}

TEST_CASE("a file that has changed, or may change without a trace, has its own samples") {
  PrefixFiles cache;
  CHECK(cache.epoch(kValidation) == kPictures);
  cache.write(2);
  CHECK(cache.epoch(kValidation) == kPictures);
  CHECK(cache.epoch(kValidation) == kPictures);  // it has not settled
  cache.clock.advance(CachedFiles::kSettled);
  CHECK(cache.epoch(kValidation) == kPictures);
  CHECK(cache.epoch(kValidation) == 0);
}

TEST_CASE("samples are the same with a cache that is full or damaged, or whose disk fails") {
  PrefixFiles cache;
  SECTION("full") {
    cache.start(Keep::kOutput, {.bytes = 20'000});
    CHECK(cache.epoch(kValidation) == kPictures);
    const int read = cache.epoch(kValidation);
    CHECK(read > 0);
    CHECK(read < kPictures);
    CHECK(cache.counters().not_stored_full > 0);
  }
  SECTION("a disk that refuses") {
    cache.disk->refuses_writes = true;
    CHECK(cache.epoch(kValidation) == kPictures);
    CHECK(cache.epoch(kValidation) == kPictures);
    CHECK(cache.counters().write_errors == 1);
    CHECK(cache.counters().not_stored_failed == 2 * kPictures);
  }
  SECTION("damaged") {
    cache.epoch(kValidation);
    auto& bytes = *cache.disk->files.begin()->second;
    for (std::size_t at = 400; at < bytes.size(); at += 5'000) bytes[at] ^= 4;
    CHECK(cache.epoch(kValidation) > 0);
    CHECK(cache.counters().damaged > 0);
    CHECK(cache.epoch(kValidation) == 0);
  }
  SECTION("no reads from its disk") {
    cache.epoch(kValidation);
    cache.disk->refuses_reads = true;
    CHECK(cache.epoch(kValidation) == kPictures);
  }
}

}  // namespace
}  // namespace sluice::cache
