// Cachew's and Pecan's tuners are fed the windows that the authors measured. They must ask for the workers that the
// authors' systems then ran with: scheduler/simulator/policies/testdata/published_scaling_steps.csv.
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "scheduler/simulator/policies/cachew_tuner.h"
#include "scheduler/simulator/policies/pecan_tuner.h"
#include "src/base/testing/catch.h"

namespace sluice::scheduler {
namespace {

struct Window {
  int remote = 0;
  int local = 0;
  double batch_seconds = 0;
};

std::vector<Window> published(const std::string& run) {
  std::ifstream file("scheduler/simulator/policies/testdata/published_scaling_steps.csv");
  REQUIRE(file);
  std::vector<Window> windows;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(run + ",")) continue;
    std::istringstream fields(line.substr(run.size() + 1));
    Window window;
    char comma = 0;
    double batches_per_second = 0;
    fields >> window.remote >> comma >> window.local >> comma >> batches_per_second;
    REQUIRE(fields);
    window.batch_seconds = 1 / batches_per_second;
    windows.push_back(window);
  }
  return windows;
}

// The configurations of a run in order, each once.
std::vector<std::pair<int, int>> configurations(const std::vector<Window>& windows) {
  std::vector<std::pair<int, int>> order;
  for (const Window& window : windows) {
    const std::pair<int, int> configuration{window.remote, window.local};
    if (order.empty() || order.back() != configuration) order.push_back(configuration);
  }
  return order;
}

TEST_CASE("the published runs are complete") {
  CHECK(published("resnet_cachew").size() == 87);
  CHECK(published("resnet_pecan").size() == 70);
  CHECK(published("retina_cachew").size() == 26);
  CHECK(published("retina_pecan").size() == 19);
}

TEST_CASE("Cachew on ResNet-50: up to the nineteen workers there are, still asking for a twentieth") {
  CachewTuner tuner({.scale_up_above = 0});
  for (const Window& window : published("resnet_cachew")) {
    INFO(window.remote << " workers");
    const int before = tuner.target();
    const int target = tuner.report({window.remote, window.batch_seconds, 1});
    // Each window was run with the workers that the tuner had asked for after the one before. From 19 on there were no
    // more workers. Losses and gains after that were not the tuner's doing.
    CHECK(window.remote == std::min(before, 19) - (before == 20 ? 19 - window.remote : 0));
    CHECK(target == (before < 20 ? window.remote + 1 : 20));
  }
  CHECK(tuner.scaling());
}

TEST_CASE("Cachew on RetinaNet: the third worker brings nothing, back to two") {
  CachewTuner tuner({.scale_up_above = 0.03});
  std::vector<int> targets;
  for (const Window& window : published("retina_cachew")) {
    targets.push_back(tuner.report({window.remote, window.batch_seconds, 1}));
  }
  REQUIRE(targets.size() == 26);
  CHECK(targets[0] == 2);
  CHECK(targets[1] == 3);
  // The worker taken away left at the end of the epoch, six windows later; the target stands from the first.
  for (std::size_t i = 2; i < targets.size(); ++i) CHECK(targets[i] == 2);
  CHECK_FALSE(tuner.scaling());
}

// What the tuner asks for after each window is what the next windows ran with.
void check_pecan(const std::string& run, double scale_up_above, const std::vector<PecanTarget>& local_never_left) {
  PecanTuner tuner({.scale_up_above = scale_up_above});
  const std::vector<Window> windows = published(run);
  std::vector<PecanTarget> exceptions;
  for (std::size_t i = 0; i + 1 < windows.size(); ++i) {
    INFO(run << ", window " << i << ": " << windows[i].remote << " remote, " << windows[i].local << " local");
    const PecanTarget target = tuner.report({windows[i].remote, windows[i].local, windows[i].batch_seconds, true});
    CHECK(target.remote == windows[i + 1].remote);
    if (target.local == windows[i + 1].local) continue;
    // The release cannot take a local worker away within an epoch; the removal was asked for, and did not happen.
    CHECK(target.local == windows[i + 1].local - 1);
    exceptions.push_back(target);
  }
  CHECK(exceptions == local_never_left);
  CHECK(tuner.state() == PecanTuner::State::kStable);
}

TEST_CASE("Pecan on ResNet-50: 13 remote, then 10 local, then down to 4 remote") {
  check_pecan("resnet_pecan", 0, {{11, 5}, {10, 8}});
}

TEST_CASE("Pecan on RetinaNet: 3 remote, then 10 local, then none remote") { check_pecan("retina_pecan", 0.03, {}); }

TEST_CASE("what the replayed runs went through, for the reader") {
  CHECK(configurations(published("resnet_pecan")).back() == std::pair{4, 10});
  CHECK(configurations(published("retina_pecan")).back() == std::pair{0, 10});
  CHECK(configurations(published("resnet_cachew")).size() == 23);
}

}  // namespace
}  // namespace sluice::scheduler
