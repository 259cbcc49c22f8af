// sluice-order-bench FILES [ROUNDS] < pipelines, one a line, "NAME OPS" with OPS as in a specification: CPU-seconds per
// 1,000 images in each order of operations, on one thread.
//
// FILES holds the paths of JPEG files, one a line. Each round makes all images in each order, one after the other, so
// that other load on the machine meets all of them alike; a figure is the smallest of the rounds. Prints a JSON object
// for each pipeline, with the figures and whether the exact order made the bytes of the program's.
#include <algorithm>
#include <array>
#include <fstream>
#include <iostream>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "src/base/clock.h"
#include "src/pipeline/native_pipeline.h"
#include "src/pipeline/seeds.h"
#include "src/pipeline/testing/specification.h"

namespace sluice::pipeline {
namespace {

constexpr std::array kOrders{"program", "exact", "relaxed"};

class Ordered {
 public:
  Ordered(const nlohmann::json& ops, const char* order, const std::vector<testing::File>& files)
      : samples_(files.size()) {
    const nlohmann::json spec = {
        {"version", 2}, {"order", order}, {"source", {{"kind", "image_files"}, {"root", ""}}}, {"ops", ops}};
    auto parsed = NativePipeline::parse(testing::specification(spec, files));
    if (!parsed.ok()) {
      std::cerr << parsed.error().to_string() << '\n';
      std::exit(1);
    }
    pipeline_ = *parsed;
    wires_.resize(samples_ * pipeline_->wire_sample_bytes());
  }

  // The same epochs each time.
  void repeat() {
    const double before = thread_cpu_seconds();
    for (std::uint64_t epoch = 0; epoch < kEpochs; ++epoch) make_all(epoch);
    smallest_ = std::min(smallest_, thread_cpu_seconds() - before);
  }

  double seconds_per_1000() const { return smallest_ * 1000 / static_cast<double>(kEpochs * samples_); }
  const std::vector<std::uint8_t>& wires() const { return wires_; }  // of the last epoch

 private:
  static constexpr std::uint64_t kEpochs = 4;

  void make_all(std::uint64_t epoch) {
    const std::size_t bytes = pipeline_->wire_sample_bytes();
    for (std::size_t i = 0; i < samples_; ++i) {
      const auto made = pipeline_->produce(static_cast<std::int64_t>(i), sample_seed(1, epoch, i),
                                           std::span(wires_).subspan(i * bytes, bytes), workspace_);
      if (!made.ok()) std::cerr << made.error().to_string() << '\n';
    }
  }

  std::size_t samples_;
  std::shared_ptr<const NativePipeline> pipeline_;
  Workspace workspace_;
  std::vector<std::uint8_t> wires_;
  double smallest_ = std::numeric_limits<double>::max();
};

nlohmann::json measured(const std::string& name, const nlohmann::json& ops, const std::vector<testing::File>& files,
                        int rounds) {
  std::vector<Ordered> orders;
  orders.reserve(std::size(kOrders));
  for (const char* order : kOrders) orders.emplace_back(ops, order, files);
  bool is_same = true;
  for (int round = 0; round < rounds; ++round) {
    for (Ordered& order : orders) order.repeat();
    is_same = is_same && orders[0].wires() == orders[1].wires();
  }
  nlohmann::json result = {{"name", name}, {"exact_is_same", is_same}};
  for (std::size_t i = 0; i < orders.size(); ++i) result[kOrders[i]] = orders[i].seconds_per_1000();
  return result;
}

}  // namespace
}  // namespace sluice::pipeline

int main(int argc, char** argv) {
  using namespace sluice::pipeline;
  std::vector<testing::File> files;
  std::ifstream list(argc > 1 ? argv[1] : "");
  for (std::string line; std::getline(list, line);) files.push_back({line, 0});
  if (files.empty()) {
    std::cerr << "usage: sluice-order-bench FILES [ROUNDS] < pipelines\n";
    return 2;
  }
  const int rounds = argc > 2 ? std::stoi(argv[2]) : 12;
  for (std::string line; std::getline(std::cin, line);) {
    const std::size_t space = line.find(' ');
    const auto ops = nlohmann::json::parse(line.substr(space + 1));
    std::cout << measured(line.substr(0, space), ops, files, rounds).dump() << std::endl;
  }
}
