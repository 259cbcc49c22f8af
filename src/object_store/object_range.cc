#include "src/object_store/object_range.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace sluice::object_store {
namespace {

bool is_same_object(const ObjectRange& one, const ObjectRange& other) {
  return one.url == other.url && one.access.etag == other.access.etag && one.object_bytes == other.object_bytes &&
         one.access.environment == other.access.environment;
}

}  // namespace

std::string ObjectRange::in_words() const {
  return pipeline::shown_url(url) + ", bytes " + std::to_string(offset) + " to " + std::to_string(end());
}

ObjectRange range_of(const pipeline::FilePart& part) {
  return {part.path, *part.object, part.range->file_bytes, part.range->offset, part.range->bytes};
}

std::vector<JoinedRange> joined(const std::vector<ObjectRange>& ranges) {
  std::vector<std::size_t> order(ranges.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::erase_if(order, [&](std::size_t i) { return ranges[i].bytes == 0; });
  const auto place = [&](std::size_t i) { return std::tie(ranges[i].url, ranges[i].access.etag, ranges[i].offset); };
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return place(a) < place(b); });
  std::vector<JoinedRange> result;
  for (const std::size_t i : order) {
    const ObjectRange& next = ranges[i];
    if (!result.empty() && is_same_object(result.back().range, next)) {
      ObjectRange& last = result.back().range;
      const std::uint64_t end = std::max(last.end(), next.end());
      if (next.offset <= last.end() + kGapBytes && end - last.offset <= kJoinedBytesMost) {
        last.bytes = end - last.offset;
        result.back().parts.push_back(i);
        continue;
      }
    }
    result.push_back({next, {i}});
  }
  const auto first = [](const JoinedRange& one) { return *std::min_element(one.parts.begin(), one.parts.end()); };
  std::sort(result.begin(), result.end(), [&](const auto& a, const auto& b) { return first(a) < first(b); });
  return result;
}

}  // namespace sluice::object_store
