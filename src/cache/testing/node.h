// The cache of a node in this process, over a disk in memory, and lines to it that fail as told.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "src/base/testing/catch.h"
#include "src/base/testing/manual_clock.h"
#include "src/cache/node_cache.h"
#include "src/cache/node_cache_client.h"
#include "src/cache/testing/memory_disk.h"

namespace sluice::cache::testing {

struct Node {
  explicit Node(sluice::testing::ManualClock& clock_of_all) : clock(clock_of_all) {}

  // As a daemon that starts, over the same disk; one that ran before has ended, and its memory is gone.
  void start(const Limits& limits = {.bytes = 10 << 20, .records = 1 << 16}, std::uint64_t memory_bytes = 1 << 20) {
    stop();
    counters = std::make_unique<NodeCounters>();
    cache = std::make_unique<NodeCache>(memory_bytes, *counters);
    REQUIRE(cache->open(shared_disk_on(std::make_unique<MemoryDisk>(disk), limits, clock), {}).ok());
  }
  void stop() {
    cache.reset();
    counters.reset();
  }

  std::shared_ptr<DiskContent> disk = std::make_shared<DiskContent>();
  sluice::testing::ManualClock& clock;
  std::unique_ptr<NodeCounters> counters;
  std::unique_ptr<NodeCache> cache;  // null: there is no answer

  // What happens to questions on their way.
  std::optional<Error> fails_with;
  Clock::Duration takes{0};
  std::function<void(Bytes& answer)> on_its_way;
  bool is_of_earlier_version = false;  // and knows no jobs
  int questions = 0;
  int keeps = 0;                    // of them
  std::size_t announced_bytes = 0;  // of the last announcement
  Clock::Duration patience{0};      // of the last question

  Result<Bytes> answer(NodeCacheLine::Wish wish, std::span<const std::uint8_t> message) {
    ++questions;
    clock.advance(takes);
    if (fails_with) return *fails_with;
    if (cache == nullptr) return unavailable("no daemon is there");
    if (wish == NodeCacheLine::Wish::kAnnounce) {
      announced_bytes = message.size();
      const auto announcement = is_of_earlier_version ? std::nullopt : cache->understand_announcement(message);
      if (!announcement) return invalid_argument("no announcement");
      NodeAnswer taken = cache->announce(*announcement);
      if (on_its_way) on_its_way(taken.head);
      return std::move(taken.head);
    }
    const auto question = cache->understand(message);
    if (!question || (is_of_earlier_version && question->job)) return invalid_argument("no question");
    NodeAnswer answer;
    if (wish == NodeCacheLine::Wish::kKeep) {
      ++keeps;
      answer = cache->keep(*question);
    } else {
      auto in_memory = cache->find_in_memory(*question);
      answer = in_memory ? std::move(*in_memory) : cache->find(question->key, question->job.has_value());
    }
    Bytes bytes = std::move(answer.head);
    if (answer.value != nullptr) bytes.insert(bytes.end(), answer.value->bytes.begin(), answer.value->bytes.end());
    if (on_its_way) on_its_way(bytes);
    return bytes;
  }
};

class NodeLine final : public NodeCacheLine {
 public:
  explicit NodeLine(Node& node) : node_(node) {}

  Result<std::size_t> ask(Wish wish, std::span<const std::uint8_t> head, std::span<const std::uint8_t> value,
                          Clock::Duration patience, std::span<std::uint8_t> answer_head, Bytes& answer_value) override {
    node_.patience = patience;
    Bytes message(head.begin(), head.end());
    message.insert(message.end(), value.begin(), value.end());
    SLUICE_TRY(const Bytes answer, node_.answer(wish, message));
    const std::size_t first = std::min(answer_head.size(), answer.size());
    std::copy_n(answer.begin(), first, answer_head.begin());
    answer_value.assign(answer.begin() + static_cast<std::ptrdiff_t>(first), answer.end());
    return first;
  }

 private:
  Node& node_;
};

}  // namespace sluice::cache::testing
