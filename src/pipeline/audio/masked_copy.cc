#include "src/pipeline/audio/masked_copy.h"

#include <algorithm>

#include "src/pipeline/audio/lanes.h"

namespace sluice::pipeline::audio {
namespace {

// to[row][column] = from[column][row], in blocks of eight by eight.
SLUICE_INLINE void turn(const float* from, std::size_t rows, std::size_t columns, float* to) {
  const std::size_t whole_rows = rows - rows % kLanes;
  const std::size_t whole_columns = columns - columns % kLanes;
  for (std::size_t row = 0; row < whole_rows; row += kLanes) {
    for (std::size_t column = 0; column < whole_columns; column += kLanes) {
      Lanes block[kLanes];
      for (std::size_t i = 0; i < kLanes; ++i) load(from + (column + i) * rows + row, block[i]);
      transpose(block);
      for (std::size_t i = 0; i < kLanes; ++i) store(block[i], to + (row + i) * columns + column);
    }
  }
  for (std::size_t row = 0; row < rows; ++row) {
    const std::size_t first = row < whole_rows ? whole_columns : 0;
    for (std::size_t column = first; column < columns; ++column) to[row * columns + column] = from[column * rows + row];
  }
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) void turn_widely(const float* from, std::size_t rows, std::size_t columns, float* to) {
  turn(from, rows, columns, to);
}
#endif

void copy(const MaskPlan& plan, const float* from, [[maybe_unused]] Registers registers, float* to) {
  if (!plan.columns_first) {
    std::copy_n(from, plan.rows * plan.columns, to);
    return;
  }
#if defined(__x86_64__)
  if (are_wide(registers)) {
    return turn_widely(from, plan.rows, plan.columns, to);
  }
#endif
  turn(from, plan.rows, plan.columns, to);
}

}  // namespace

void copy_masked(const MaskPlan& plan, const float* from, [[maybe_unused]] Registers registers, float* to) {
  copy(plan, from, registers, to);
  if (plan.masks_rows) {
    std::fill_n(to + plan.first * plan.columns, plan.count * plan.columns, plan.value);
    return;
  }
  for (std::size_t row = 0; row < plan.rows; ++row)
    std::fill_n(to + row * plan.columns + plan.first, plan.count, plan.value);
}

}  // namespace sluice::pipeline::audio
