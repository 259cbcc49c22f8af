// Memory of answers that have been read, for answers to come: fresh memory is zeroed twice, by the system and by the
// vector, about a tenth of what an answer costs.
//
// Thread safety: all methods may be called from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace sluice::object_store {

class SpareBuffers {
 public:
  static constexpr std::size_t kMost = 256;
  static constexpr std::size_t kBytesMost = 32 << 20;  // of all
  static constexpr std::size_t kTimesMost = 4;         // as large as what it is for

  // With any bytes in it. An empty one where there is none, or where it would hold much more memory than `bytes`.
  std::vector<std::uint8_t> take(std::size_t bytes);
  void keep(std::vector<std::uint8_t> buffer);

 private:
  std::mutex mutex_;
  std::vector<std::vector<std::uint8_t>> kept_;
  std::size_t bytes_ = 0;
};

}  // namespace sluice::object_store
