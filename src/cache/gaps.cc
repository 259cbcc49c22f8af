#include "src/cache/gaps.h"

#include <algorithm>

#include "src/cache/disk.h"
#include "src/cache/record.h"

namespace sluice::cache {
namespace {

std::uint64_t block_at_or_before(std::uint64_t offset) { return offset / kBlockBytes * kBlockBytes; }
std::uint64_t block_at_or_behind(std::uint64_t offset) { return block_at_or_before(offset + kBlockBytes - 1); }

// Of a gap that begins at `offset`.
std::uint64_t hole_begin(std::uint64_t offset) { return block_at_or_behind(offset + kFixedHeadBytes); }

}  // namespace

std::vector<Gaps::Gap>::const_iterator Gaps::first_behind(std::uint64_t offset) const {
  return std::upper_bound(gaps_.begin(), gaps_.end(), offset,
                          [](std::uint64_t at, const Gap& gap) { return at < gap.offset; });
}

Gaps::Change Gaps::add(std::uint64_t offset, std::uint64_t bytes) {
  Gap whole{offset, bytes};
  std::uint64_t begin = hole_begin(offset);
  std::uint64_t end = block_at_or_before(whole.end());
  auto at = first_behind(offset);
  if (at != gaps_.end() && at->offset == whole.end()) {
    end = std::min(hole_begin(at->offset), block_at_or_before(at->end()));
    whole.bytes += at->bytes;
    at = gaps_.erase(at);
  }
  if (at != gaps_.begin() && std::prev(at)->end() == offset) {
    --at;
    begin = std::max(hole_begin(at->offset), block_at_or_before(offset));
    whole = {at->offset, at->bytes + whole.bytes};
    at = gaps_.erase(at);
  }
  gaps_.insert(at, whole);
  return {whole.offset, whole.bytes, begin, end > begin ? end - begin : 0};
}

std::uint64_t Gaps::end_at(std::uint64_t offset) const {
  const auto behind = first_behind(offset);
  if (behind == gaps_.begin()) return offset;
  return std::max(std::prev(behind)->end(), offset);
}

}  // namespace sluice::cache
