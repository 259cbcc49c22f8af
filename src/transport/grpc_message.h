// Messages of worker.proto as gRPC byte buffers, and the queue that writes them one at a time.
// Included only by the .cc files that speak gRPC.
#pragma once

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "src/base/result.h"
#include "src/transport/payload.h"
#include "src/transport/worker.pb.h"

namespace sluice::transport {

inline constexpr const char* kExecuteMethod = "/sluice.v1.DataWorker/Execute";
inline constexpr int kFeederMessageBytesMax = 256 << 20;              // chunks; a single sample may be large
inline constexpr int kWorkerMessageBytesMax = (1 << 30) + (1 << 20);  // states of pipelines
// Of unary calls: most messages come in one frame, and no window has to be opened for them on the way.
inline constexpr int kUnaryFrameBytes = 1 << 20;
inline constexpr int kUnaryWindowBytes = 8 << 20;
// What a unary call may carry beside its question.
inline constexpr const char* kTokenHeader = "authorization";
inline constexpr std::string_view kTokenPrefix = "Bearer ";
inline constexpr std::size_t kHeaderBytesMax = std::size_t{64} << 20;

// A reference to bytes that releases `owner` when gRPC is done with them.
grpc::Slice borrowed_slice(std::span<const std::byte> bytes, std::shared_ptr<const void> owner);

// The bytes where gRPC has put them. Errors: DataLoss if they cannot be read.
Result<Payload> payload_of(const grpc::ByteBuffer& buffer);

// Two slices: the header with its padding, and a reference to the payload that releases `owner` when gRPC is done.
grpc::ByteBuffer encode_message(const v1::Header& header, std::span<const std::byte> payload,
                                std::shared_ptr<const void> owner);

struct DecodedMessage {
  v1::Header header;
  Payload payload;
};
// Errors: DataLoss if the header does not parse or exceeds the message.
Result<DecodedMessage> decode_message(const grpc::ByteBuffer& buffer);

// gRPC takes one write at a time and wants the message kept until it is done.
// Thread safety: all methods may be called from any thread.
class WriteQueue {
 public:
  // `start` begins a write; written() must follow.
  explicit WriteQueue(std::function<void(const grpc::ByteBuffer*)> start) : start_(std::move(start)) {}

  void push(grpc::ByteBuffer message);
  // Returns true if this was the last message before close().
  bool written(bool ok);
  // No more messages; those queued go out first. True if there are none.
  bool close_after_sending();
  // No more writes are started; queued ones are dropped. A write in progress still ends with written().
  void abort();

 private:
  const std::function<void(const grpc::ByteBuffer*)> start_;
  std::mutex mutex_;
  std::deque<grpc::ByteBuffer> queue_;  // the front one is being written, if writing_
  bool writing_ = false;
  bool closing_ = false;
  bool aborted_ = false;
};

}  // namespace sluice::transport
