// Text with figures as people want to read them; cheap enough to write thousands of sentences per decision.
//
// Thread safety: values.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace sluice::scheduler {

struct Number {  // three significant digits, whole from 100 on
  double value = 0;
};
struct Percent {  // of a ratio: 0.123 is "12 %"
  double ratio = 0;
};
struct Workers {  // "1 worker", "3 workers"
  int count = 0;
};

class Text {
 public:
  Text() { text_.reserve(kUsual); }

  Text& operator<<(std::string_view text) { return text_.append(text), *this; }
  Text& operator<<(long long whole);
  Text& operator<<(Number number);
  Text& operator<<(Percent percent);
  Text& operator<<(Workers workers);

  std::string take() { return std::move(text_); }

 private:
  static constexpr std::size_t kUsual = 250;  // characters: most sentences are shorter

  std::string text_;
};

}  // namespace sluice::scheduler
