// The feeder's memory of one connected client. Plain data, guarded by the feeder's lock.
#pragma once

#include <map>
#include <memory>

#include "src/executor/batch.h"
#include "worker-image/feeder/arena_fit.h"
#include "worker-image/feeder/socket_server.h"

namespace sluice::feeder {

inline constexpr std::size_t kStreamsPerClientMax = 1024;
inline constexpr std::size_t kPipelinesPerClientMax = 1024;

struct ClientSession {
  struct Stream {
    executor::PipelineHandle pipeline;
    executor::StateHandle state;  // null: as it was described
    std::uint64_t base_seed = 0;
    std::uint64_t epoch = 0;
    std::shared_ptr<executor::VirtualWorkers> virtual_workers;  // null: its batches may be made anywhere
    transport::ProgressMessage progress;                        // as reported last
    double step_seconds = 0;  // that the training loop computed on a batch, between the last two reports
  };
  struct KnownPipeline {
    executor::PipelineHandle pipeline;
    std::size_t prefetch_batches = 0;
    executor::StateHandle state;  // of the stream that was opened last
  };

  std::shared_ptr<Connection> connection;
  bool greeted = false;
  std::int64_t rank = 0;
  std::map<std::uint64_t, KnownPipeline> pipelines;     // by the client's number
  std::map<std::uint64_t, Stream> streams;              // by the client's number
  std::map<std::uint64_t, transport::ArenaSlot> slots;  // in the client's hands
  std::size_t batch_bytes = 0;                          // the largest seen
  std::size_t batch_bytes_hint = 0;                     // the client's word, until one was seen
  std::size_t prefetch_batches = 0;
  std::size_t window = 0;  // as told last
  ArenaFit arena_fit;
};

}  // namespace sluice::feeder
