#include "src/object_store/spare_buffers.h"

#include <utility>

namespace sluice::object_store {

std::vector<std::uint8_t> SpareBuffers::take(std::size_t bytes) {
  std::lock_guard lock(mutex_);
  if (kept_.empty() || kept_.back().capacity() > kTimesMost * bytes) return {};
  auto buffer = std::move(kept_.back());
  kept_.pop_back();
  bytes_ -= buffer.capacity();
  return buffer;
}

void SpareBuffers::keep(std::vector<std::uint8_t> buffer) {
  std::lock_guard lock(mutex_);
  if (buffer.capacity() == 0 || bytes_ + buffer.capacity() > kBytesMost || kept_.size() == kMost) return;
  bytes_ += buffer.capacity();
  kept_.push_back(std::move(buffer));
}

}  // namespace sluice::object_store
