#pragma once

namespace sluice::pipeline {

// Which vector registers compute. All give the same bits, which tests compare.
enum class Registers { kEveryProcessors, kWidest };

#if defined(__x86_64__)
// Whether they are those of AVX2, and this processor has them.
inline bool are_wide(Registers registers) {
  return registers == Registers::kWidest && __builtin_cpu_supports("avx2") != 0;
}

// The same, with multiplications and additions that round once.
inline bool are_wide_and_fused(Registers registers) {
  return are_wide(registers) && __builtin_cpu_supports("fma") != 0;
}
#endif

}  // namespace sluice::pipeline
