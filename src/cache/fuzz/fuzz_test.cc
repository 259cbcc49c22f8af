#include "src/cache/fuzz/fuzz.h"

#include "src/base/testing/catch.h"
#include "src/base/testing/mutations.h"

namespace sluice::cache::fuzz {
namespace {

TEST_CASE("segments hold out against their corpus and mutations of it") {
  CHECK(sluice::testing::run_corpus_and_mutations("src/cache/fuzz/corpus/segment", segment) > 0);
}

TEST_CASE("a node's cache holds out against its corpus of messages and mutations of it") {
  CHECK(sluice::testing::run_corpus_and_mutations("src/cache/fuzz/corpus/node_message", node_message) > 0);
}

}  // namespace
}  // namespace sluice::cache::fuzz
