#include "src/pipeline/png_filters.h"

#include <random>
#include <vector>

#include "src/base/testing/catch.h"

namespace sluice::pipeline {
namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr PngFilter kFilters[] = {PngFilter::kNone, PngFilter::kLeft, PngFilter::kAbove, PngFilter::kAverage,
                                  PngFilter::kPaeth};

TEST_CASE("each filter predicts a byte as the specification says") {
  const Bytes above{10, 20, 30, 40};
  struct Case {
    PngFilter filter;
    Bytes want;
  };
  // The rows hold 1, 2, 3, 250 with pixels of two bytes.
  for (const Case& c : {Case{PngFilter::kNone, {1, 2, 3, 250}}, Case{PngFilter::kLeft, {1, 2, 4, 252}},
                        Case{PngFilter::kAbove, {11, 22, 33, 34}}, Case{PngFilter::kAverage, {6, 12, 21, 20}},
                        Case{PngFilter::kPaeth, {11, 22, 33, 34}}}) {
    Bytes row{1, 2, 3, 250};
    undo_filter_portably(c.filter, 2, above.data(), row);
    CHECK(row == c.want);
  }
}

TEST_CASE("this machine's filters give the portable bytes") {
  std::mt19937 random(1);
  for (const std::size_t distance : {1, 2, 3, 4, 6, 8}) {
    for (const std::size_t pixels : {1, 2, 5, 16, 301}) {
      for (const PngFilter filter : kFilters) {
        const std::size_t bytes = pixels * distance;
        Bytes above(bytes + kPngRowMarginBytes);
        Bytes row(bytes + kPngRowMarginBytes);
        // Few values: many ties, which Paeth's filter has an order for.
        const std::uint32_t values = pixels % 2 == 0 ? 256 : 5;
        for (std::uint8_t& byte : above) byte = static_cast<std::uint8_t>(random() % values * 51);
        for (std::uint8_t& byte : row) byte = static_cast<std::uint8_t>(random() % values * 51);
        Bytes want = row;
        undo_filter_portably(filter, distance, above.data(), std::span(want).first(bytes));
        undo_filter(filter, distance, above.data(), std::span(row).first(bytes));
        CAPTURE(distance, pixels, static_cast<int>(filter));
        CHECK(row == want);
      }
    }
  }
}

}  // namespace
}  // namespace sluice::pipeline
