#include "worker-image/testing/picture_folder.h"

#include <fstream>
#include <nlohmann/json.hpp>

#include "src/pipeline/testing/jpeg_encoder.h"
#include "src/pipeline/testing/specification.h"

namespace sluice::testing {

PictureFolder::PictureFolder(int count) : pictures(count) {
  for (int i = 0; i < count; ++i) {
    const auto bytes = pipeline::testing::encode_picture({80 + i, 60 + i % 7}, {});
    std::ofstream(root / (std::to_string(i) + ".jpg"), std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }
}

std::string PictureFolder::specification(int size) const {
  std::vector<pipeline::testing::File> files;
  for (int i = 0; i < pictures; ++i) files.push_back({std::to_string(i) + ".jpg", i % 5});
  const nlohmann::json specification = {
      {"version", 2},
      {"source", {{"kind", "image_files"}, {"root", root.string()}}},
      {"ops",
       {{{"op", "decode_rgb"}},
        {{"op", "random_resized_crop"},
         {"size", {size, size}},
         {"scale", {0.08, 1.0}},
         {"ratio", {0.75, 1.3333333333333333}},
         {"interpolation", "bilinear"}},
        {{"op", "random_horizontal_flip"}, {"p", 0.5}},
        {{"op", "to_tensor"}},
        {{"op", "normalize"}, {"mean", {0.485, 0.456, 0.406}}, {"std", {0.229, 0.224, 0.225}}}}},
  };
  return pipeline::testing::specification(specification, files);
}

}  // namespace sluice::testing
