// What of a segment is gone, and which of its blocks the disk may have back.
//
// A gap begins with a head of kFixedHeadBytes, which the scan of the segment needs. The blocks that lie wholly behind
// that head are its hole. Gaps that touch are one, so what lies between the holes of two neighbours comes back as well.
// There is at least one record between two gaps, and each takes 16 bytes.
// Thread safety: none.
#pragma once

#include <cstdint>
#include <vector>

namespace sluice::cache {

class Gaps {
 public:
  struct Change {
    std::uint64_t offset = 0;  // of the gap that there is now
    std::uint64_t bytes = 0;
    std::uint64_t hole_offset = 0;  // what its hole has beyond those of the gaps that it is made of
    std::uint64_t hole_bytes = 0;   // may be 0
  };

  // REQUIRES: bytes >= kFixedHeadBytes, and none of them is in a gap.
  Change add(std::uint64_t offset, std::uint64_t bytes);

  // Where the gap that `offset` lies in ends; `offset` if it lies in none.
  std::uint64_t end_at(std::uint64_t offset) const;

 private:
  struct Gap {
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
    std::uint64_t end() const { return offset + bytes; }
  };
  std::vector<Gap>::const_iterator first_behind(std::uint64_t offset) const;

  std::vector<Gap> gaps_;  // by offset
};

}  // namespace sluice::cache
