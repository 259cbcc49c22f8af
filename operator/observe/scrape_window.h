// The window of the queries, as long as the pods' scrapes ask for.
//
// A rate needs several samples in its window. Many a Prometheus scrapes once a minute, and in a window of 30 s it has
// one sample of each series, or none: every job would be unmeasured. So the window doubles until the pods that have
// been there all the time were scraped four times in it, and halves again where a half would do.
//
// Thread safety: none.
#pragma once

#include <algorithm>

namespace sluice::observe {

class ScrapeWindow {
 public:
  static constexpr int kMostSeconds = 600;
  static constexpr double kLeastScrapes = 4;
  static constexpr double kPlentyScrapes = 12;  // three halves of the least are left in a half

  // REQUIRES: configured_seconds > 0. It is never shorter than that.
  explicit ScrapeWindow(int configured_seconds) : least_seconds_(configured_seconds), seconds_(configured_seconds) {}

  int seconds() const { return seconds_; }

  // How often a pod was scraped in the window, of the pod that was scraped most. For the next round.
  void take(double scrapes) {
    if (scrapes < kLeastScrapes) seconds_ = std::max(seconds_, std::min(2 * seconds_, kMostSeconds));
    if (scrapes >= kPlentyScrapes) seconds_ = std::max(least_seconds_, seconds_ / 2);
  }

 private:
  int least_seconds_;
  int seconds_;
};

}  // namespace sluice::observe
