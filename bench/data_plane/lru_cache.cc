// sluice-lru-cache SOCKET BYTES: a node's cache that keeps what was used last, as a page cache does, to compare with.
//
// It speaks as sluice-cache does, so its clients and their way are the same. It is better off than a disk: its records
// are in memory, all of BYTES is for them, and nothing is written.
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <list>
#include <unordered_map>

#include "src/base/checksum.h"
#include "src/cache/node_cache_messages.h"
#include "src/cache/node_socket_line.h"
#include "src/transport/unary_server.h"

namespace sluice::cache {
namespace {

using Bytes = std::vector<std::uint8_t>;

class LruCache final : public transport::UnaryHandler {
 public:
  explicit LruCache(std::uint64_t bytes_max) : bytes_max_(bytes_max) {}

  void received(std::shared_ptr<transport::UnaryCall> call, const std::string& method,
                transport::Payload message) override {
    Bytes bytes(message.bytes());
    message.copy_to(0, bytes);
    const auto question = decode_question(bytes);
    if (!question) return call->refuse(invalid_argument("no question"));
    if (method == kKeepMethod) keep(*question);
    const auto value = method == kFindMethod ? find(question->key) : nullptr;
    const auto first = encode_answer({.is_found = value != nullptr, .free_bytes = bytes_max_});
    Bytes head(first.begin(), first.end());
    if (value == nullptr) return call->answer(head, {}, nullptr);
    const Bytes record = encode_head(question->key, *value);
    head.insert(head.end(), record.begin(), record.end());
    call->answer(head, *value, value);
  }

 private:
  struct Record {
    std::string place;
    std::string version;
    std::shared_ptr<const Bytes> value;
  };

  std::shared_ptr<const Bytes> find(const Key& key) {
    const auto found = index_.find(key.place);
    if (found == index_.end() || found->second->version != key.version) return nullptr;
    records_.splice(records_.begin(), records_, found->second);
    return found->second->value;
  }

  void keep(const Question& question) {
    if (index_.contains(question.key.place) || question.value.size() > bytes_max_) return;
    bytes_ += question.value.size();
    records_.push_front({question.key.place, question.key.version,
                         std::make_shared<const Bytes>(question.value.begin(), question.value.end())});
    index_[question.key.place] = records_.begin();
    while (bytes_ > bytes_max_) {
      bytes_ -= records_.back().value->size();
      index_.erase(records_.back().place);
      records_.pop_back();
    }
  }

  const std::uint64_t bytes_max_;
  std::uint64_t bytes_ = 0;
  std::list<Record> records_;  // the one that was used last comes first
  std::unordered_map<std::string, std::list<Record>::iterator> index_;
};

}  // namespace
}  // namespace sluice::cache

int main(int argc, char** argv) {
  using namespace sluice;
  if (argc != 3) {
    std::cerr << "usage: sluice-lru-cache SOCKET BYTES\n";
    return 2;
  }
  sigset_t ending;
  ::sigemptyset(&ending);
  ::sigaddset(&ending, SIGTERM);
  ::sigprocmask(SIG_BLOCK, &ending, nullptr);
  cache::LruCache lru(std::strtoull(argv[2], nullptr, 10));
  transport::UnaryCounters counters;
  const auto server =
      transport::UnaryServer::start(argv[1], {.question_bytes = cache::kNodeMessageBytesMax}, lru, counters);
  if (!server.ok()) {
    std::cerr << server.error().to_string() << '\n';
    return 1;
  }
  int signal = 0;
  ::sigwait(&ending, &signal);
  return 0;
}
