#include "worker-image/program/freed_memory.h"

#include <sys/resource.h>

#include <array>
#include <cstring>
#include <memory>

#include "src/base/testing/catch.h"

namespace sluice::program {
namespace {

constexpr std::size_t kPageBytes = 4096;
constexpr std::size_t kBlockBytes = std::size_t{4} << 20;
constexpr std::size_t kBlocks = 3;
constexpr int kRounds = 10;

// All blocks are there at once, as buffers are that wait for their turn.
void use_and_free_blocks() {
  std::array<std::unique_ptr<char[]>, kBlocks> blocks;
  for (auto& block : blocks) {
    block.reset(new char[kBlockBytes]);
    for (std::size_t at = 0; at < kBlockBytes; at += kPageBytes) static_cast<volatile char*>(block.get())[at] = 1;
  }
}

long page_faults() {
  rusage usage{};
  ::getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_minflt;
}

TEST_CASE("buffers that are freed and asked for again take no page from the kernel") {
  keep_freed_memory();
  use_and_free_blocks();
  const long before = page_faults();
  for (int round = 0; round < kRounds; ++round) use_and_free_blocks();
  CHECK(page_faults() - before < static_cast<long>(kBlocks * kBlockBytes / kPageBytes));  // of one round
}

}  // namespace
}  // namespace sluice::program
