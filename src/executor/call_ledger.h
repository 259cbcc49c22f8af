// Whether keeping the results of one function pays: what its calls take, against what it takes to find their results.
//
// Glossary
//   call   making a result. Where marked functions are within, it takes what those give: less once they are found.
//   hit    finding a result, from the question to the value.
//   store  what keeping takes beside the call.
// Rule
//   A result is kept where one later hit repays it: call > hit + store; as long as no hit was seen, that is expected
//   to take as long as the store. Results are asked for while hit < call. So of functions within each other each is
//   compared with what it takes given the others. Cachew's modes fall out: the outer one kept is "full", only the
//   inner one kept "source", none "compute" (D. Graur et al., ATC'22, section 4.4, where one profile decides for all
//   epochs).
// Why it does not stay wrong
//   All sides go on being measured: at times a result that is there is made all the same, one that does not pay is
//   asked for, or one whose keeping would not be repaid is kept. Such a trial is as rare as kTrialShare of the time
//   says. Decisions have hysteresis.
// Thread safety: none.
#pragma once

#include <cstdint>

#include "src/transport/function_call.h"

namespace sluice::executor {

// Of the last observations: older ones count less. On a busy machine a process may stand still for a second, so one
// that is beyond kOutlier times the mean counts as that.
class RecentMean {
 public:
  void add(std::uint64_t count, double sum);
  // So much beside the observations that were added.
  void add_to_them(double sum) { sum_ += sum; }
  // The next observations count more than those so far.
  void forget();
  double mean() const { return weight_ > 0 ? sum_ / weight_ : 0; }
  bool is_known() const { return weight_ >= kEnough; }

 private:
  static constexpr double kEnough = 8;
  static constexpr double kWeightMax = 32;
  static constexpr double kOutlier = 4;

  double weight_ = 0;
  double sum_ = 0;
};

class CallLedger {
 public:
  static constexpr double kTrialShare = 0.02;
  static constexpr std::uint64_t kTrialIntervalMin = 64;
  static constexpr std::uint64_t kTrialIntervalMax = 1 << 20;
  static constexpr std::uint64_t kFirstTrialsMax = 64;
  static constexpr double kStopsAbove = 1.02;  // of the call's seconds
  static constexpr double kStartsBelow = 0.97;

  struct Advice {
    bool asks = true;        // look whether there is a result
    bool keeps = true;       // if there is none
    std::uint64_t rest = 0;  // so many calls of this process need no question
  };

  // For a call that is asked about now.
  Advice next();
  // Its result was there.
  void note_found() { has_found_ = true; }
  // Its result was kept, which took so long beside what the report tells.
  void note_kept(double seconds) { stores_.add_to_them(seconds); }
  void add(const transport::CallReport& report);

  // What these hits would have taken as calls, less what they took. 0 as long as that is not known.
  double saved_seconds(const transport::CallReport& report) const;

 private:
  const RecentMean& call() const { return calls_.is_known() ? calls_ : cold_calls_; }
  bool keeping_pays() const;
  void decide();
  static std::uint64_t interval(double dear_seconds, double cheap_seconds);

  RecentMean calls_;
  RecentMean cold_calls_;
  RecentMean hits_;
  RecentMean stores_;
  bool has_found_ = false;
  bool hits_pay_ = true;
  std::uint64_t asked_since_trial_ = 0;
  std::uint64_t asked_since_kept_ = 0;  // while keeping does not pay
  std::uint64_t trials_ = 0;
};

}  // namespace sluice::executor
