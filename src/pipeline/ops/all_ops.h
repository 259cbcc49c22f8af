// How each operation is read from its specification; registry.cc gives them their names.
//
// Each is described where it is implemented, with the torchvision class that it reproduces.
#pragma once

#include <memory>

#include "src/base/json_reader.h"
#include "src/pipeline/ops/op.h"

namespace sluice::pipeline {

using OpPointer = std::unique_ptr<const Op>;

OpPointer parse_decode_rgb(JsonReader& reader);
OpPointer parse_random_resized_crop(JsonReader& reader);
OpPointer parse_resize(JsonReader& reader);
OpPointer parse_center_crop(JsonReader& reader);
OpPointer parse_random_crop(JsonReader& reader);
OpPointer parse_pad(JsonReader& reader);
OpPointer parse_random_horizontal_flip(JsonReader& reader);
OpPointer parse_random_vertical_flip(JsonReader& reader);
OpPointer parse_random_grayscale(JsonReader& reader);
OpPointer parse_grayscale(JsonReader& reader);
OpPointer parse_color_jitter(JsonReader& reader);
OpPointer parse_random_rotation(JsonReader& reader);
OpPointer parse_augment(JsonReader& reader);
OpPointer parse_random_augment(JsonReader& reader);
OpPointer parse_auto_augment(JsonReader& reader);
OpPointer parse_random_apply(JsonReader& reader);
OpPointer parse_to_tensor(JsonReader& reader);
OpPointer parse_to_float(JsonReader& reader);
OpPointer parse_normalize(JsonReader& reader);
OpPointer parse_random_erasing(JsonReader& reader);

}  // namespace sluice::pipeline
