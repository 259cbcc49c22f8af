// Batches that wait for what they read, and hold no thread meanwhile: as the metrics count them, a thread each, at most
// as many as there are.
//
// Thread safety: all methods may be called from any thread.
#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "src/pipeline/file_reader.h"

namespace sluice::executor {

class ReadWaits {
 public:
  using Now = std::function<std::chrono::steady_clock::time_point()>;

  // `threads`: that execute batches now. `blocked` gets the seconds for which threads would have waited, whenever a
  // wait begins or ends. Neither is called when this has gone.
  ReadWaits(std::function<std::size_t()> threads, std::function<void(double seconds)> blocked,
            Now now = std::chrono::steady_clock::now);
  ~ReadWaits();

  // The same, with its wait counted. Null stays null.
  std::shared_ptr<pipeline::ReadAhead> counted(std::shared_ptr<pipeline::ReadAhead> ahead) const;

 private:
  class Count;
  class Counted;
  const std::shared_ptr<Count> count_;
};

}  // namespace sluice::executor
