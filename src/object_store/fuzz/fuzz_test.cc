#include "src/object_store/fuzz/fuzz.h"

#include "src/base/testing/catch.h"
#include "src/base/testing/mutations.h"

namespace sluice::object_store::fuzz {
namespace {

TEST_CASE("answers of stores hold out against their corpus and mutations of it") {
  CHECK(sluice::testing::run_corpus_and_mutations("src/object_store/fuzz/corpus/store_answer", store_answer) > 0);
}

}  // namespace
}  // namespace sluice::object_store::fuzz
