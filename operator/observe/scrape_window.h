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
  // So long that decisions come late, which people should know. Twice the configured length is nothing.
  bool is_much_longer_than_configured() const { return seconds_ >= 4 * least_seconds_; }
  // Even the longest one has too few scrapes.
  bool is_too_short() const { return is_too_short_; }

  // How often a pod was scraped in the window, of the pod that was scraped most. For the next round.
  void take(double scrapes) {
    is_too_short_ = scrapes < kLeastScrapes && seconds_ >= kMostSeconds;
    if (scrapes < kLeastScrapes) seconds_ = std::max(seconds_, std::min(2 * seconds_, kMostSeconds));
    if (scrapes >= kPlentyScrapes) seconds_ = std::max(least_seconds_, seconds_ / 2);
  }

 private:
  int least_seconds_;
  int seconds_;
  bool is_too_short_ = false;
};

}  // namespace sluice::observe
