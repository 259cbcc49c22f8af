// What a batch reads ahead, told by the test when it has come.
#pragma once

#include <functional>
#include <utility>

#include "src/pipeline/file_reader.h"

namespace sluice::executor::testing {

class Ahead final : public pipeline::ReadAhead {
 public:
  explicit Ahead(bool has_come = false) : has_come_(has_come) {}
  bool when_come(std::function<void()> come) override {
    told = std::move(come);
    return !has_come_;
  }
  std::function<void()> told;

 private:
  const bool has_come_;
};

}  // namespace sluice::executor::testing
