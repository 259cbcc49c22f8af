// When what an operation does to pixels may wait for later operations (docs/designs/ordering.md).
//
// Random numbers are drawn when an operation's turn comes, and what it does with them may run later: behind a crop it
// has fewer pixels to change. So the order of the list stays the order of the draws, whatever runs when.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "src/pipeline/geometry.h"

namespace sluice::pipeline {

enum class OpOrder {
  kProgram,  // nothing waits
  kExact,    // what makes the same bytes later
  kRelaxed,  // also what makes nearly the same image; only where the user asks for it
};

// Changes pixels [n][3] in place, each by its own value: any part of an image, or a mirrored one, alike.
using ChangeEach = std::function<void(std::span<std::uint8_t> pixels)>;

// Makes `part` of a new image from the pixels of one of the same `size`, all of which it may look at.
using MakePart = std::function<void(std::span<const std::uint8_t> from, ImageSize size, const Box& part,
                                    std::span<std::uint8_t> to)>;

// Of an operation whose change waits: where its cost counts.
struct Waiting {
  std::string_view op;      // its name, in static storage
  std::size_t number = 0;   // of the operation, from 1
  std::uint64_t bytes = 0;  // that it would have changed or made at its turn
};

}  // namespace sluice::pipeline
