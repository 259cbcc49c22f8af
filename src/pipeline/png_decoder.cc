#include "src/pipeline/png_decoder.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "src/pipeline/png_filters.h"

namespace sluice::pipeline {
namespace {

constexpr std::size_t kRgbBytes = 3;

// Adam7: each pass holds the pixels from (top, left) on, in such steps.
struct Interlacing {
  int top, left, rows, columns;
};
constexpr std::array<Interlacing, 7> kPasses{
    {{0, 0, 8, 8}, {0, 4, 8, 8}, {4, 0, 8, 4}, {0, 2, 4, 4}, {2, 0, 4, 2}, {0, 1, 2, 2}, {1, 0, 2, 1}}};

ImageSize size_of(const Interlacing& pass, ImageSize image) {
  return {(image.height - pass.top + pass.rows - 1) / pass.rows,
          (image.width - pass.left + pass.columns - 1) / pass.columns};
}

std::size_t bytes_of(const PngFile& file, ImageSize rows) {
  if (rows.width <= 0 || rows.height <= 0) return 0;
  return static_cast<std::size_t>(rows.height) * (1 + file.row_bytes(rows.width));
}

std::size_t bytes_of_rows(const PngFile& file) {
  if (!file.is_interlaced) return bytes_of(file, file.size);
  std::size_t bytes = 0;
  for (const Interlacing& pass : kPasses) bytes += bytes_of(file, size_of(pass, file.size));
  return bytes;
}

Error damaged_rows() { return {ErrorCode::kDataLoss, "damaged or truncated PNG: its pixels"}; }

}  // namespace

Result<ImageSize> PngDecoder::open(std::span<const std::uint8_t> file) {
  SLUICE_TRY(file_, read_png(file, PngMetadata(inflater_, rows_), gathered_));
  if (bytes_of_rows(file_) > kMaxRowsBytes) {
    return invalid_argument("has more bytes of pixels than native pipelines decode");
  }
  return file_.size;
}

Result<RgbView> PngDecoder::decode(const Box& box) {
  const std::size_t bytes = bytes_of_rows(file_);
  if (bytes > Inflater::most_bytes_of(file_.stream.size())) return damaged_rows();
  const std::size_t readable = std::max(kPngRowMarginBytes, kReadableBytesBehindPixels);
  if (rows_.size() < bytes + readable) rows_.resize(bytes + readable);
  if (!inflater_.inflate(file_.stream, std::span(rows_).first(bytes))) return damaged_rows();
  zeros_.resize(std::max(zeros_.size(), file_.row_bytes(file_.size.width) + kPngRowMarginBytes));

  PngPixels pixels(file_);
  const ImageSize shown = file_.is_interlaced ? file_.size : ImageSize{box.height, box.width};
  const std::size_t stride = static_cast<std::size_t>(shown.width) * kRgbBytes;
  if (file_.is_interlaced || !pixels.is_rgb()) {
    const std::size_t needed = static_cast<std::size_t>(shown.height) * stride + kReadableBytesBehindPixels;
    if (pixels_.size() < needed) pixels_.resize(needed);
  }
  RgbView view{pixels_.data(), stride, {box.height, box.width}};
  if (!(file_.is_interlaced ? decode_passes(pixels) : decode_rows(box, pixels, view))) return damaged_rows();
  if (!pixels.has_all_colours()) return Error(ErrorCode::kDataLoss, "its palette lacks colours of its pixels");
  if (file_.is_interlaced) {
    view.pixels += static_cast<std::size_t>(box.top) * stride + static_cast<std::size_t>(box.left) * kRgbBytes;
  }
  return view;
}

const std::uint8_t* PngDecoder::plain_row(const Pass& pass, int y) {
  const std::size_t row_bytes = file_.row_bytes(pass.size.width);
  std::uint8_t* row = rows_.data() + pass.offset + static_cast<std::size_t>(y) * (1 + row_bytes);
  const auto filter = static_cast<PngFilter>(*row);
  const std::uint8_t* above = y == 0 ? zeros_.data() : row - row_bytes;
  undo_filter(filter, file_.filter_distance_bytes(), above, {row + 1, row_bytes});
  return row + 1;
}

bool PngDecoder::has_known_filters(const Pass& pass) const {
  const std::size_t step = 1 + file_.row_bytes(pass.size.width);
  const std::uint8_t* filter = rows_.data() + pass.offset;
  for (int y = 0; y < pass.size.height; ++y, filter += step) {
    if (*filter > static_cast<std::uint8_t>(PngFilter::kPaeth)) return false;
  }
  return true;
}

bool PngDecoder::decode_rows(const Box& box, PngPixels& pixels, RgbView& view) {
  const Pass all{0, file_.size};
  if (!has_known_filters(all)) return false;
  std::uint8_t* target = pixels_.data();
  for (int y = 0; y < box.top + box.height; ++y) {
    const std::uint8_t* row = plain_row(all, y);
    if (y < box.top) continue;
    if (pixels.is_rgb()) {
      if (y == box.top) view.pixels = row + static_cast<std::size_t>(box.left) * kRgbBytes;
      continue;
    }
    pixels.to_rgb(row, box.left, box.width, target);
    target += view.stride_bytes;
  }
  if (pixels.is_rgb()) view.stride_bytes = 1 + file_.row_bytes(file_.size.width);
  return true;
}

bool PngDecoder::decode_passes(PngPixels& pixels) {
  const auto width = static_cast<std::size_t>(file_.size.width);
  std::vector<std::uint8_t> line(width * kRgbBytes);
  Pass pass;
  for (const Interlacing& places : kPasses) {
    pass.size = size_of(places, file_.size);
    if (bytes_of(file_, pass.size) == 0) continue;
    if (!has_known_filters(pass)) return false;
    for (int y = 0; y < pass.size.height; ++y) {
      pixels.to_rgb(plain_row(pass, y), 0, pass.size.width, line.data());
      const auto row = static_cast<std::size_t>(places.top + y * places.rows);
      std::uint8_t* target = pixels_.data() + (row * width + static_cast<std::size_t>(places.left)) * kRgbBytes;
      for (int x = 0; x < pass.size.width; ++x, target += static_cast<std::size_t>(places.columns) * kRgbBytes) {
        std::memcpy(target, &line[static_cast<std::size_t>(x) * kRgbBytes], kRgbBytes);
      }
    }
    pass.offset += bytes_of(file_, pass.size);
  }
  return true;
}

}  // namespace sluice::pipeline
