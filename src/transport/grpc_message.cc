#include "src/transport/grpc_message.h"

#include <array>

#include "src/transport/thread_sanitizer.h"

namespace sluice::transport {
namespace {

constexpr std::size_t kPayloadAlignment = 64;

std::size_t padded(std::size_t bytes) {
  return (bytes + kPayloadAlignment - 1) / kPayloadAlignment * kPayloadAlignment;
}

// Runs on whichever thread gRPC drops its last reference on.
void release_owner(void* held) {
  const std::unique_ptr<std::shared_ptr<const void>> owner(static_cast<std::shared_ptr<const void>*>(held));
  happens_after(owner->get());
  happens_before(owner->get());
}

}  // namespace

grpc::Slice borrowed_slice(std::span<const std::byte> bytes, std::shared_ptr<const void> owner) {
  happens_before(owner.get());
  return {const_cast<std::byte*>(bytes.data()), bytes.size(), release_owner,
          new std::shared_ptr<const void>(std::move(owner))};
}

Result<Payload> payload_of(const grpc::ByteBuffer& buffer) {
  const auto slices = std::make_shared<std::vector<grpc::Slice>>();
  if (!buffer.Dump(slices.get()).ok()) return Error(ErrorCode::kDataLoss, "the message cannot be read");
  std::vector<Payload::Piece> pieces;
  for (const grpc::Slice& slice : *slices) {
    if (slice.size() > 0) pieces.emplace_back(slice.begin(), slice.size());
  }
  return Payload(std::move(pieces), slices);
}

grpc::ByteBuffer encode_message(const v1::Header& header, std::span<const std::byte> payload,
                                std::shared_ptr<const void> owner) {
  const std::size_t header_bytes = header.ByteSizeLong();
  std::string head(padded(4 + header_bytes), '\0');
  for (int byte = 0; byte < 4; ++byte) head[byte] = static_cast<char>((header_bytes >> (8 * byte)) & 0xFF);
  header.SerializeWithCachedSizesToArray(reinterpret_cast<std::uint8_t*>(head.data()) + 4);
  std::array<grpc::Slice, 2> slices;
  slices[0] = grpc::Slice(head);
  if (payload.empty()) return grpc::ByteBuffer(slices.data(), 1);
  slices[1] = borrowed_slice(payload, std::move(owner));
  return grpc::ByteBuffer(slices.data(), 2);
}

Result<DecodedMessage> decode_message(const grpc::ByteBuffer& buffer) {
  SLUICE_TRY(const Payload whole, payload_of(buffer));
  std::uint8_t length[4] = {};
  if (whole.bytes() < 4) return Error(ErrorCode::kDataLoss, "the message is shorter than its length field");
  whole.copy_to(0, length);
  std::size_t header_bytes = 0;
  for (int byte = 0; byte < 4; ++byte) header_bytes |= std::size_t{length[byte]} << (8 * byte);
  if (header_bytes > kHeaderBytesMax || 4 + header_bytes > whole.bytes()) {
    return Error(ErrorCode::kDataLoss, "the header exceeds the message");
  }
  DecodedMessage message;
  std::vector<std::uint8_t> scratch;
  const Payload::Piece header = whole.contiguous(4, header_bytes, scratch);
  if (!message.header.ParseFromArray(header.data(), static_cast<int>(header.size()))) {
    return Error(ErrorCode::kDataLoss, "the header is damaged");
  }
  std::size_t skip = std::min(padded(4 + header_bytes), whole.bytes());
  std::vector<Payload::Piece> rest;
  for (const Payload::Piece& piece : whole.pieces()) {
    const std::size_t here = std::min(skip, piece.size());
    skip -= here;
    if (here < piece.size()) rest.push_back(piece.subspan(here));
  }
  message.payload = Payload(std::move(rest), std::make_shared<const Payload>(whole));
  return message;
}

void WriteQueue::push(grpc::ByteBuffer message) {
  std::lock_guard lock(mutex_);
  if (closing_ || aborted_) return;
  queue_.push_back(std::move(message));
  if (std::exchange(writing_, true)) return;
  start_(&queue_.front());
}

bool WriteQueue::written(bool ok) {
  std::deque<grpc::ByteBuffer> dropped;  // their owners are released outside the lock
  std::lock_guard lock(mutex_);
  dropped.push_back(std::move(queue_.front()));
  queue_.pop_front();
  writing_ = false;
  if (!ok) aborted_ = true;
  if (aborted_) {
    for (grpc::ByteBuffer& message : queue_) dropped.push_back(std::move(message));
    queue_.clear();
    return false;
  }
  if (queue_.empty()) return closing_;
  writing_ = true;
  start_(&queue_.front());
  return false;
}

bool WriteQueue::close_after_sending() {
  std::lock_guard lock(mutex_);
  closing_ = true;
  return queue_.empty();
}

void WriteQueue::abort() {
  std::deque<grpc::ByteBuffer> dropped;
  std::lock_guard lock(mutex_);
  aborted_ = true;
  while (queue_.size() > (writing_ ? 1u : 0u)) {
    dropped.push_back(std::move(queue_.back()));
    queue_.pop_back();
  }
}

}  // namespace sluice::transport
