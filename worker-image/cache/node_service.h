// The node's cache as its clients reach it: questions come from the server, and go to memory at once or to threads that
// may wait for the disk.
//
// Bounds: kThreads at the disk, kQueueMax questions that wait for them, kBytesMax of records that wait to be kept, and
// as much of answers that are not read yet. What is beyond them is refused, which is a miss.
// Thread safety: all methods may be called from any thread.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "src/cache/node_cache.h"
#include "src/executor/thread_pool.h"
#include "src/transport/unary_server.h"

namespace sluice::node_cache {

// Bytes that may be in memory at the same time. Thread safety: take() may be called from any thread.
class ByteAllowance {
 public:
  explicit ByteAllowance(std::uint64_t bytes_max) : bytes_max_(bytes_max) {}

  // Null: so many are not left. They come back with the last copy of what this returns, which may outlive this.
  std::shared_ptr<const void> take(std::uint64_t bytes) const;

 private:
  const std::uint64_t bytes_max_;
  const std::shared_ptr<std::atomic<std::uint64_t>> taken_ = std::make_shared<std::atomic<std::uint64_t>>(0);
};

class NodeService final : public transport::UnaryHandler {
 public:
  static constexpr std::size_t kThreads = 4;
  static constexpr std::size_t kQueueMax = 64;
  static constexpr std::uint64_t kBytesMax = std::uint64_t{256} << 20;

  // REQUIRES: the cache outlives it.
  explicit NodeService(cache::NodeCache& cache) : cache_(cache) {}

  // Of the user whose process this is.
  void received(std::shared_ptr<transport::UnaryCall> call, const std::string& method,
                transport::Payload question) override {
    serve("", call, method, std::move(question));
  }
  // Of a tenant, which finds only what it has kept itself. Empty: none; no tenant's key is one of these.
  void serve(const std::string& tenant, const std::shared_ptr<transport::UnaryCall>& call, const std::string& method,
             transport::Payload question);
  // As there is too much to do.
  void refuse(transport::UnaryCall& call);

  const std::atomic<std::uint64_t>& refused() const { return refused_; }

 private:
  void find(const std::string& tenant, const std::shared_ptr<transport::UnaryCall>& call,
            const transport::Payload& message);
  void keep(const std::string& tenant, const std::shared_ptr<transport::UnaryCall>& call, transport::Payload message);
  void announce(const std::string& tenant, const std::shared_ptr<transport::UnaryCall>& call,
                transport::Payload message);
  void answer(transport::UnaryCall& call, cache::NodeAnswer answer);

  cache::NodeCache& cache_;
  std::atomic<std::uint64_t> refused_ = 0;
  const ByteAllowance questions_{kBytesMax};
  const ByteAllowance answers_{kBytesMax};
  executor::ThreadPool threads_{kThreads, kThreads, kQueueMax, 0};  // last: its jobs use the rest
};

}  // namespace sluice::node_cache
