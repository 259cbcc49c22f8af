#include "src/pipeline/jpeg_scan.h"

#include <algorithm>
#include <cstdio>
#include <span>

#include <jpeglib.h>

namespace sluice::pipeline {
namespace {

constexpr int kSampleBits = 8;

bool is_sequential(const jpeg_decompress_struct& codec) {
  return codec.progressive_mode == 0 && codec.Ss == 0 && codec.Se == DCTSIZE2 - 1 && codec.Ah == 0 && codec.Al == 0;
}

bool is_grey_or_ycc(const jpeg_decompress_struct& codec) {
  return (codec.num_components == 1 && codec.jpeg_color_space == JCS_GRAYSCALE) ||
         (codec.num_components == 3 && codec.jpeg_color_space == JCS_YCbCr);
}

bool has_common_sampling(std::span<const jpeg_component_info> components) {
  const int across = components[0].h_samp_factor;
  const int down = components[0].v_samp_factor;
  const auto is_single = [](const jpeg_component_info& component) {
    return component.h_samp_factor == 1 && component.v_samp_factor == 1;
  };
  if (!std::ranges::all_of(components.subspan(1), is_single)) return false;
  if (components.size() == 1) return is_single(components[0]);
  return across <= 2 && down <= across;
}

template <typename Table, std::size_t kCount>
const Table* table(Table* const (&tables)[kCount], int index) {
  return index >= 0 && index < static_cast<int>(kCount) ? tables[index] : nullptr;
}

HuffmanDefinition definition(const JHUFF_TBL& huffman) {
  HuffmanDefinition result;
  std::ranges::copy(huffman.bits, result.counts.begin());
  std::ranges::copy(huffman.huffval, result.symbols.begin());
  return result;
}

bool read_codes(const jpeg_decompress_struct& codec, const jpeg_component_info& info, JpegScan::Component& result) {
  const JHUFF_TBL* dc = table(codec.dc_huff_tbl_ptrs, info.dc_tbl_no);
  const JHUFF_TBL* ac = table(codec.ac_huff_tbl_ptrs, info.ac_tbl_no);
  if (dc == nullptr || ac == nullptr) return false;
  result.first = definition(*dc);
  result.others = definition(*ac);
  return true;
}

}  // namespace

bool read_frame(const jpeg_decompress_struct& codec, JpegFrame& frame) {
  if (codec.err->num_warnings != 0 || codec.data_precision != kSampleBits || codec.arith_code != 0) return false;
  if (!is_grey_or_ycc(codec)) return false;
  const std::span<const jpeg_component_info> components(codec.comp_info,
                                                        static_cast<std::size_t>(codec.num_components));
  if (!has_common_sampling(components)) return false;
  for (std::size_t i = 0; i < components.size(); ++i) {
    // libjpeg keeps the table that was in force at the component's first scan.
    const JQUANT_TBL* steps = components[i].quant_table;
    if (steps == nullptr) steps = table(codec.quant_tbl_ptrs, components[i].quant_tbl_no);
    if (steps == nullptr) return false;
    std::ranges::transform(steps->quantval, frame.steps[i].begin(),
                           [](UINT16 step) { return static_cast<std::int16_t>(step); });
  }
  frame.image = {static_cast<int>(codec.image_height), static_cast<int>(codec.image_width)};
  frame.component_count = components.size();
  frame.pixels_across = components[0].h_samp_factor;
  frame.pixels_down = components[0].v_samp_factor;
  return true;
}

bool read_baseline_scan(const jpeg_decompress_struct& codec, JpegScan& scan) {
  if (!is_sequential(codec) || !read_frame(codec, scan.frame)) return false;
  if (codec.comps_in_scan != codec.num_components) return false;
  for (std::size_t i = 0; i < scan.frame.component_count; ++i) {
    if (codec.cur_comp_info[i] != &codec.comp_info[i]) return false;
    if (!read_codes(codec, codec.comp_info[i], scan.components[i])) return false;
  }
  scan.restart_interval = codec.restart_interval;
  scan.data = {codec.src->next_input_byte, codec.src->bytes_in_buffer};
  return true;
}

}  // namespace sluice::pipeline
