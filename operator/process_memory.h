// Keeps the memory of the process close to what it holds. glibc's allocator would keep what the first lists have taken.
//
// Thread safety: as said at each function.
#pragma once

namespace sluice::control {

// All threads share few heaps. Each heap keeps what is freed in it, and glibc makes up to eight per core. REQUIRES:
// called before the first other thread starts.
void share_heaps();

// Gives the pages that hold nothing back to the system. Takes some ten milliseconds per 100 MiB; other threads wait
// meanwhile when they allocate. May be called from any thread.
void give_back_free_pages();

}  // namespace sluice::control
