#include <string>

#include "src/base/testing/catch.h"
#include "src/base/testing/mutations.h"
#include "src/kube/fuzz/fuzz.h"

namespace sluice::kube::fuzz {
namespace {

TEST_CASE("what is parsed holds out against its corpus and mutations of it") {
  struct Target {
    const char* name;
    void (*run)(std::string_view);
  };
  const Target targets[] = {{"watch", watch},         {"status", status},         {"quantity", quantity},
                            {"timestamp", timestamp}, {"kubeconfig", kubeconfig}, {"exec_credential", exec_credential}};
  for (const Target& target : targets) {
    INFO(target.name);
    REQUIRE(testing::run_corpus_and_mutations(std::string("src/kube/fuzz/corpus/") + target.name, target.run) > 0);
  }
}

}  // namespace
}  // namespace sluice::kube::fuzz
