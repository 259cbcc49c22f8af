#include "operator/process_memory.h"

#include <malloc.h>

namespace sluice::control {
namespace {

// Two, so that a thread that frees a large tree does not hold up all others.
constexpr int kHeaps = 2;

}  // namespace

void share_heaps() { mallopt(M_ARENA_MAX, kHeaps); }

void give_back_free_pages() { malloc_trim(0); }

}  // namespace sluice::control
