#include "src/object_store/object_files.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <tuple>
#include <utility>

namespace sluice::object_store {
namespace {

using Bytes = RangeClient::Bytes;
using pipeline::FilePart;

// One request, and what has come of it.
struct Piece {
  Piece(ObjectRange wanted, std::size_t parts, bool counts)
      : range(std::move(wanted)), is_read_ahead(counts), parts_left(parts) {}

  const ObjectRange range;
  const bool is_read_ahead;
  std::atomic<bool> is_wanted = true;
  // By the mutex of what is shared:
  std::optional<Result<Bytes>> come;
  std::size_t parts_left;  // neither read nor given up
};
using PieceHandle = std::shared_ptr<Piece>;

// Tells a batch that all its pieces have come.
class Arrival {
 public:
  explicit Arrival(std::size_t pieces) : missing_(pieces) {}

  void one_has_come() {
    std::unique_lock lock(mutex_);
    if (--missing_ > 0 || told_ == nullptr) return;
    const auto told = std::exchange(told_, nullptr);
    lock.unlock();
    told();
  }

  bool when_come(std::function<void()> told) {
    std::lock_guard lock(mutex_);
    if (missing_ == 0) return false;
    told_ = std::move(told);
    return true;
  }

 private:
  std::mutex mutex_;
  std::size_t missing_;
  std::function<void()> told_;
};

// What a part is known by: two with the same are the same bytes.
using Place = std::tuple<std::string, std::string, std::uint64_t, std::size_t>;

Place place_of(const ObjectRange& range) { return {range.url, range.access.etag, range.offset, range.bytes}; }

Error has_ended() { return {ErrorCode::kCancelled, "the reader of objects has ended"}; }

}  // namespace

class ObjectFiles::Shared {
 public:
  explicit Shared(std::unique_ptr<RangeClient> client) : client_(std::move(client)) {}

  // Of a part that was not read ahead. The thread waits.
  Result<void> get(const ObjectRange& part, Bytes& bytes) {
    const auto piece = std::make_shared<Piece>(part, 1, false);
    ask(piece, /*is_urgent=*/true, nullptr);
    return take(piece, part, bytes);
  }

  // The piece that holds a part which was read ahead, and is now being read; null: there is none.
  PieceHandle find(const ObjectRange& part) {
    std::lock_guard lock(mutex_);
    const auto found = ahead_.find(place_of(part));
    if (found == ahead_.end()) return nullptr;
    PieceHandle piece = std::move(found->second);
    ahead_.erase(found);
    return piece;
  }

  // What `bytes` held before makes room for an answer to come.
  Result<void> take(const PieceHandle& piece, const ObjectRange& part, Bytes& bytes) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return piece->come || has_ended_; });
    if (!piece->come) return has_ended();
    if (!piece->come->ok()) {
      release(*piece);
      return piece->come->error();
    }
    if (piece->parts_left == 1 && piece->range.bytes == part.bytes) {
      client_->reuse(std::exchange(bytes, std::move(**piece->come)));
    } else {
      lock.unlock();  // the bytes stay until this part is released
      const auto begin = (**piece->come).begin() + static_cast<std::ptrdiff_t>(part.offset - piece->range.offset);
      bytes.assign(begin, begin + static_cast<std::ptrdiff_t>(part.bytes));
      lock.lock();
    }
    release(*piece);
    return {};
  }

  // Null: it would exceed the bound.
  PieceHandle begin(const JoinedRange& wanted, const std::vector<ObjectRange>& parts) {
    std::lock_guard lock(mutex_);
    if (ahead_bytes_ + wanted.range.bytes > kAheadBytesMost) return nullptr;
    ahead_bytes_ += wanted.range.bytes;
    const auto piece = std::make_shared<Piece>(wanted.range, wanted.parts.size(), true);
    for (const std::size_t i : wanted.parts) ahead_.emplace(place_of(parts[i]), piece);
    return piece;
  }

  // REQUIRES: nothing is called back when this has been destroyed; end() sees to it.
  void ask(const PieceHandle& piece, bool is_urgent, std::shared_ptr<Arrival> arrival) {
    client_->get({.range = piece->range,
                  .is_urgent = is_urgent,
                  .is_wanted = [piece] { return piece->is_wanted.load(); },
                  .done =
                      [this, piece, arrival = std::move(arrival)](Result<Bytes> bytes) {
                        {
                          std::lock_guard lock(mutex_);
                          piece->come.emplace(std::move(bytes));
                        }
                        changed_.notify_all();
                        if (arrival != nullptr) arrival->one_has_come();
                      }});
  }

  // What was not read of a batch's part.
  void give_up(const ObjectRange& part, const PieceHandle& piece) {
    std::lock_guard lock(mutex_);
    const auto [first, last] = ahead_.equal_range(place_of(part));
    const auto own = std::find_if(first, last, [&](const auto& entry) { return entry.second == piece; });
    if (own == last) return;
    ahead_.erase(own);
    release(*piece);
  }

  const Counters& counters() const { return client_->counters(); }

  void end() {
    {
      std::lock_guard lock(mutex_);
      has_ended_ = true;
    }
    changed_.notify_all();
    client_->end();
  }

 private:
  // REQUIRES: mutex_ is held
  void release(Piece& piece) {
    if (--piece.parts_left > 0) return;
    piece.is_wanted = false;
    if (piece.is_read_ahead) ahead_bytes_ -= piece.range.bytes;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::multimap<Place, PieceHandle> ahead_;  // by the parts that are neither read nor given up
  std::size_t ahead_bytes_ = 0;
  bool has_ended_ = false;
  const std::unique_ptr<RangeClient> client_;
};

// What is read ahead for one batch. Whatever waits for it may hold it, and the client holds that: so it owns neither.
class ObjectFiles::Batch final : public pipeline::ReadAhead {
 public:
  Batch(const std::shared_ptr<Shared>& shared, std::vector<ObjectRange> parts)
      : shared_(shared), parts_(std::move(parts)) {
    std::vector<PieceHandle> pieces;
    for (const JoinedRange& wanted : joined(parts_)) {
      const PieceHandle piece = shared->begin(wanted, parts_);
      if (piece == nullptr) break;  // later ones, too, are left for read()
      for (const std::size_t i : wanted.parts) pieces_.emplace_back(i, piece);
      pieces.push_back(piece);
    }
    const auto arrival = std::make_shared<Arrival>(pieces.size());
    arrival_ = arrival;
    for (const PieceHandle& piece : pieces) shared->ask(piece, /*is_urgent=*/false, arrival);
  }
  ~Batch() override {
    const auto shared = shared_.lock();
    if (shared == nullptr) return;
    for (const auto& [i, piece] : pieces_) shared->give_up(parts_[i], piece);
  }

  bool when_come(std::function<void()> come) override {
    const auto arrival = arrival_.lock();
    return arrival != nullptr && arrival->when_come(std::move(come));
  }

 private:
  const std::weak_ptr<Shared> shared_;
  const std::vector<ObjectRange> parts_;
  std::vector<std::pair<std::size_t, PieceHandle>> pieces_;  // by the parts that they hold
  std::weak_ptr<Arrival> arrival_;                           // none: all have come
};

ObjectFiles::ObjectFiles(std::shared_ptr<const pipeline::FileReader> files, std::unique_ptr<RangeClient> client)
    : files_(std::move(files)), shared_(std::make_shared<Shared>(std::move(client))) {}

ObjectFiles::~ObjectFiles() { end(); }

Result<void> ObjectFiles::read(const FilePart& part, std::vector<std::uint8_t>& bytes) const {
  if (!part.object || !part.range) return files_->read(part, bytes);
  const ObjectRange range = range_of(part);
  if (range.bytes > kMaxFileBytes) {
    return invalid_argument(part.name() + " has " + std::to_string(range.bytes) + " bytes, more than the " +
                            std::to_string(kMaxFileBytes) + " that a sample may have");
  }
  if (range.bytes == 0) {
    bytes.clear();
    return {};
  }
  const PieceHandle piece = shared_->find(range);
  return piece == nullptr ? shared_->get(range, bytes) : shared_->take(piece, range, bytes);
}

std::shared_ptr<pipeline::ReadAhead> ObjectFiles::read_ahead(const PartOf& part, std::size_t parts,
                                                             const pipeline::Prefix& /*prefix*/) const {
  std::vector<ObjectRange> ranges;
  for (std::size_t i = 0; i < parts; ++i) {
    const FilePart wanted = part(i);
    if (wanted.object && wanted.range && wanted.range->bytes <= kMaxFileBytes) ranges.push_back(range_of(wanted));
  }
  if (ranges.empty()) return nullptr;
  return std::make_shared<Batch>(shared_, std::move(ranges));
}

const Counters& ObjectFiles::counters() const { return shared_->counters(); }

void ObjectFiles::end() const { shared_->end(); }

}  // namespace sluice::object_store
