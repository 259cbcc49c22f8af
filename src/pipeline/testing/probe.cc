// sluice-pipeline-probe MODE < lines: what the native pipeline does, for comparison with torch from Python.
//
//   samples SPEC_FILE   lines "index seed": writes the bytes of each sample's final tensors. A sample that fails writes
//   nothing,
//                       says why on stderr and makes the exit status 1.
//   wire SPEC_FILE      the same with the wire form
//   crops               lines "height width seed scale0 scale1 ratio0 ratio1 log_ratio0 log_ratio1 p": prints
//                       "top left height width flip" for a RandomResizedCrop and RandomHorizontalFlip
//   seeds               lines "base_seed epoch position": prints the sample seed
#include <cstdio>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "src/pipeline/geometry.h"
#include "src/pipeline/native_pipeline.h"
#include "src/pipeline/seeds.h"
#include "src/pipeline/torch_random.h"

namespace sluice::pipeline {
namespace {

int write_samples(const char* spec_path, bool finish) {
  std::ifstream file(spec_path);
  std::stringstream spec;
  spec << file.rdbuf();
  const auto pipeline = NativePipeline::parse(spec.str());
  if (!pipeline) {
    std::cerr << pipeline.error().to_string() << '\n';
    return 2;
  }
  Workspace workspace;
  std::vector<std::uint8_t> pixels((*pipeline)->wire_sample_bytes());
  std::vector<std::byte> tensor;
  int status = 0;
  std::int64_t index = 0;
  std::uint32_t seed = 0;
  while (std::cin >> index >> seed) {
    if (auto made = (*pipeline)->produce(index, seed, pixels, workspace); !made) {
      std::cerr << made.error().to_string() << '\n';
      status = 1;
      continue;
    }
    if (!finish) {
      std::fwrite(pixels.data(), 1, pixels.size(), stdout);
      continue;
    }
    for (std::size_t view = 0; view < (*pipeline)->view_count(); ++view) {
      tensor.resize((*pipeline)->schema().fields()[view].sample_bytes);
      (*pipeline)->finish(pixels, view, tensor);
      std::fwrite(tensor.data(), 1, tensor.size(), stdout);
    }
  }
  return status;
}

int write_crops() {
  ImageSize image;
  std::uint32_t seed = 0;
  RandomResizedCrop crop;
  crop.size = {8, 8};
  double probability = 0;
  while (std::cin >> image.height >> image.width >> seed >> crop.scale[0] >> crop.scale[1] >> crop.ratio[0] >>
         crop.ratio[1] >> crop.log_ratio[0] >> crop.log_ratio[1] >> probability) {
    TorchRandom random(seed);
    const Box box = random_resized_crop_box(crop, image, random);
    const bool flip = random.chance(probability);
    std::cout << box.top << ' ' << box.left << ' ' << box.height << ' ' << box.width << ' ' << flip << '\n';
  }
  return 0;
}

int write_seeds() {
  std::uint64_t base_seed = 0;
  std::uint64_t epoch = 0;
  std::uint64_t position = 0;
  while (std::cin >> base_seed >> epoch >> position) std::cout << sample_seed(base_seed, epoch, position) << '\n';
  return 0;
}

}  // namespace
}  // namespace sluice::pipeline

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "crops") return sluice::pipeline::write_crops();
  if (mode == "seeds") return sluice::pipeline::write_seeds();
  if ((mode == "samples" || mode == "wire") && argc > 2) {
    return sluice::pipeline::write_samples(argv[2], mode == "samples");
  }
  std::cerr << "usage: sluice-pipeline-probe samples SPEC_FILE | wire SPEC_FILE | crops | seeds\n";
  return 2;
}
