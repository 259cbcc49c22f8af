// The node's cache for the pods of many namespaces: each finds what its own namespace has kept, or
// one with which it shares its room (rooms.h), and nothing else.
//
// What a pod says of its namespace counts for nothing; its token does (tenant_tokens.h). A question with a token that
// is not known waits until the API server has said whose it is, kWaitingMax of them with kWaitingBytesMax at most.
// Thread safety: all methods may be called from any thread.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "src/executor/thread_pool.h"
#include "worker-image/cache/node_service.h"
#include "worker-image/cache/tenant_tokens.h"

namespace sluice::node_cache {

class TenantService final : public transport::UnaryHandler {
 public:
  static constexpr std::size_t kWaitingMax = 64;
  static constexpr std::uint64_t kWaitingBytesMax = std::uint64_t{64} << 20;

  // Where the records of a namespace are, and under whose name.
  struct Place {
    NodeService& service;
    std::string tenant;
  };
  using FindPlace = std::function<Place(const std::string& name_space)>;  // "": of a namespace that is not known yet

  // REQUIRES: `tokens` and the places outlive it; `find_place` may be called from any thread.
  TenantService(FindPlace find_place, TenantTokens& tokens) : find_place_(std::move(find_place)), tokens_(tokens) {}
  // All namespaces have their records in one place, each under its own name.
  TenantService(NodeService& service, TenantTokens& tokens)
      : TenantService(
            [&service](const std::string& name_space) {
              return Place{service, name_space};
            },
            tokens) {}

  void received(std::shared_ptr<transport::UnaryCall> call, const std::string& method,
                transport::Payload question) override;

  // Calls without a token that is taken.
  const std::atomic<std::uint64_t>& refused() const { return refused_; }

 private:
  void answer(const Result<std::string>& tenant, const std::string& token,
              const std::shared_ptr<transport::UnaryCall>& call, const std::string& method,
              transport::Payload question);

  const FindPlace find_place_;
  TenantTokens& tokens_;
  std::atomic<std::uint64_t> refused_ = 0;
  const ByteAllowance waiting_{kWaitingBytesMax};
  // One thread: of several questions with a new token the first one has it reviewed. Last: its jobs use the rest.
  executor::ThreadPool reviews_{1, 1, kWaitingMax, 0};
};

}  // namespace sluice::node_cache
