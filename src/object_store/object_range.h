// Bytes of an object in one state, and which of them are asked for together.
//
// Thread safety: pure functions and values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "src/pipeline/file_reader.h"

namespace sluice::object_store {

struct ObjectRange {
  std::string url;
  pipeline::ObjectAccess access;
  std::uint64_t object_bytes = 0;
  std::uint64_t offset = 0;
  std::size_t bytes = 0;

  std::uint64_t end() const { return offset + bytes; }
  // For people: "https://host/a.tar, bytes 512 to 1024".
  std::string in_words() const;
};

// REQUIRES: part.object and part.range
ObjectRange range_of(const pipeline::FilePart& part);

// One request, and which ranges its answer holds.
struct JoinedRange {
  ObjectRange range;
  std::vector<std::size_t> parts;  // by their places in the list
};

// Neighbours are one request where the bytes between them cost less than another request.
inline constexpr std::size_t kGapBytes = 128 << 10;
inline constexpr std::size_t kJoinedBytesMost = 8 << 20;

// In the order of the first part of each. Ranges without bytes are left out.
std::vector<JoinedRange> joined(const std::vector<ObjectRange>& ranges);

}  // namespace sluice::object_store
