// What a process says to the node's cache: a question that is understood says itself again, byte for byte, and the
// cache answers it as one that can be read.
#include "src/base/testing/manual_clock.h"
#include "src/cache/fuzz/fuzz.h"
#include "src/cache/node_cache.h"
#include "src/cache/testing/memory_disk.h"

namespace sluice::cache::fuzz {

void node_message(std::string_view input) {
  const testing::Bytes message(input.begin(), input.end());
  if (message.size() >= kAnswerBytes) {
    const auto bytes = std::span(message).first(kAnswerBytes);
    if (const auto answer = decode_answer(bytes)) FUZZ_CHECK(std::ranges::equal(encode_answer(*answer), bytes));
  }
  const auto question = decode_question(message);
  if (!question) return;
  testing::Bytes again = encode_head(question->key, question->value.size(), question->value_checksum);
  if (question->job) {
    const auto asker = encode_asker(*question->job);
    again.insert(again.begin(), asker.begin(), asker.end());
  }
  again.insert(again.end(), question->value.begin(), question->value.end());
  FUZZ_CHECK(again == message);
  const sluice::testing::ManualClock clock;
  NodeCounters counters;
  NodeCache cache(1 << 20, counters);
  const auto disk = std::make_shared<testing::DiskContent>();
  const OpenSharedDisk without_a_word = [&](Counters& of_disk, const std::stop_token& stop) {
    return SharedDisk::open(std::make_unique<testing::MemoryDisk>(disk), {.bytes = 1 << 20, .records = 16}, clock,
                            of_disk, stop);
  };
  FUZZ_CHECK(cache.open(without_a_word, {}).ok());
  cache.keep(*question);
  FUZZ_CHECK(disk->bytes() <= 1 << 20);
  const auto in_memory = cache.find_in_memory(*question);
  FUZZ_CHECK(!in_memory);
  const NodeAnswer answer = cache.find(question->key, question->job.has_value());
  FUZZ_CHECK(decode_answer(std::span(answer.head).first(kAnswerBytes)).has_value());
  if (answer.value == nullptr) return;
  FUZZ_CHECK(std::ranges::equal(answer.value->bytes, question->value));
  FUZZ_CHECK(is_record_of(question->key, std::span(answer.head).subspan(kAnswerBytes), answer.value->bytes));
}

}  // namespace sluice::cache::fuzz
