#include "src/pipeline/fuzz/fuzz.h"

#include "src/base/testing/catch.h"
#include "src/base/testing/mutations.h"

namespace sluice::pipeline::fuzz {
namespace {

TEST_CASE("specifications, images and sounds hold out against their corpus and mutations of it") {
  CHECK(sluice::testing::run_corpus_and_mutations("src/pipeline/fuzz/corpus/specification", specification) > 0);
  CHECK(sluice::testing::run_corpus_and_mutations("src/pipeline/fuzz/corpus/flac", flac) > 0);
  CHECK(sluice::testing::run_corpus_and_mutations("src/pipeline/fuzz/corpus/jpeg", jpeg) > 0);
  CHECK(sluice::testing::run_corpus_and_mutations("src/pipeline/fuzz/corpus/jpeg_coefficients", jpeg_coefficients) > 0);
  CHECK(sluice::testing::run_corpus_and_mutations("src/pipeline/fuzz/corpus/png", png) > 0);
  CHECK(sluice::testing::run_corpus_and_mutations("src/pipeline/fuzz/corpus/webp", webp) > 0);
}

}  // namespace
}  // namespace sluice::pipeline::fuzz
