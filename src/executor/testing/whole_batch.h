// A native batch, made on the calling thread: what every other way of making it must equal.
#pragma once

#include <span>

#include "src/executor/native_batch.h"

namespace sluice::testing {

// Fills `slot` (batch_bytes of it). Errors: those of check_indices() and make_native_sample().
inline Result<void> make_whole_batch(const executor::BatchRequest& request, std::span<std::byte> slot,
                                     executor::NativeScratch& scratch) {
  SLUICE_TRY_VOID(executor::check_indices(request));
  for (std::size_t i = 0; i < request.indices.size(); ++i) {
    SLUICE_TRY_VOID(executor::make_native_sample(request, i, slot, scratch));
  }
  executor::write_labels(request, slot);
  return {};
}

}  // namespace sluice::testing
