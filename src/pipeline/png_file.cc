#include "src/pipeline/png_file.h"

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "src/pipeline/inflate.h"

namespace sluice::pipeline {
namespace {

using namespace std::string_view_literals;

constexpr std::string_view kSignature = "\x89PNG\r\n\x1a\n"sv;
constexpr std::size_t kHeaderBytes = 13;
constexpr std::size_t kTypeBytes = 4;
constexpr std::size_t kChunkBytesBeside = 12;  // its length, type and checksum
constexpr std::size_t kColourBytes = 3;
constexpr std::size_t kMaxColours = 256;

Error damaged(const std::string& what) { return {ErrorCode::kDataLoss, "damaged or truncated PNG: " + what}; }
Error unusual(const std::string& what) {
  return invalid_argument("is a PNG with " + what + ", which only the Python pipeline reads");
}

std::uint32_t number_at(std::span<const std::uint8_t> bytes, std::size_t at) {
  return std::uint32_t{bytes[at]} << 24 | std::uint32_t{bytes[at + 1]} << 16 | std::uint32_t{bytes[at + 2]} << 8 |
         bytes[at + 3];
}

struct Chunk {
  std::string_view type;
  std::span<const std::uint8_t> data;
  std::span<const std::uint8_t> checked;  // type and data
  std::uint32_t checksum = 0;

  bool is_sound() const { return crc32_of(checked) == checksum; }
};

// Takes the next chunk off `rest`; nothing if it is cut off.
std::optional<Chunk> take_chunk(std::span<const std::uint8_t>& rest) {
  if (rest.size() < kChunkBytesBeside) return std::nullopt;
  const std::size_t bytes = number_at(rest, 0);
  if (bytes > rest.size() - kChunkBytesBeside) return std::nullopt;
  Chunk chunk;
  chunk.checked = rest.subspan(4, kTypeBytes + bytes);
  chunk.type = {reinterpret_cast<const char*>(chunk.checked.data()), kTypeBytes};
  chunk.data = chunk.checked.subspan(kTypeBytes);
  chunk.checksum = number_at(rest, 4 + kTypeBytes + bytes);
  rest = rest.subspan(kChunkBytesBeside + bytes);
  return chunk;
}

bool is_known_depth(PngColour colour, int bits) {
  const bool is_whole = bits == 8 || bits == 16;
  const bool is_part = bits == 1 || bits == 2 || bits == 4;
  switch (colour) {
    case PngColour::kGrey: return is_whole || is_part;
    case PngColour::kPalette: return bits == 8 || is_part;
    case PngColour::kRgb:
    case PngColour::kGreyAlpha:
    case PngColour::kRgbAlpha: return is_whole;
  }
  return false;
}

Result<PngFile> read_header(const std::optional<Chunk>& chunk) {
  if (!chunk || chunk->type != "IHDR" || chunk->data.size() != kHeaderBytes || !chunk->is_sound()) {
    return damaged("no header");
  }
  const auto& data = chunk->data;
  const std::uint64_t width = number_at(data, 0);
  const std::uint64_t height = number_at(data, 4);
  PngFile file;
  file.depth_bits = data[8];
  file.colour = static_cast<PngColour>(data[9]);
  file.is_interlaced = data[12] == 1;
  if (width == 0 || height == 0) return damaged("no pixels");
  if (!is_known_depth(file.colour, file.depth_bits) || data[10] != 0 || data[11] != 0 || data[12] > 1) {
    return damaged("an unknown kind");
  }
  if (width > static_cast<std::uint64_t>(kMaxImagePixels) / height) {
    return invalid_argument("has " + std::to_string(width) + "x" + std::to_string(height) +
                            " pixels, more than Pillow accepts (decompression bomb)");
  }
  // Pillow has changed what it makes of these.
  if (file.colour == PngColour::kGrey && file.depth_bits == 16) return unusual("16 bits of grey");
  file.size = {static_cast<int>(height), static_cast<int>(width)};
  return file;
}

bool is_sound_transparency(const PngFile& file, std::size_t bytes) {
  if (file.colour == PngColour::kPalette) return bytes <= kMaxColours;
  const bool has_alpha = file.colour == PngColour::kGreyAlpha || file.colour == PngColour::kRgbAlpha;
  return has_alpha || bytes >= (file.colour == PngColour::kRgb ? 6U : 2U);
}

// The compressed rows: a view of the only chunk, or what is gathered of several.
class Rows {
 public:
  explicit Rows(std::vector<std::uint8_t>& gathered) : gathered_(gathered) {}

  void add(std::span<const std::uint8_t> part) {
    if (parts_ == 1) gathered_.assign(first_.begin(), first_.end());
    if (parts_ == 0) first_ = part;
    if (parts_ > 0) gathered_.insert(gathered_.end(), part.begin(), part.end());
    ++parts_;
  }
  bool is_empty() const { return parts_ == 0; }
  std::span<const std::uint8_t> all() const { return parts_ == 1 ? first_ : std::span(gathered_); }

 private:
  std::vector<std::uint8_t>& gathered_;
  std::span<const std::uint8_t> first_;
  int parts_ = 0;
};

}  // namespace

int PngFile::samples_per_pixel() const {
  switch (colour) {
    case PngColour::kRgb: return 3;
    case PngColour::kGreyAlpha: return 2;
    case PngColour::kRgbAlpha: return 4;
    case PngColour::kGrey:
    case PngColour::kPalette: break;
  }
  return 1;
}

std::size_t PngFile::row_bytes(int width) const {
  const auto bits = static_cast<std::size_t>(samples_per_pixel()) * static_cast<std::size_t>(depth_bits);
  return (static_cast<std::size_t>(width) * bits + 7) / 8;
}

std::size_t PngFile::filter_distance_bytes() const { return row_bytes(1); }

bool is_png(std::span<const std::uint8_t> file) {
  return std::string_view(reinterpret_cast<const char*>(file.data()), file.size()).starts_with(kSignature);
}

Result<PngFile> read_png(std::span<const std::uint8_t> bytes, PngMetadata metadata,
                         std::vector<std::uint8_t>& gathered) {
  auto rest = bytes.subspan(kSignature.size());
  SLUICE_TRY(PngFile file, read_header(take_chunk(rest)));
  Rows rows(gathered);
  bool rows_ended = false;
  while (true) {
    const auto chunk = take_chunk(rest);
    if (!chunk) return damaged("its end is missing");
    if (chunk->type == "IDAT") {
      if (rows_ended) return damaged("rows in two places");
      rows.add(chunk->data);
      continue;
    }
    rows_ended = !rows.is_empty();
    if (chunk->type == "IEND") break;
    if (!chunk->is_sound()) return damaged("a checksum is wrong");
    if (chunk->type == "PLTE") {
      if (!file.palette.empty() || rows_ended) return damaged("its palette is in the wrong place");
      file.palette = chunk->data;
    } else if (chunk->type == "tRNS") {
      if (rows_ended || !is_sound_transparency(file, chunk->data.size())) return damaged("its transparency");
    } else if (!metadata.is_harmless(chunk->type, chunk->data)) {
      return unusual("a chunk " + std::string(chunk->type));
    }
  }
  if (rows.is_empty()) return damaged("no rows");
  file.stream = rows.all();
  if (file.colour == PngColour::kPalette && (file.palette.empty() || file.palette.size() % kColourBytes != 0 ||
                                             file.palette.size() / kColourBytes > kMaxColours)) {
    return damaged("its palette");
  }
  return file;
}

}  // namespace sluice::pipeline
