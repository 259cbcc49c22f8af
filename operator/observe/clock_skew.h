// The lead of our wall clock over Prometheus's. Prometheus's timestamps are moved by the lead before they are compared
// with ours (of decisions, of pods). Else a wrong clock would make every measurement look old, or new for ever.
//
// A skew is believed when it is the same after ten seconds: a server that answers from a cache is late by more each
// time. A believed skew stays until a reading differs by more than the answers' delay, so that a scrape keeps its time.
// Thread safety: none.
#pragma once

#include <optional>

namespace sluice::observe {

class ClockSkew {
 public:
  // `server_seconds`: of the newest answer; `own_seconds`: when it arrived. Returns the seconds to add to the server's.
  double seconds_ahead(double server_seconds, double own_seconds);

 private:
  struct Reading {
    double own_seconds;
    double ahead_seconds;
  };
  std::optional<Reading> earlier_;
  double believed_seconds_ = 0;
};

}  // namespace sluice::observe
