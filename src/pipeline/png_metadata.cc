#include "src/pipeline/png_metadata.h"

#include <algorithm>
#include <array>

namespace sluice::pipeline {
namespace {

using namespace std::string_view_literals;

// Pillow's limits: of one compressed chunk, and of all text of a file.
constexpr std::size_t kMaxInflatedBytes = 1 << 20;
constexpr std::size_t kMaxTextBytes = 64 << 20;

struct LeastBytes {
  std::string_view type;
  std::size_t bytes;
};

// Pillow refuses files in which these are shorter.
constexpr std::array kLeastBytes{LeastBytes{"gAMA", 4}, LeastBytes{"cHRM", 32}, LeastBytes{"sRGB", 1},
                                 LeastBytes{"pHYs", 9}};

// Frames of an animation, of which the first may cover a part of the image.
constexpr std::array kAnimation{"acTL"sv, "fcTL"sv, "fdAT"sv};

// Text under these keys takes the place of what Pillow knows of the image.
constexpr std::array kTakenKeys{"interlace"sv, "bbox"sv, "transparency"sv};

bool is_lowercase_letter(char letter) { return letter >= 'a' && letter <= 'z'; }
bool is_letter(char letter) { return is_lowercase_letter(letter) || (letter >= 'A' && letter <= 'Z'); }

}  // namespace

bool PngMetadata::is_harmless(std::string_view type, std::span<const std::uint8_t> data) {
  if (!std::ranges::all_of(type, is_letter) || !is_lowercase_letter(type[0])) return false;
  if (std::ranges::find(kAnimation, type) != kAnimation.end()) return false;
  const auto* const least = std::ranges::find(kLeastBytes, type, &LeastBytes::type);
  if (least != kLeastBytes.end()) return data.size() >= least->bytes;
  if (type == "tEXt" || type == "zTXt" || type == "iTXt") return is_harmless_text(type, data);
  if (type != "iCCP") return true;
  const auto name_end = std::ranges::find(data, 0);
  const auto rest = data.subspan(static_cast<std::size_t>(name_end - data.begin()));
  return rest.size() >= 2 && rest[1] == 0 && !is_too_large(rest.subspan(2));
}

bool PngMetadata::is_harmless_text(std::string_view type, std::span<const std::uint8_t> data) {
  const auto key_end = static_cast<std::size_t>(std::ranges::find(data, 0) - data.begin());
  const std::string_view key(reinterpret_cast<const char*>(data.data()), key_end);
  if (std::ranges::find(kTakenKeys, key) != kTakenKeys.end()) return false;
  const bool is_compressed = type == "zTXt" || (type == "iTXt" && data.size() > key_end + 1 && data[key_end + 1] != 0);
  text_bytes_ += is_compressed ? kMaxInflatedBytes : data.size();
  if (text_bytes_ >= kMaxTextBytes) return false;
  if (!is_compressed) return true;
  auto rest = data.subspan(key_end);
  if (type == "zTXt") return rest.size() >= 2 && rest[1] == 0 && !is_too_large(rest.subspan(2));
  // A flag, the method, a language, the key in it; each text ends with a zero.
  if (rest.size() < 3 || rest[2] != 0) return false;
  rest = rest.subspan(3);
  for (int skipped = 0; skipped < 2; ++skipped) {
    const auto end = std::ranges::find(rest, 0);
    if (end == rest.end()) return false;
    rest = rest.subspan(static_cast<std::size_t>(end - rest.begin()) + 1);
  }
  return !is_too_large(rest);
}

bool PngMetadata::is_too_large(std::span<const std::uint8_t> compressed) {
  scratch_.resize(std::max(scratch_.size(), kMaxInflatedBytes - 1));
  return inflater_.exceeds(compressed, std::span(scratch_).first(kMaxInflatedBytes - 1));
}

}  // namespace sluice::pipeline
