// How the C library keeps memory in a process that sends or receives batches.
//
// gRPC allocates the buffers of every read anew, and with TLS those of every write. glibc gives a large block back to
// the kernel once it is free, by rules that depend on which block was freed last; then the kernel clears and maps each
// page again for the next read.
#pragma once

namespace sluice::program {

// From now on each heap of this process keeps up to 16 MiB of what was freed in it, in blocks of up to 8 MiB. Does
// nothing where the user has set a threshold.
void keep_freed_memory();

}  // namespace sluice::program
