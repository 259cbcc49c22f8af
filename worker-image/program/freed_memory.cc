#include "worker-image/program/freed_memory.h"

#include <malloc.h>

#include <cstdlib>

namespace sluice::program {
namespace {

constexpr int kKeptBlockBytes = 8 << 20;  // gRPC reads at most 4 MiB at once
constexpr int kKeptBytes = 16 << 20;

}  // namespace

void keep_freed_memory() {
  if (std::getenv("MALLOC_MMAP_THRESHOLD_") != nullptr || std::getenv("MALLOC_TRIM_THRESHOLD_") != nullptr) return;
  mallopt(M_MMAP_THRESHOLD, kKeptBlockBytes);
  mallopt(M_TRIM_THRESHOLD, kKeptBytes);
}

}  // namespace sluice::program
