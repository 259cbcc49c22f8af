// The node's cache as its clients reach it: questions come from the server, and go to memory at once or to threads that
// may wait for the disk.
//
// Where daemons share their records (peers.h), a question of a pod whose record is at home elsewhere goes there, and an
// announcement goes to all.
// Bounds: kThreads at the disk and kPeerThreads at other daemons, kQueueMax questions that wait for each, kAnnounceMax
// announcements that wait to be told to the others, and
// Allowances: of records that wait to be kept, and of answers that are not read yet. What is beyond them is refused, or
// answered as if nothing had been found, and is a miss.
// Thread safety: all methods may be called from any thread.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "src/cache/node_cache.h"
#include "src/executor/thread_pool.h"
#include "src/transport/unary_server.h"
#include "worker-image/cache/peers.h"

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

// What may be on its way at the same time, to the disk and to those who asked. Copies are one allowance.
struct Allowances {
  static constexpr std::uint64_t kBytesMax = std::uint64_t{256} << 20;

  ByteAllowance questions{kBytesMax};
  ByteAllowance answers{kBytesMax};
};

// Who asks. The default: the user whose process this is.
struct Asker {
  std::string tenant = {};      // whose records it finds; empty: none; no tenant's key is one of these
  std::string token = {};       // by which other daemons know the tenant, too
  std::string name_space = {};  // whose jobs it may speak for; empty: those without one
};

class NodeService final : public transport::UnaryHandler {
 public:
  static constexpr std::size_t kThreads = 4;
  static constexpr std::size_t kQueueMax = 64;
  static constexpr std::size_t kPeerThreads = 8;
  static constexpr std::size_t kAnnounceMax = 8;

  // `peers`: null where this daemon shares its records with no other one. REQUIRES: both outlive it.
  explicit NodeService(cache::NodeCache& cache, Peers* peers = nullptr, Allowances allowances = {});

  void received(std::shared_ptr<transport::UnaryCall> call, const std::string& method,
                transport::Payload question) override {
    serve({}, call, method, std::move(question));
  }
  // A tenant finds only what it has kept itself.
  void serve(const Asker& asker, const std::shared_ptr<transport::UnaryCall>& call, const std::string& method,
             transport::Payload question);
  // As there is too much to do.
  void refuse(transport::UnaryCall& call);

  const std::atomic<std::uint64_t>& refused() const { return refused_; }

 private:
  struct Asked {
    Asker asker;
    std::shared_ptr<transport::UnaryCall> call;
    bool may_go_on = false;  // to another daemon
  };
  void find(const Asked& asked, const transport::Payload& message);
  void find_elsewhere(const Asked& asked, std::shared_ptr<Peer> home, PodQuestion question);
  void keep(const Asked& asked, transport::Payload message);
  void keep_elsewhere(const Asked& asked, std::shared_ptr<Peer> home, PodQuestion question,
                      std::shared_ptr<const void> allowed);
  void announce(const Asked& asked, transport::Payload message);
  void tell(const Asked& asked, cache::Announcement announcement, std::shared_ptr<const void> allowed);
  std::shared_ptr<Peer> home_of(const Asked& asked, const cache::Key& key) const;
  // As the pod is to see it.
  void answer(const Asked& asked, cache::NodeAnswer answer);

  cache::NodeCache& cache_;
  Peers* const peers_;
  std::atomic<std::uint64_t> refused_ = 0;
  const Allowances allowances_;
  // Last: their jobs use the rest. Those of each one use the ones before it.
  const std::unique_ptr<executor::ThreadPool> announcing_;    // null: no peers
  const std::unique_ptr<executor::ThreadPool> peer_threads_;  // as well
  executor::ThreadPool threads_{kThreads, kThreads, kQueueMax, 0};
};

}  // namespace sluice::node_cache
