#include "src/executor/native_batch.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "src/base/testing/catch.h"
#include "src/base/testing/temporary_directory.h"
#include "src/executor/testing/whole_batch.h"
#include "src/pipeline/testing/jpeg_encoder.h"
#include "src/pipeline/testing/specification.h"

namespace sluice::executor {
namespace {

namespace fs = std::filesystem;

struct PictureBatch {
  testing::TemporaryDirectory folder;
  const fs::path& root = folder.path;
  PipelineHandle pipeline;

  explicit PictureBatch(int size) {
    std::vector<pipeline::testing::File> files;
    for (int i = 0; i < 6; ++i) {
      const auto bytes = pipeline::testing::encode_picture({90 + i, 70}, {});
      std::ofstream(root / (std::to_string(i) + ".jpg"), std::ios::binary)
          .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
      files.push_back({std::to_string(i) + ".jpg", 100 + i});
    }
    const nlohmann::json specification = {
        {"version", 2},
        {"source", {{"kind", "image_files"}, {"root", root.string()}}},
        {"ops", {{{"op", "decode_rgb"}}, {{"op", "resize"}, {"size", {size, size}}}, {{"op", "to_tensor"}}}}};
    auto made =
        make_pipeline(1, ExecutorKind::kNative,
                      *transport::SealedMemory::copy_of(pipeline::testing::specification(specification, files)), "", 0);
    REQUIRE(made.ok());
    pipeline = *made;
  }

  BatchRequest request(std::vector<std::int64_t> indices) const {
    BatchRequest request;
    request.pipeline = pipeline;
    request.indices = std::move(indices);
    return request;
  }
};

using sluice::testing::make_whole_batch;

bool never() { return false; }

TEST_CASE("labels follow the indices") {
  const PictureBatch f(16);
  const BatchRequest request = f.request({5, 0, 3});
  std::vector<std::byte> slot(f.pipeline->native->schema().batch_bytes(3));
  NativeScratch scratch;
  REQUIRE(make_whole_batch(request, slot, scratch).ok());
  std::int64_t labels[3];
  std::memcpy(labels, slot.data() + native_tensors(*f.pipeline, 3)[1].offset, sizeof(labels));
  CHECK(labels[0] == 105);
  CHECK(labels[1] == 100);
  CHECK(labels[2] == 103);
  CHECK(scratch.take_costs().decode.seconds > 0);
}

TEST_CASE("chunks put together and finished are the whole batch") {
  for (const int size : {16, 700}) {  // all samples in one chunk; one sample a chunk
    INFO(size);
    const PictureBatch f(size);
    const BatchRequest request = f.request({0, 1, 2, 3, 4});
    std::vector<std::byte> whole(f.pipeline->native->schema().batch_bytes(5)), assembled(whole.size());
    NativeScratch scratch;
    REQUIRE(make_whole_batch(request, whole, scratch).ok());
    auto arena = *transport::Arena::create(std::size_t{16} << 20);
    std::size_t chunks = 0, samples = 0;
    bool last = false;
    const auto done = run_native_chunks(request, *arena, scratch, never, {}, [&](PixelChunk chunk) {
      CHECK(!last);
      CHECK(chunk.first_sample == samples);
      const std::size_t sample_bytes = f.pipeline->native->wire_sample_bytes();
      CHECK(chunk.bytes == chunk.samples * sample_bytes);
      for (std::size_t i = 0; i < chunk.samples; ++i) {
        finish_in_slot(*f.pipeline->native,
                       {reinterpret_cast<const std::uint8_t*>(chunk.slot.data()) + i * sample_bytes, sample_bytes}, 5,
                       samples + i, assembled);
      }
      samples += chunk.samples;
      last = chunk.last;
      ++chunks;
    });
    REQUIRE(done.ok());
    write_labels(request, assembled);
    CHECK(last);
    CHECK(samples == 5);
    CHECK(chunks == (size == 16 ? 1 : 5));
    CHECK(assembled == whole);
  }
}

TEST_CASE("an index outside the data set is refused before any work") {
  const PictureBatch f(16);
  CHECK(check_indices(f.request({})).ok());
  CHECK(check_indices(f.request({0, 5})).ok());
  for (const std::int64_t wrong : {std::int64_t{-1}, std::int64_t{6}, INT64_MAX, INT64_MIN}) {
    CHECK_THAT(check_indices(f.request({0, wrong})).error().message(),
               Catch::Contains("indices[1]") && Catch::Contains("6 samples"));
  }
}

TEST_CASE("an empty batch is a batch") {
  const PictureBatch f(16);
  auto arena = *transport::Arena::create(1 << 20);
  NativeScratch scratch;
  int chunks = 0;
  REQUIRE(run_native_chunks(f.request({}), *arena, scratch, never, {}, [&](PixelChunk chunk) {
            CHECK(chunk.last);
            CHECK(chunk.samples == 0);
            ++chunks;
          }).ok());
  CHECK(chunks == 1);
}

TEST_CASE("a cancelled batch stops between samples") {
  const PictureBatch f(16);
  int asked = 0;
  auto arena = *transport::Arena::create(1 << 20);
  NativeScratch scratch;
  const auto cancelled = [&] { return ++asked > 2; };
  const auto done =
      run_native_chunks(f.request({0, 1, 2, 3, 4, 5}), *arena, scratch, cancelled, {}, [](const PixelChunk&) {});
  CHECK(done.error().code() == ErrorCode::kCancelled);
  CHECK(asked == 3);
}

TEST_CASE("a damaged file is named with its place in the batch") {
  const PictureBatch f(16);
  std::ofstream(f.root / "4.jpg") << "no JPEG";
  std::vector<std::byte> slot(f.pipeline->native->schema().batch_bytes(2));
  NativeScratch scratch;
  const auto done = make_whole_batch(f.request({1, 4}), slot, scratch);
  REQUIRE(!done.ok());
  CHECK_THAT(done.error().message(), Catch::Contains("sample 1 of the batch, index 4") && Catch::Contains("4.jpg"));
}

TEST_CASE("the costs of a batch are its own, also after one that failed or was not wanted") {
  const PictureBatch f(16);
  auto arena = *transport::Arena::create(1 << 20);
  std::vector<std::byte> slot(f.pipeline->native->schema().batch_bytes(2));
  const auto bytes_made = [&](NativeScratch& scratch, bool in_chunks, std::vector<std::int64_t> indices,
                              const std::function<bool()>& cancelled) {
    std::vector<std::pair<std::string, std::uint64_t>> made;
    if (in_chunks) {
      (void)run_native_chunks(f.request(indices), *arena, scratch, cancelled, {}, [](const PixelChunk&) {});
    } else {
      (void)make_whole_batch(f.request(indices), slot, scratch);
    }
    for (const auto& cost : costs_by_op(scratch.take_costs())) made.emplace_back(cost.op, cost.bytes);
    return made;
  };
  for (const bool in_chunks : {false, true}) {
    INFO(in_chunks);
    NativeScratch scratch;
    const auto alone = bytes_made(scratch, in_chunks, {1, 2}, never);
    CHECK(alone.size() == (in_chunks ? 3 : 4));
    CHECK(alone[0] == std::pair<std::string, std::uint64_t>(
                          "read", fs::file_size(f.root / "1.jpg") + fs::file_size(f.root / "2.jpg")));
    CHECK(alone[2] == std::pair<std::string, std::uint64_t>("resample", 2 * 3 * 16 * 16));
    fs::rename(f.root / "3.jpg", f.root / "3.away");
    CHECK(bytes_made(scratch, in_chunks, {0, 3}, never)[0].second == fs::file_size(f.root / "0.jpg"));
    fs::rename(f.root / "3.away", f.root / "3.jpg");
    CHECK(bytes_made(scratch, in_chunks, {1, 2}, never) == alone);
    int asked = 0;
    bytes_made(scratch, in_chunks, {4, 5}, [&] { return ++asked > 1; });
    CHECK(bytes_made(scratch, in_chunks, {1, 2}, never) == alone);
  }
}

TEST_CASE("what was not read has not waited") {
  CHECK(!blocked_seconds({}));
  CHECK(costs_by_op({}).empty());
  CHECK(blocked_seconds({.read = {0.5, 1}, .blocked_seconds = 2}) == 2);
}

TEST_CASE("what an operation was spared is told under a name of its own") {
  pipeline::OpCosts costs;
  costs.ops["color_jitter"] = {0.5, 100, 300};
  costs.ops["grayscale"] = {0.25, 100, 0};
  CHECK(costs_by_op(costs) == std::vector<transport::OpCost>{{"color_jitter", 0.5, 100},
                                                             {"color_jitter spared", 0, 300},
                                                             {"grayscale", 0.25, 100}});
}

TEST_CASE("errors wear Python's clothes") {
  struct Case {
    ErrorCode code;
    const char* type;
    bool executor_fault;
  };
  for (const Case& test :
       {Case{ErrorCode::kNotFound, "FileNotFoundError", false},
        Case{ErrorCode::kPermissionDenied, "PermissionError", false}, Case{ErrorCode::kDataLoss, "OSError", false},
        Case{ErrorCode::kInvalidArgument, "ValueError", false},
        Case{ErrorCode::kResourceExhausted, "MemoryError", true}, Case{ErrorCode::kInternal, "RuntimeError", false}}) {
    const BatchFailure failure = to_failure(Error(test.code, "what"));
    CHECK(failure.failure.exception_type == test.type);
    CHECK(failure.executor_fault == test.executor_fault);
    CHECK(failure.failure.message == "what");
  }
}

TEST_CASE("a fingerprint tells executor and content apart") {
  const std::string a = pipeline_fingerprint(ExecutorKind::kPython, "x");
  CHECK(a.size() == 64);
  CHECK(a != pipeline_fingerprint(ExecutorKind::kNative, "x"));
  CHECK(a != pipeline_fingerprint(ExecutorKind::kPython, "y"));
  // sha256("pythonx"), as any other program computes it.
  CHECK(a == "794044bcc3e47b4f328f17091ba8075593d7a02239aacffdd35f5e9763115330");
}

}  // namespace
}  // namespace sluice::executor
