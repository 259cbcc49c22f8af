#pragma once

namespace sluice::pipeline {

// Which vector registers compute. All give the same bits, which tests compare.
enum class Registers { kEveryProcessors, kWidest };

}  // namespace sluice::pipeline
