#include "worker-image/worker/answers.h"

#include <algorithm>

#include "src/executor/native_batch.h"
#include "src/transport/worker_forms.h"

namespace sluice::worker {

using transport::RemoteStream;

void send_failure(RemoteStream& stream, std::uint64_t id, const executor::BatchFailure& failure) {
  v1::Header header;
  auto* message = header.mutable_failure();
  message->set_id(id);
  message->set_exception_type(failure.failure.exception_type);
  message->set_message(failure.failure.message);
  message->set_traceback(failure.failure.traceback);
  const auto exception = std::make_shared<const std::string>(failure.exception);
  stream.send(header, std::as_bytes(std::span(*exception)), exception);
}

void send_failure(RemoteStream& stream, std::uint64_t id, const Error& error) {
  send_failure(stream, id, executor::to_failure(error));
}

void send_pipeline_ready(RemoteStream& stream, std::uint64_t id) {
  v1::Header header;
  header.mutable_pipeline_ready()->set_id(id);
  stream.send(header);
}

void send_pipeline_error(RemoteStream& stream, std::uint64_t id, const std::string& reason) {
  v1::Header header;
  header.mutable_pipeline_error()->set_id(id);
  header.mutable_pipeline_error()->set_message(reason);
  stream.send(header);
}

std::size_t send_batch(RemoteStream& stream, std::uint64_t id, executor::Batch batch) {
  std::size_t total = 0;
  for (const auto& tensor : batch.tensors) total = std::max<std::size_t>(total, tensor.offset + tensor.nbytes);
  const auto slot = std::make_shared<const transport::ArenaSlot>(std::move(batch.slot));
  const std::byte* const bytes_of_slot = slot->valid() ? slot->data() : nullptr;  // without tensors there may be none
  for (std::size_t offset = 0; offset < total || offset == 0; offset += executor::kChunkBytes) {
    const std::size_t bytes = std::min(executor::kChunkBytes, total - offset);
    v1::Header header;
    auto* chunk = header.mutable_chunk();
    chunk->set_id(id);
    chunk->set_offset(offset);
    chunk->set_last(offset + bytes == total);
    if (chunk->last()) {
      transport::set_costs(*chunk, batch.busy_seconds, batch.ops, batch.blocked_seconds);
      for (const auto& cost : batch.kept) transport::to_proto(cost, *chunk->add_kept());
      chunk->set_from_memory(batch.from_memory);
    }
    if (offset == 0) {
      chunk->set_structure(batch.structure);
      for (const auto& tensor : batch.tensors) transport::to_proto(tensor, *chunk->add_tensors());
    }
    stream.send(header, {bytes_of_slot + offset, bytes}, slot);
    if (chunk->last()) break;
  }
  return total;
}

}  // namespace sluice::worker
