#include "src/cache/asked_ahead.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace sluice::cache {

// What was answered and is not read yet.
class AskedAhead::Answers {
 public:
  bool has_room() const {
    std::lock_guard lock(mutex_);
    return bytes_ < kBytesMost;
  }

  void add(const Batch* batch, const Key& key, Answer answer) {
    std::lock_guard lock(mutex_);
    bytes_ += answer.value.size();
    entries_.emplace(hash_of(key.place), Entry{batch, key, std::move(answer)});
  }

  std::optional<Answer> take(const Key& key) {
    std::lock_guard lock(mutex_);
    const auto [first, last] = entries_.equal_range(hash_of(key.place));
    const auto found = std::find_if(first, last, [&](const auto& entry) { return entry.second.key == key; });
    if (found == last) return std::nullopt;
    Answer answer = std::move(found->second.answer);
    bytes_ -= answer.value.size();
    entries_.erase(found);
    return answer;
  }

  void give_up(const Batch* batch, std::uint64_t place) {
    std::lock_guard lock(mutex_);
    const auto [first, last] = entries_.equal_range(place);
    for (auto entry = first; entry != last;) {
      if (entry->second.batch == batch) {
        bytes_ -= entry->second.answer.value.size();
        entry = entries_.erase(entry);
      } else {
        ++entry;
      }
    }
  }

 private:
  struct Entry {
    const Batch* batch;
    Key key;
    Answer answer;
  };

  mutable std::mutex mutex_;
  std::unordered_multimap<std::uint64_t, Entry> entries_;
  std::size_t bytes_ = 0;
};

// Whatever waits for it may hold it, and the question holds that: so it does not own the question.
class AskedAhead::Batch final : public pipeline::ReadAhead {
 public:
  Batch(std::shared_ptr<Answers> answers, const std::shared_ptr<Question>& question)
      : answers_(std::move(answers)), question_(question) {
    for (const Part& part : question->parts)
      for (const Key& key : part.keys) places_.push_back(hash_of(key.place));
  }
  ~Batch() override {
    for (const std::uint64_t place : places_) answers_->give_up(this, place);
  }

  bool when_come(std::function<void()> come) override {
    std::lock_guard lock(mutex_);
    if (is_answered_) return source_ != nullptr && source_->when_come(std::move(come));
    if (const auto question = question_.lock()) question->come = std::move(come);
    return true;
  }

  // `source`: what of it is read ahead from there.
  void answered(Question& question, std::shared_ptr<pipeline::ReadAhead> source) {
    std::function<void()> come;
    {
      std::lock_guard lock(mutex_);
      source_ = std::move(source);
      is_answered_ = true;
      come = std::exchange(question.come, nullptr);
    }
    if (come && (source_ == nullptr || !source_->when_come(come))) come();
  }

 private:
  const std::shared_ptr<Answers> answers_;
  std::vector<std::uint64_t> places_;
  std::mutex mutex_;
  const std::weak_ptr<Question> question_;  // none: it is answered, or will not be
  bool is_answered_ = false;
  std::shared_ptr<pipeline::ReadAhead> source_;
};

AskedAhead::AskedAhead(RecordStore& store, std::shared_ptr<const pipeline::FileReader> source, const Clock& clock)
    : store_(store), source_(std::move(source)), clock_(clock), answers_(std::make_shared<Answers>()) {}

AskedAhead::~AskedAhead() {
  for (std::jthread& thread : threads_) thread.request_stop();
  threads_.clear();
}

std::shared_ptr<pipeline::ReadAhead> AskedAhead::ask(std::vector<Part> parts, const pipeline::Prefix& prefix) {
  const auto question = std::make_shared<Question>(Question{std::move(parts), prefix});
  const auto batch = std::make_shared<Batch>(answers_, question);
  question->batch = batch;
  {
    std::lock_guard lock(mutex_);
    if (questions_.size() < kBatchesMost) {
      questions_.push_back(question);
      while (threads_.size() < kThreads)
        threads_.emplace_back([this](const std::stop_token& stop) { answer_questions(stop); });
      changed_.notify_one();
      return batch;
    }
  }
  std::vector<pipeline::FilePart> all;
  for (Part& part : question->parts) all.push_back(std::move(part.part));
  return read_ahead(all, prefix);
}

std::optional<AskedAhead::Answer> AskedAhead::take(const Key& key) { return answers_->take(key); }

void AskedAhead::answer_questions(const std::stop_token& stop) {
  while (true) {
    std::shared_ptr<Question> question;
    {
      std::unique_lock lock(mutex_);
      if (!changed_.wait(lock, stop, [&] { return !questions_.empty(); }) || stop.stop_requested()) return;
      question = std::move(questions_.front());
      questions_.pop_front();
    }
    answer(*question);
  }
}

void AskedAhead::answer(Question& question) const {
  std::vector<pipeline::FilePart> missing;
  for (const Part& part : question.parts) {
    const auto batch = question.batch.lock();
    if (batch == nullptr) return;
    if (!answers_->has_room()) break;
    bool is_missing = true;
    for (const Key& key : part.keys) {
      Answer answer;
      const auto started = clock_.now();
      answer.is_found = store_.find_ahead(key, answer.value);
      answer.took = clock_.now() - started;
      if (!answer.is_found) answer.value.clear();
      is_missing = answer.value.empty();
      answers_->add(batch.get(), key, std::move(answer));
      if (!is_missing) break;
    }
    if (is_missing) missing.push_back(part.part);
  }
  if (const auto batch = question.batch.lock()) batch->answered(question, read_ahead(missing, question.prefix));
}

std::shared_ptr<pipeline::ReadAhead> AskedAhead::read_ahead(const std::vector<pipeline::FilePart>& missing,
                                                            const pipeline::Prefix& prefix) const {
  return source_->read_ahead([&](std::size_t i) { return missing[i]; }, missing.size(), prefix);
}

}  // namespace sluice::cache
