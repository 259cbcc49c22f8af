#include "src/pipeline/fuzz/fuzz.h"

#include "src/base/testing/catch.h"
#include "src/base/testing/mutations.h"

namespace sluice::pipeline::fuzz {
namespace {

TEST_CASE("specifications and JPEG files hold out against their corpus and mutations of it") {
  CHECK(testing::run_corpus_and_mutations("src/pipeline/fuzz/corpus/specification", specification) > 0);
  CHECK(testing::run_corpus_and_mutations("src/pipeline/fuzz/corpus/jpeg", jpeg) > 0);
}

}  // namespace
}  // namespace sluice::pipeline::fuzz
