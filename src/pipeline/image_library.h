// The C interface of libsluice_images.so: what the Python executor calls for images that decode late
// (docs/designs/lazy-images.md).
//
// One call makes the pixels of one planned image from the bytes of its file, a JPEG, a PNG or a WebP, or from its
// decoded pixels; others make float tensors
// of pixels, normalise them, and change pixels as torchvision does. Nothing is kept of a caller's memory. Every
// argument is checked: no input makes it crash. Memory is bounded before it is allocated: kSluiceImagePixelsMax pixels
// for the decoded image and for the resized one.
//
// Thread safety: any number of threads; each has its own buffers, which are freed after an image of more than
// kSluiceKeptPixelsMax pixels.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

// Changes with the meaning of any function or field. Python does not use a library of another version.
inline constexpr int32_t kSluiceImageLibraryVersion = 3;
inline constexpr int64_t kSluiceImagePixelsMax = int64_t{1} << 26;
inline constexpr int64_t kSluiceKeptPixelsMax = int64_t{1} << 23;
inline constexpr size_t kSluiceReadableBytesBehindPixels = 32;

// GeometryPlan as plain numbers (geometry.h). The window may be of an image that no operation resizes: then the resized
// size is that of the source box.
struct SluiceImagePlan {
  int32_t image_height, image_width;  // as the file's header says; another size there is an error
  int32_t source_top, source_left, source_height, source_width;
  int32_t resized_height, resized_width;
  int32_t window_top, window_left, window_height, window_width;
  int32_t flip;           // 1: mirror left and right
  int32_t interpolation;  // 2 bilinear, 3 bicubic: PIL's numbers
  int32_t pillow;         // its major version, which decides the order of the two passes
};

int32_t sluice_image_library_version(void);

// Writes window_height * window_width RGB pixels. 0: done. Anything else: the file or the plan is none that this
// library answers for, the pixels are unspecified, and Pillow has to decode the file. That includes files that Pillow
// decodes with a warning of libjpeg's: of damaged files, only Pillow's own libjpeg makes Pillow's pixels.
int32_t sluice_image_pixels(const uint8_t* file, size_t file_bytes, const SluiceImagePlan* plan, uint8_t* pixels,
                            size_t pixels_bytes);

// The same of an image that was decoded before: image_height * image_width RGB pixels, and behind them
// kSluiceReadableBytesBehindPixels bytes of any value.
int32_t sluice_image_part(const uint8_t* image, size_t image_bytes, const SluiceImagePlan* plan, uint8_t* pixels,
                          size_t pixels_bytes);

// tensor[channel][i] = pixels[i][channel] / 255 for `plane` pixels.
void sluice_image_tensor(const uint8_t* pixels, size_t plane, float* tensor);

// normalized[channel][i] = (tensor[channel][i] - mean[channel]) / deviation[channel], each step rounded to float, for
// three channels of `plane` elements.
void sluice_image_normalize(const float* tensor, size_t plane, const float* mean, const float* deviation,
                            float* normalized);

// A Gaussian blur as torch computes it (gaussian_blur.h), by a window of weights, row after row.
struct SluiceImageBlur {
  int32_t height, width;  // of the image
  int32_t rows, columns;  // of the window
  const float* weights;
};

// Writes height * width RGB pixels, or the sums that are rounded to them. 0: done. Anything else: torch has to do it.
int32_t sluice_image_blur(const uint8_t* pixels, const SluiceImageBlur* blur, uint8_t* blurred);
int32_t sluice_image_blur_sums(const uint8_t* pixels, const SluiceImageBlur* blur, float* sums);

// Writes `plane` RGB pixels, changed as Pillow's enhancements do: 0 brightness, 1 contrast, 2 saturation, 3 hue. 0:
// done. Anything else: there is no such change.
int32_t sluice_image_adjust(int32_t change, float factor, const uint8_t* pixels, size_t plane, uint8_t* adjusted);

}  // extern "C"
