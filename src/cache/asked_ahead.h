// Records that are asked for before their samples are made. Only the answer of a store in another process tells what is
// to be read ahead from the source: a guess too many is a request too many, and a guess too few is read late, while a
// thread waits.
//
// A batch's records are asked for on threads of this class. What is found is kept until it is read or its batch is
// given up; what is missing is then read ahead from the source.
// Bounds: kThreads; kBatchesMost that wait, of more all is read ahead; kBytesMost of what was found and is not read,
// beyond which nothing is asked for, and what is needed is asked for by its reader.
// Thread safety: all but the destructor may be called from any thread.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "src/base/clock.h"
#include "src/cache/record_store.h"
#include "src/pipeline/file_reader.h"

namespace sluice::cache {

class AskedAhead {
 public:
  static constexpr std::size_t kThreads = 4;
  static constexpr std::size_t kBatchesMost = 4096;
  static constexpr std::size_t kBytesMost = std::size_t{128} << 20;

  struct Part {
    pipeline::FilePart part;
    std::vector<Key> keys;  // in the order in which its reader asks for them, until one is found that is not empty
  };
  struct Answer {
    bool is_found = false;
    std::vector<std::uint8_t> value = {};
    Clock::Duration took{0};
  };

  // REQUIRES: the store and the clock outlive this
  AskedAhead(RecordStore& store, std::shared_ptr<const pipeline::FileReader> source, const Clock& clock);
  // What was asked for does not come any more.
  ~AskedAhead();

  // Of one batch.
  std::shared_ptr<pipeline::ReadAhead> ask(std::vector<Part> parts, const pipeline::Prefix& prefix);

  // The answer to a question that a batch has asked, once; nullopt: there is none.
  std::optional<Answer> take(const Key& key);

 private:
  class Answers;
  class Batch;
  struct Question {
    std::vector<Part> parts;
    pipeline::Prefix prefix;
    std::weak_ptr<Batch> batch = {};  // none: it was given up
    std::function<void()> come = {};  // by the batch's mutex
  };

  void answer_questions(const std::stop_token& stop);
  void answer(Question& question) const;
  std::shared_ptr<pipeline::ReadAhead> read_ahead(const std::vector<pipeline::FilePart>& missing,
                                                  const pipeline::Prefix& prefix) const;

  RecordStore& store_;
  const std::shared_ptr<const pipeline::FileReader> source_;
  const Clock& clock_;
  const std::shared_ptr<Answers> answers_;

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<std::shared_ptr<Question>> questions_;
  std::vector<std::jthread> threads_;  // from the first question on
};

}  // namespace sluice::cache
