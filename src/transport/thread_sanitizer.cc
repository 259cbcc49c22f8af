#include "src/transport/thread_sanitizer.h"

extern "C" {
void __tsan_acquire(void* address);
void __tsan_release(void* address);

// Accesses that gRPC, abseil and OpenSSL make through intercepted functions (memcpy, free, recvmsg) are theirs to
// order.
const char* __tsan_default_options() { return "ignore_noninstrumented_modules=1"; }
}

namespace sluice::transport {

void happens_before(const void* edge) { __tsan_release(const_cast<void*>(edge)); }
void happens_after(const void* edge) { __tsan_acquire(const_cast<void*>(edge)); }

}  // namespace sluice::transport
