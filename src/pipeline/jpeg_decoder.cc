#include "src/pipeline/jpeg_decoder.h"

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>

#include <jpeglib.h>

#include "src/pipeline/jpeg_baseline_decoder.h"
#include "src/pipeline/jpeg_scan.h"

namespace sluice::pipeline {
namespace {

constexpr int kRgbBytes = 3;
constexpr int kCmykBytes = 4;

// Fancy upsampling of a column needs the chroma sample next to it, which covers two columns.
constexpr int kMarginColumns = 2;

// Multiplication of two fractions of 255, rounded, without a division (Blinn, "Three Wrongs Make a Right", IEEE CG&A
// 1995); Pillow uses the same formula, so the bytes agree.
int multiply_fractions(int a, int b) {
  const int product = a * b + 128;
  return ((product >> 8) + product) >> 8;
}

// Adobe's inverted CMYK to RGB, in place: 4 bytes a pixel become 3.
void convert_cmyk_row(std::uint8_t* row, std::size_t pixels) {
  for (std::size_t x = 0; x < pixels; ++x) {
    const std::uint8_t* cmyk = row + x * kCmykBytes;
    const int white = cmyk[3];
    const std::array<int, 3> ink{255 - cmyk[0], 255 - cmyk[1], 255 - cmyk[2]};
    for (std::size_t channel = 0; channel < 3; ++channel) {
      row[x * kRgbBytes + channel] = static_cast<std::uint8_t>(white - multiply_fractions(ink[channel], white));
    }
  }
}

// Whether a progressive file has brought every bit of every coefficient. libjpeg smooths blocks that lack some.
bool has_all_bits(const jpeg_decompress_struct& codec) {
  if (codec.coef_bits == nullptr) return false;
  for (int i = 0; i < codec.num_components; ++i) {
    if (!std::ranges::all_of(codec.coef_bits[i], [](int bits) { return bits == 0; })) return false;
  }
  return true;
}

Error damaged_coefficients() { return {ErrorCode::kDataLoss, "damaged coefficients of a JPEG"}; }

}  // namespace

struct JpegDecoder::State {
  // libjpeg reports errors by calling error_exit, which must not return: it jumps to where the call began. The frames
  // in between hold nothing with a destructor.
  struct ErrorHandling {
    jpeg_error_mgr base;  // first, so that libjpeg's pointer to it is a pointer to this
    std::jmp_buf escape;
    std::array<char, JMSG_LENGTH_MAX> message;
    bool truncated;
  };

  explicit State(const JpegKernels* fast);
  ~State() { jpeg_destroy_decompress(&codec); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  // Runs `body`, which calls libjpeg and owns nothing; false when libjpeg gave up.
  template <typename Body>
  bool guarded(Body body) {
    if (setjmp(errors.escape) != 0) return false;  // NOLINT(cert-err52-cpp): libjpeg has no other way out
    body();
    return true;
  }

  // Forgets the last file. A file without tables of its own would be decoded with those of the file before.
  void renew();

  // The error that guarded() ran into. Afterwards the codec is ready for another file.
  Error take_error();

  void start(const Box& box);
  void read_rows(const Box& box);
  bool is_complete() const;

  // The box as BaselineJpegDecoder decodes it, if it does. Else nothing is changed for libjpeg.
  std::optional<RgbView> decode_baseline(const Box& box);

  // The coefficients of the whole file, if it is undamaged and of a kind that JpegPixels takes.
  bool transcode(std::size_t bytes_max, std::vector<std::uint8_t>& coded);
  bool write_progressive(JpegCoefficientWriter& writer, jvirt_barray_ptr* arrays);

  static State& of(j_common_ptr codec) { return *static_cast<State*>(codec->client_data); }
  static void install_memory_source(State& state);

  jpeg_decompress_struct codec{};
  ErrorHandling errors{};
  jpeg_source_mgr source{};
  const JpegKernels* kernels = nullptr;
  std::optional<BaselineJpegDecoder> baseline;
  JpegScan scan;
  std::optional<JpegCoefficientDecoder> coefficients;
  bool has_coefficients = false;  // open, not a file
  bool decoded_baseline = false;
  std::vector<std::uint8_t> pixels;
  std::size_t stride_bytes = 0;
  JDIMENSION first_column = 0;  // of the decoded columns
};

JpegDecoder::State::State(const JpegKernels* fast) : kernels(fast) {
  if (kernels != nullptr) {
    baseline.emplace(*kernels);
    coefficients.emplace(*kernels);
  }
  codec.err = jpeg_std_error(&errors.base);
  codec.client_data = this;
  errors.base.error_exit = [](j_common_ptr failed) {
    ErrorHandling& errors = of(failed).errors;
    failed->err->format_message(failed, errors.message.data());
    std::longjmp(errors.escape, 1);  // NOLINT(cert-err52-cpp)
  };
  // Warnings (damaged data, stray bytes) do not stop PIL either; they are counted, nothing is printed.
  errors.base.emit_message = [](j_common_ptr warned, int level) {
    if (level < 0) ++warned->err->num_warnings;
  };
  errors.base.output_message = [](j_common_ptr) {};
  install_memory_source(*this);
  jpeg_create_decompress(&codec);
}

// libjpeg's own memory source invents an end marker when the data runs out and goes on with grey; this one fails.
void JpegDecoder::State::install_memory_source(State& state) {
  const auto out_of_data = [](j_decompress_ptr codec) -> boolean {
    ErrorHandling& errors = of(reinterpret_cast<j_common_ptr>(codec)).errors;
    errors.truncated = true;
    std::longjmp(errors.escape, 1);  // NOLINT(cert-err52-cpp)
  };
  state.source.init_source = [](j_decompress_ptr) {};
  state.source.fill_input_buffer = out_of_data;
  state.source.skip_input_data = [](j_decompress_ptr codec, long bytes) {
    if (bytes <= 0) return;
    if (static_cast<std::size_t>(bytes) > codec->src->bytes_in_buffer) codec->src->fill_input_buffer(codec);
    codec->src->next_input_byte += bytes;
    codec->src->bytes_in_buffer -= static_cast<std::size_t>(bytes);
  };
  state.source.resync_to_restart = jpeg_resync_to_restart;
  state.source.term_source = [](j_decompress_ptr) {};
}

void JpegDecoder::State::renew() {
  jpeg_destroy_decompress(&codec);
  jpeg_create_decompress(&codec);
  codec.src = &source;
}

Error JpegDecoder::State::take_error() {
  jpeg_abort_decompress(&codec);
  if (errors.truncated) return {ErrorCode::kDataLoss, "the file is truncated"};
  return {ErrorCode::kDataLoss, "damaged or unsupported JPEG: " + std::string(errors.message.data())};
}

void JpegDecoder::State::start(const Box& box) {
  codec.out_color_space = codec.num_components == 4 ? JCS_CMYK : JCS_RGB;
  codec.dct_method = JDCT_ISLOW;
  codec.do_fancy_upsampling = TRUE;
  jpeg_start_decompress(&codec);

  const int first = std::max(box.left - kMarginColumns, 0);
  const int end = std::min(box.left + box.width + kMarginColumns, static_cast<int>(codec.image_width));
  first_column = static_cast<JDIMENSION>(first);
  auto columns = static_cast<JDIMENSION>(end - first);
  if (columns < codec.image_width) jpeg_crop_scanline(&codec, &first_column, &columns);
  stride_bytes = static_cast<std::size_t>(codec.output_width) * static_cast<std::size_t>(codec.output_components);
}

void JpegDecoder::State::read_rows(const Box& box) {
  constexpr std::size_t kRowsAtOnce = 16;
  if (box.top > 0) jpeg_skip_scanlines(&codec, static_cast<JDIMENSION>(box.top));
  const auto end = static_cast<JDIMENSION>(box.top + box.height);
  std::array<JSAMPROW, kRowsAtOnce> rows;
  while (codec.output_scanline < end) {
    const JDIMENSION done = codec.output_scanline - static_cast<JDIMENSION>(box.top);
    const JDIMENSION wanted = std::min<JDIMENSION>(kRowsAtOnce, end - codec.output_scanline);
    for (JDIMENSION i = 0; i < wanted; ++i) rows[i] = pixels.data() + (done + i) * stride_bytes;
    const JDIMENSION got = jpeg_read_scanlines(&codec, rows.data(), wanted);
    if (codec.output_components != kCmykBytes) continue;
    for (JDIMENSION i = 0; i < got; ++i) convert_cmyk_row(rows[i], codec.output_width);
  }
}

bool JpegDecoder::State::is_complete() const {
  if (jpeg_input_complete(const_cast<jpeg_decompress_struct*>(&codec)) != 0) return true;
  if (codec.unread_marker == kEndOfImageMarker) return true;
  return has_end_of_image({codec.src->next_input_byte, codec.src->bytes_in_buffer});
}

std::optional<RgbView> JpegDecoder::State::decode_baseline(const Box& box) {
  if (!baseline || !read_baseline_scan(codec, scan)) return std::nullopt;
  return baseline->decode(scan, box);
}

bool JpegDecoder::State::transcode(std::size_t bytes_max, std::vector<std::uint8_t>& coded) {
  if (read_baseline_scan(codec, scan)) {
    if (scan.frame.has_narrow_chroma()) return false;
    JpegCoefficientWriter writer(*kernels, scan.frame, bytes_max, coded);
    return baseline->read_all(scan, writer) && writer.finish();
  }
  if (codec.progressive_mode == 0) return false;
  jvirt_barray_ptr* arrays = nullptr;
  if (!guarded([&] { arrays = jpeg_read_coefficients(&codec); }) || arrays == nullptr) return false;
  if (!read_frame(codec, scan.frame) || scan.frame.has_narrow_chroma() || !has_all_bits(codec)) return false;
  JpegCoefficientWriter writer(*kernels, scan.frame, bytes_max, coded);
  return write_progressive(writer, arrays) && writer.finish();
}

bool JpegDecoder::State::write_progressive(JpegCoefficientWriter& writer, jvirt_barray_ptr* arrays) {
  const JpegFrame& frame = scan.frame;
  CoefficientBlock block;
  for (int mcu_row = 0; mcu_row < frame.mcu_rows(); ++mcu_row) {
    for (std::size_t i = 0; i < frame.component_count; ++i) {
      const int rows = frame.rows_per_mcu(i);
      const int end = std::min((mcu_row + 1) * rows, frame.block_rows(i));
      for (int row = mcu_row * rows; row < end; ++row) {
        JBLOCKARRAY blocks = nullptr;
        const auto find = [&] {
          blocks = codec.mem->access_virt_barray(reinterpret_cast<j_common_ptr>(&codec), arrays[i],
                                                 static_cast<JDIMENSION>(row), 1, FALSE);
        };
        if (!guarded(find)) return false;
        for (int column = 0; column < frame.block_columns(i); ++column) {
          std::memcpy(block.values, blocks[0][column], sizeof(JBLOCK));
          if (!writer.add(i, row, column, block)) return false;
        }
      }
    }
    if (!writer.finish_rows()) return false;
  }
  return true;
}

JpegDecoder::JpegDecoder(const JpegKernels* kernels) : state_(std::make_unique<State>(kernels)) {}
JpegDecoder::~JpegDecoder() = default;

bool is_jpeg(std::span<const std::uint8_t> file) {
  return file.size() >= 3 && file[0] == 0xFF && file[1] == 0xD8 && file[2] == 0xFF;
}

Result<ImageSize> JpegDecoder::open(std::span<const std::uint8_t> file) {
  if (!is_jpeg(file)) return invalid_argument("is not a JPEG file");

  State& state = *state_;
  state.has_coefficients = false;
  state.source.next_input_byte = file.data();
  state.source.bytes_in_buffer = file.size();
  state.errors.truncated = false;
  state.errors.message[0] = '\0';
  state.errors.base.num_warnings = 0;
  const auto read_header = [&state] {
    state.renew();
    jpeg_read_header(&state.codec, TRUE);
  };
  if (!state.guarded(read_header)) return state.take_error();

  const jpeg_decompress_struct& codec = state.codec;
  if (codec.num_components != 1 && codec.num_components != 3 && codec.num_components != 4) {
    return invalid_argument("has " + std::to_string(codec.num_components) +
                            " colour components; Pillow cannot read it");
  }
  if (static_cast<std::int64_t>(codec.image_width) * codec.image_height > kMaxImagePixels) {
    return invalid_argument("has " + std::to_string(codec.image_width) + "x" + std::to_string(codec.image_height) +
                            " pixels, more than Pillow accepts (decompression bomb)");
  }
  return ImageSize{static_cast<int>(codec.image_height), static_cast<int>(codec.image_width)};
}

Result<ImageSize> JpegDecoder::open_coefficients(std::span<const std::uint8_t> coded) {
  State& state = *state_;
  state.errors.base.num_warnings = 0;
  if (state.coefficients) {
    const auto size = state.coefficients->open(coded);
    if (size && std::int64_t{size->height} * size->width <= kMaxImagePixels) {
      state.has_coefficients = true;
      return *size;
    }
  }
  return damaged_coefficients();
}

bool JpegDecoder::transcode(std::size_t bytes_max, std::vector<std::uint8_t>& coded) {
  State& state = *state_;
  const bool done = state.kernels != nullptr && state.transcode(bytes_max, coded);
  jpeg_abort_decompress(&state.codec);
  return done;
}

bool JpegDecoder::is_rgb() const {
  return state_->has_coefficients ? state_->coefficients->has_colours() : state_->codec.num_components == 3;
}

bool JpegDecoder::warned() const { return state_->errors.base.num_warnings > 0; }
bool JpegDecoder::decoded_baseline() const { return state_->decoded_baseline; }

Result<RgbView> JpegDecoder::decode(const Box& box) {
  State& state = *state_;
  state.decoded_baseline = false;
  if (state.has_coefficients) {
    if (const auto view = state.coefficients->decode(box)) return *view;
    return damaged_coefficients();
  }
  const auto view = state.decode_baseline(box);
  state.decoded_baseline = view.has_value();
  if (view) {
    jpeg_abort_decompress(&state.codec);
    return *view;
  }
  if (!state.guarded([&state, &box] { state.start(box); })) return state.take_error();

  // Outside guarded(): a vector must not grow in a frame that longjmp leaves.
  const std::size_t needed_bytes =
      static_cast<std::size_t>(box.height) * state.stride_bytes + kReadableBytesBehindPixels;
  if (state.pixels.size() < needed_bytes) state.pixels.resize(needed_bytes);

  if (!state.guarded([&state, &box] { state.read_rows(box); })) return state.take_error();
  const bool complete = state.is_complete();
  jpeg_abort_decompress(&state.codec);
  if (!complete) return Error(ErrorCode::kDataLoss, "the file is truncated");

  const auto skipped_columns = static_cast<std::size_t>(box.left) - state.first_column;
  return RgbView{state.pixels.data() + skipped_columns * kRgbBytes, state.stride_bytes, {box.height, box.width}};
}

}  // namespace sluice::pipeline
