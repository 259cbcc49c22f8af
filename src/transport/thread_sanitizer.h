// Tells ThreadSanitizer about orderings that it cannot see.
//
// Debian's gRPC is not instrumented and synchronises with its own atomics. So TSan does not know that a callback comes
// after the operation that it completes. The .cc files that speak gRPC are therefore compiled without
// instrumentation and declare, at their border, what gRPC guarantees; everything else stays under observation. In other
// builds these functions do nothing.
#pragma once

namespace sluice::transport {

#ifdef SLUICE_THREAD_SANITIZER
// What this thread did so far is visible to every thread that calls happens_after with the same address.
void happens_before(const void* edge);
void happens_after(const void* edge);
#else
inline void happens_before(const void*) {}
inline void happens_after(const void*) {}
#endif

// A callback of gRPC: after everything started on `edge`, before everything that follows on it.
class OrderedCallback {
 public:
  explicit OrderedCallback(const void* edge) : edge_(edge) { happens_after(edge_); }
  ~OrderedCallback() { happens_before(edge_); }
  OrderedCallback(const OrderedCallback&) = delete;
  OrderedCallback& operator=(const OrderedCallback&) = delete;

 private:
  const void* edge_;
};

}  // namespace sluice::transport
