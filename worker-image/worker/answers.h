// What a worker says to a feeder about its pipelines and requests, by their numbers. Thread safety: that of the stream.
#pragma once

#include <cstdint>
#include <string>

#include "src/executor/batch.h"
#include "src/transport/remote_server.h"

namespace sluice::worker {

void send_failure(transport::RemoteStream& stream, std::uint64_t id, const executor::BatchFailure& failure);
void send_failure(transport::RemoteStream& stream, std::uint64_t id, const Error& error);

void send_pipeline_ready(transport::RemoteStream& stream, std::uint64_t id);
void send_pipeline_error(transport::RemoteStream& stream, std::uint64_t id, const std::string& reason);

// The whole slot in pieces, all of which keep it alive. Returns the bytes sent.
std::size_t send_batch(transport::RemoteStream& stream, std::uint64_t id, executor::Batch batch);

}  // namespace sluice::worker
