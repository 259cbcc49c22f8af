// A cache that keeps coefficients: the pixels are the files', whatever becomes of the records.
#include "src/base/testing/catch.h"
#include "src/cache/cached_files.h"
#include "src/cache/testing/cached_files_fixture.h"
#include "src/cache/testing/picture_pipelines.h"
#include "src/pipeline/jpeg_decoder.h"
#include "src/pipeline/testing/decoded_pixels.h"
#include "src/pipeline/testing/jpeg_encoder.h"

namespace sluice::cache {
namespace {

using pipeline::FileForm;
using pipeline::testing::encode_picture;
using testing::Bytes;
using testing::path_of;

constexpr int kAnyPictures = 12;

Bytes any_picture(int i, int version = 1) {
  return encode_picture({40 + i, 60}, {.quality = 80 + version, .progressive = i % 4 == 3});
}

Bytes pixels_of(FileForm form, const Bytes& bytes) {
  pipeline::JpegDecoder decoder;
  const auto size = form == FileForm::kFile ? decoder.open(bytes) : decoder.open_coefficients(bytes);
  REQUIRE(size.ok());
  const auto view = decoder.decode({0, 0, size->height, size->width});
  REQUIRE(view.ok());
  return pipeline::testing::pixels_of(*view);
}

struct TranscodedFiles : testing::CachedFilesFixture {
  TranscodedFiles() {
    source->takes = std::chrono::nanoseconds(0);  // as fast as the cache
    for (int i = 0; i < kAnyPictures; ++i) source->write(path_of(i), any_picture(i));
    clock.advance(std::chrono::hours(1));
    start(Keep::kTranscoded);
  }
  const Counters& counters() const { return files->counters(); }
  FileForm form_of(const std::string& path) const {
    Bytes bytes;
    const auto form = files->read_image(path, {}, bytes);
    REQUIRE(form.ok());
    return form->form;
  }
  // Reads every picture and compares its pixels; the number of those that came as coefficients.
  int epoch(int version = 1) const {
    int coefficients = 0;
    for (int i = 0; i < kAnyPictures; ++i) {
      Bytes bytes;
      const auto form = files->read_image(path_of(i), {}, bytes);
      REQUIRE(form.ok());
      CHECK(pixels_of(form->form, bytes) == pixels_of(FileForm::kFile, any_picture(i, version)));
      coefficients += form->form == FileForm::kCoefficients ? 1 : 0;
    }
    return coefficients;
  }
};

// Other machines keep the files' own bytes.
bool has_kernels() { return pipeline::fast_jpeg_kernels() != nullptr; }

TEST_CASE("pictures come as coefficients from the first epoch on, from a fast source, too") {
  if (!has_kernels()) return;
  TranscodedFiles cache;
  CHECK(cache.epoch() == kAnyPictures);
  CHECK(cache.source->reads == kAnyPictures);
  CHECK(cache.epoch() == kAnyPictures);
  cache.start(Keep::kTranscoded);
  CHECK(cache.epoch() == kAnyPictures);
  CHECK(cache.source->reads == kAnyPictures);
  CHECK(cache.counters().transcoded == 0);
  CHECK(cache.counters().hits() == kAnyPictures);
  Bytes bytes;
  REQUIRE(cache.files->read(path_of(0), bytes).ok());
  CHECK(bytes == any_picture(0));  // who asks for the file gets the file
  cache.start(Keep::kSource);
  CHECK(cache.epoch() == 0);
}

TEST_CASE("content tells what was read, and what making and storing its form took") {
  if (!has_kernels()) return;
  const TranscodedFiles cache;
  Bytes bytes;
  const auto made = cache.files->read_image(path_of(0), {}, bytes);
  REQUIRE(made.ok());
  CHECK(made->bytes == any_picture(0).size());
  CHECK(made->keeping_seconds > 0);
  const auto found = cache.files->read_image(path_of(0), {}, bytes);
  REQUIRE(found.ok());
  CHECK(found->bytes == bytes.size());
  CHECK(found->keeping_seconds == 0);
}

TEST_CASE("files that were kept as they are become coefficients without the source") {
  if (!has_kernels()) return;
  TranscodedFiles cache;
  cache.source->takes = std::chrono::milliseconds(50);
  cache.start(Keep::kSource);
  CHECK(cache.epoch() == 0);
  cache.start(Keep::kTranscoded);
  CHECK(cache.epoch() == kAnyPictures);
  CHECK(cache.source->reads == kAnyPictures);
}

TEST_CASE("what has no coefficients, or has many, comes as it is and is tried once") {
  if (!has_kernels()) return;
  const Bytes many = encode_picture({400, 400}, {.quality = 1, .noise = 0});
  Bytes cut = any_picture(0);
  cut.resize(cut.size() - 2);
  const Bytes rare[] = {encode_picture({40, 60}, {.components = 4}), Bytes{'n', 'o', 'n', 'e'}, cut, many};
  for (const Bytes& content : rare) {
    for (const auto takes : {std::chrono::milliseconds(0), std::chrono::milliseconds(50)}) {
      TranscodedFiles cache;
      cache.source->write("/data/rare", content);
      cache.source->takes = takes;
      cache.clock.advance(CachedFiles::kSettled);
      for (int epoch = 0; epoch < 3; ++epoch) {
        Bytes bytes;
        const auto form = cache.files->read_image(std::string("/data/rare"), {}, bytes);
        CHECK((form.ok() && form->form == FileForm::kFile));
        CHECK(bytes == content);
      }
      const bool is_slow = takes.count() > 0;
      CHECK(cache.source->reads == (is_slow ? 1 : 3));
      CHECK(cache.counters().transcoded == 0);
      CHECK(cache.counters().records == (is_slow ? 2 : 1));  // that there are none, and the file
    }
  }
}

TEST_CASE("a file that has changed, or may change without a trace, has its own pixels") {
  if (!has_kernels()) return;
  TranscodedFiles cache;
  CHECK(cache.epoch() == kAnyPictures);
  for (int i = 0; i < kAnyPictures; ++i) cache.source->write(path_of(i), any_picture(i, 2));
  CHECK(cache.epoch(2) == 0);
  cache.clock.advance(CachedFiles::kSettled);
  CHECK(cache.epoch(2) == kAnyPictures);
  cache.source->while_reading = [&] { cache.source->write(path_of(1), any_picture(1, 3)); };
  cache.source->write(path_of(1), any_picture(1, 2));
  cache.clock.advance(CachedFiles::kSettled);
  CHECK(cache.form_of(path_of(1)) == FileForm::kFile);
}

TEST_CASE("pixels are the same with a cache that is full or damaged, and nothing is transcoded in vain") {
  if (!has_kernels()) return;
  TranscodedFiles cache;
  SECTION("full") {
    cache.start(Keep::kTranscoded, {.bytes = 20'000});
    const int kept = cache.epoch();
    CHECK(kept > 0);
    CHECK(kept < kAnyPictures);
    CHECK(cache.epoch() == kept);
    CHECK(cache.counters().transcoded == static_cast<std::uint64_t>(kept));
  }
  SECTION("a disk that refuses") {
    cache.disk->refuses_writes = true;
    CHECK(cache.epoch() == 1);
    CHECK(cache.epoch() == 0);
    CHECK(cache.counters().transcoded == 1);
  }
  SECTION("damaged") {
    cache.epoch();
    auto& bytes = *cache.disk->files.begin()->second;
    for (std::size_t at = 100; at < bytes.size(); at += 5'000) bytes[at] ^= 4;
    CHECK(cache.epoch() == kAnyPictures);
    CHECK(cache.counters().damaged > 0);
    CHECK(cache.source->reads > kAnyPictures);
  }
}

}  // namespace
}  // namespace sluice::cache
