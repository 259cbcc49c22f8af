#include "src/cache/cached_files.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "src/base/logging.h"
#include "src/cache/chosen_form_files.h"
#include "src/pipeline/jpeg_coefficients.h"
#include "src/pipeline/jpeg_decoder.h"

namespace sluice::cache {
namespace {

using pipeline::FileForm;
using pipeline::FileIdentity;
using pipeline::FilePart;
using pipeline::ImageContent;
using pipeline::Prefix;

// What is cached, and the version of its making: the bytes of a file as the source gives them, its coefficients, or
// what a prefix makes of it; the prefix's fingerprint comes behind.
constexpr std::string_view kSourceBytes = "source bytes 1";
constexpr std::string_view kCoefficients = "jpeg coefficients 1";
constexpr std::string_view kOutput = "prefix output 1 ";
static_assert(pipeline::kJpegCoefficientsVersion == 1, "as in the form's name");

void count_hit(FormCounters& counters, std::size_t bytes) {
  ++counters.hits;
  counters.hit_bytes += bytes;
}

ImageContent content_of(FileForm form, bool is_of_source, Clock::Duration took, std::size_t bytes) {
  return {form, std::nullopt, is_of_source, CachedFiles::wait_seconds(took, bytes), bytes};
}

// Without its kernels coefficients are no faster than the file.
Keep possible(Keep keep) {
  return keep == Keep::kTranscoded && pipeline::fast_jpeg_kernels() == nullptr ? Keep::kSource : keep;
}

}  // namespace

CachedFiles::CachedFiles(std::shared_ptr<const pipeline::FileReader> source, OpenStore open_store,
                         std::string name_space, const Clock& clock, Keep keep, std::uint64_t page_cache_bytes,
                         std::string own_name)
    : source_(std::move(source)),
      name_space_(std::move(name_space)),
      keep_(possible(keep)),
      page_cache_bytes_(page_cache_bytes),
      own_name_(std::move(own_name)),
      clock_(clock),
      opener_([this, open_store = std::move(open_store)](const std::stop_token& stop) { open(open_store, stop); }) {}

CachedFiles::~CachedFiles() = default;

void CachedFiles::open(const OpenStore& open_store, const std::stop_token& stop) {
  auto store = open_store(counters_, stop);
  if (store.ok()) {
    opened_ = std::move(store).value();
    if (opened_->is_asked_ahead()) asked_ = std::make_unique<AskedAhead>(*opened_, source_, clock_);
    store_ = opened_.get();
  } else if (!stop.stop_requested()) {
    log_warning("cache", "runs without the cache", {{"error", store.error().message()}});
  }
  std::lock_guard lock(mutex_);
  opening_ = false;
  changed_.notify_all();
}

bool CachedFiles::wait_until_opened() const {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !opening_; });
  return store_ != nullptr;
}

std::unique_ptr<const pipeline::PipelineFiles> CachedFiles::for_pipeline(std::size_t samples) const {
  if (keep_ != Keep::kAutomatic) return nullptr;
  return std::make_unique<const ChosenFormFiles>(*this, samples);
}

Result<void> CachedFiles::read(const FilePart& part, std::vector<std::uint8_t>& bytes) const {
  RecordStore* const store = store_;
  if (store == nullptr) return source_->read(part, bytes);
  const auto identity = identity_of(part);
  // The source has the words for a file that is gone, or that has changed since the range was found.
  if (!identity.ok() || !part.is_of(*identity)) return source_->read(part, bytes);
  SLUICE_TRY_VOID(read_bytes(*store, part, *identity, bytes));
  return {};
}

Result<FileIdentity> CachedFiles::identity_of(const FilePart& part) const {
  if (!part.object) return source_->identify(part.path);
  if (auto identity = part.object_identity()) return *std::move(identity);
  return not_found(part.name() + " has no name for its content");
}

Result<ImageContent> CachedFiles::read_image(const FilePart& part, const Prefix& prefix,
                                             std::vector<std::uint8_t>& bytes) const {
  return read_image_as(keep_, part, prefix, bytes);
}

Result<ImageContent> CachedFiles::read_image_as(Keep keep, const FilePart& part, const Prefix& prefix,
                                                std::vector<std::uint8_t>& bytes) const {
  RecordStore* const store = keep == Keep::kNothing ? nullptr : store_.load();
  const auto identity = store == nullptr ? not_found(part.name()) : identity_of(part);
  if (!identity.ok() || !part.is_of(*identity)) {
    SLUICE_TRY(const Clock::Duration took, read_source(part, bytes));
    return content_of(FileForm::kFile, true, took, bytes.size());
  }
  if (keep == Keep::kAutomatic) return read_whatever_is_kept(*store, part, prefix, *identity, bytes);
  if (keep == Keep::kTranscoded) return read_coefficients(*store, part, *identity, bytes);
  if (keep == Keep::kOutput && !prefix.fingerprint.empty()) return read_output(*store, part, prefix, *identity, bytes);
  return read_bytes(*store, part, *identity, bytes);
}

Result<ImageContent> CachedFiles::read_whatever_is_kept(RecordStore& store, const FilePart& part, const Prefix& prefix,
                                                        const FileIdentity& identity,
                                                        std::vector<std::uint8_t>& bytes) const {
  if (!prefix.fingerprint.empty()) {
    if (const auto took = find(store, key_of(prefix, part, identity), bytes)) {
      count_hit(counters_.outputs, bytes.size());
      return content_of(FileForm::kOutput, false, *took, bytes.size());
    }
  }
  if (possible(Keep::kTranscoded) == Keep::kTranscoded) {
    const auto took = find(store, key_of(kCoefficients, part, identity), bytes);
    if (took && !bytes.empty()) {
      count_hit(counters_.coefficients, bytes.size());
      return content_of(FileForm::kCoefficients, false, *took, bytes.size());
    }
  }
  return read_bytes(store, part, identity, bytes);
}

Result<ImageContent> CachedFiles::read_bytes(RecordStore& store, const FilePart& part, const FileIdentity& identity,
                                             std::vector<std::uint8_t>& bytes) const {
  const Key key = key_of(kSourceBytes, part, identity);
  if (const auto took = find_source(store, key, bytes)) return content_of(FileForm::kFile, false, *took, bytes.size());
  SLUICE_TRY(const Clock::Duration took, read_source(part, bytes));
  ImageContent content = content_of(FileForm::kFile, true, took, bytes.size());
  const double started = thread_cpu_seconds();
  if (is_worth_storing(took, bytes.size()) && is_certain(part, identity, bytes.size())) store.add(key, bytes);
  content.keeping_seconds = thread_cpu_seconds() - started;
  return content;
}

Result<ImageContent> CachedFiles::read_coefficients(RecordStore& store, const FilePart& part,
                                                    const FileIdentity& identity,
                                                    std::vector<std::uint8_t>& bytes) const {
  const Key key = key_of(kCoefficients, part, identity);
  if (const auto took = find(store, key, bytes)) {
    if (bytes.empty()) return read_bytes(store, part, identity, bytes);
    count_hit(counters_.coefficients, bytes.size());
    return content_of(FileForm::kCoefficients, false, *took, bytes.size());
  }
  const Key source_key = key_of(kSourceBytes, part, identity);
  auto took = find_source(store, source_key, bytes);
  const bool is_of_source = !took;
  if (is_of_source) {
    SLUICE_TRY(took, read_source(part, bytes));
    if (!is_certain(part, identity, bytes.size())) return content_of(FileForm::kFile, true, *took, bytes.size());
  }
  ImageContent content = content_of(FileForm::kFile, is_of_source, *took, bytes.size());
  const double started = thread_cpu_seconds();
  if (transcode(store, key, bytes)) {
    content.form = FileForm::kCoefficients;
  } else if (is_of_source && is_worth_storing(*took, bytes.size())) {
    store.add(source_key, bytes);
  }
  content.keeping_seconds = thread_cpu_seconds() - started;
  return content;
}

bool CachedFiles::transcode(RecordStore& store, const Key& key, std::vector<std::uint8_t>& bytes) const {
  const std::size_t bytes_max = pipeline::kCoefficientsPerByte * bytes.size();
  if (!store.has_room_for(key, bytes_max)) return false;
  pipeline::JpegDecoder decoder;
  std::vector<std::uint8_t> coefficients;
  const bool is_possible = decoder.open(bytes).ok() && decoder.transcode(bytes_max, coefficients);
  if (!is_possible) coefficients.clear();
  store.add(key, coefficients);
  if (!is_possible) return false;
  ++counters_.transcoded;
  bytes.swap(coefficients);
  return true;
}

Result<ImageContent> CachedFiles::read_output(RecordStore& store, const FilePart& part, const Prefix& prefix,
                                              const FileIdentity& identity, std::vector<std::uint8_t>& bytes) const {
  if (const auto took = find(store, key_of(prefix, part, identity), bytes)) {
    count_hit(counters_.outputs, bytes.size());
    return content_of(FileForm::kOutput, false, *took, bytes.size());
  }
  ImageContent content;
  if (const auto took = find_source(store, key_of(kSourceBytes, part, identity), bytes)) {
    content = content_of(FileForm::kFile, false, *took, bytes.size());
  } else {
    SLUICE_TRY(const Clock::Duration read, read_source(part, bytes));
    content = content_of(FileForm::kFile, true, read, bytes.size());
    if (!is_certain(part, identity, bytes.size())) return content;
  }
  content.wants_output_of = identity;
  return content;
}

bool CachedFiles::has_room_for_output(const FilePart& part, const Prefix& prefix, const FileIdentity& state,
                                      std::size_t bytes) const {
  if (opened_->has_room_for(key_of(prefix, part, state), bytes)) return true;
  ++(opened_->is_paused() ? counters_.not_stored_failed : counters_.not_stored_full);
  return false;
}

void CachedFiles::keep_output(const FilePart& part, const Prefix& prefix, const FileIdentity& state,
                              std::span<const std::uint8_t> output) const {
  opened_->add(key_of(prefix, part, state), output);
}

std::optional<Clock::Duration> CachedFiles::find(RecordStore& store, const Key& key,
                                                 std::vector<std::uint8_t>& bytes) const {
  if (asked_ != nullptr) {
    if (auto answer = asked_->take(key)) {
      bytes.swap(answer->value);
      return answer->is_found ? std::optional(answer->took) : std::nullopt;
    }
  }
  const auto started = clock_.now();
  if (!store.find(key, bytes)) return std::nullopt;
  return clock_.now() - started;
}

std::optional<Clock::Duration> CachedFiles::find_source(RecordStore& store, const Key& key,
                                                        std::vector<std::uint8_t>& bytes) const {
  const auto took = find(store, key, bytes);
  if (took) {
    count_hit(counters_.source, bytes.size());
  } else {
    ++counters_.misses;
  }
  return took;
}

Result<Clock::Duration> CachedFiles::read_source(const FilePart& part, std::vector<std::uint8_t>& bytes) const {
  const auto started = clock_.now();
  SLUICE_TRY_VOID(source_->read(part, bytes));
  const Clock::Duration took = clock_.now() - started;
  if (!part.object) return took;
  return std::max<Clock::Duration>(took, kObjectRead + kObjectReadPerByte * bytes.size());
}

double CachedFiles::wait_seconds(Clock::Duration took, std::size_t bytes) {
  return is_slow(took, bytes) ? std::chrono::duration<double>(took).count() : 0;
}

bool CachedFiles::is_worth_storing(Clock::Duration took, std::size_t bytes) const {
  if (is_slow(took, bytes)) return true;
  ++counters_.not_stored_fast;
  return false;
}

bool CachedFiles::is_certain(const FilePart& part, const FileIdentity& before, std::size_t bytes) const {
  const std::uint64_t expected = part.range ? part.range->bytes : before.bytes;
  if (part.object && expected == bytes) return true;  // the answer itself was of this ETag
  const auto after = source_->identify(part.path);
  if (after.ok() && *after == before && expected == bytes && has_settled(before)) return true;
  ++counters_.not_stored_changing;
  return false;
}

bool CachedFiles::has_settled(const FileIdentity& identity) const {
  const auto now = std::chrono::duration_cast<std::chrono::nanoseconds>(clock_.wall_now().time_since_epoch());
  return now.count() - std::max(identity.modified_ns, identity.changed_ns) >=
         std::chrono::nanoseconds(kSettled).count();
}

Key CachedFiles::key_of(const Prefix& prefix, const FilePart& part, const FileIdentity& identity) const {
  return key_of(std::string(kOutput) + prefix.fingerprint, part, identity);
}

std::string CachedFiles::version_of(const FileIdentity& identity) {
  // A mount of a shared volume has other numbers in another pod.
  const bool is_shared = !identity.volume_place.empty();
  const std::array<std::uint64_t, 5> numbers{is_shared ? 0 : identity.device, is_shared ? 0 : identity.inode,
                                             identity.bytes, static_cast<std::uint64_t>(identity.modified_ns),
                                             static_cast<std::uint64_t>(identity.changed_ns)};
  return {reinterpret_cast<const char*>(numbers.data()), sizeof(numbers)};
}

Key CachedFiles::key_of(std::string_view form, const FilePart& part, const FileIdentity& identity) const {
  return {place_of(form, part, identity.volume_place), version_of(identity)};
}

std::string CachedFiles::place_of(std::string_view form, const FilePart& part, const std::string& volume_place) const {
  std::string place = std::string(form) + '\0' + name_space_ + '\0';
  // No path is empty or holds a NUL, so no file of a volume has the place of another file.
  place += volume_place.empty() ? own_name_ + part.path : '\0' + volume_place;
  if (part.range) {  // No path holds a NUL, so no whole file has this place.
    const std::array<std::uint64_t, 2> where{part.range->offset, part.range->bytes};
    place += '\0';
    place.append(reinterpret_cast<const char*>(where.data()), sizeof(where));
  }
  return place;
}

// ---- what is read ahead ----

std::shared_ptr<pipeline::ReadAhead> CachedFiles::read_ahead(const PartOf& part, std::size_t parts,
                                                             const Prefix& prefix) const {
  return read_ahead_as([&](const FilePart&) { return keep_; }, part, parts, prefix);
}

std::shared_ptr<pipeline::ReadAhead> CachedFiles::read_ahead_as(const KeepOf& keep, const PartOf& part,
                                                                std::size_t parts, const Prefix& prefix) const {
  RecordStore* const store = store_;
  std::vector<AskedAhead::Part> wanted;
  bool is_any_kept = false;
  for (std::size_t i = 0; i < parts; ++i) {
    FilePart file = part(i);
    std::vector<Key> keys = store == nullptr ? std::vector<Key>() : keys_of(keep(file), file, prefix);
    is_any_kept = is_any_kept || !keys.empty();
    wanted.push_back({std::move(file), std::move(keys)});
  }
  if (is_any_kept && asked_ != nullptr) return asked_->ask(std::move(wanted), prefix);
  std::erase_if(wanted, [&](const AskedAhead::Part& one) {
    return std::any_of(one.keys.begin(), one.keys.end(), [&](const Key& key) { return store->may_have(key); });
  });
  return source_->read_ahead([&](std::size_t i) { return wanted[i].part; }, wanted.size(), prefix);
}

std::vector<Key> CachedFiles::keys_of(Keep keep, const FilePart& part, const Prefix& prefix) const {
  const auto identity = part.object_identity();
  if (!identity || keep == Keep::kNothing) return {};
  const auto is_read_as = [&](Keep form) {
    return keep == form || (keep == Keep::kAutomatic && possible(form) == form);
  };
  std::vector<Key> keys;
  if (is_read_as(Keep::kOutput) && !prefix.fingerprint.empty()) keys.push_back(key_of(prefix, part, *identity));
  if (is_read_as(Keep::kTranscoded)) keys.push_back(key_of(kCoefficients, part, *identity));
  keys.push_back(key_of(kSourceBytes, part, *identity));
  return keys;
}

// ---- orders ----

bool CachedFiles::takes_orders() const {
  const RecordStore* const store = store_;
  return store != nullptr && store->takes_orders();
}

void CachedFiles::announce(const PartOf& part, const Prefix& prefix, const EpochOrder& order) const {
  announce_as([&](const FilePart&) { return keep_; }, part, prefix, order);
}

void CachedFiles::announce_as(const KeepOf& keep, const PartOf& part, const Prefix& prefix,
                              const EpochOrder& order) const {
  if (!takes_orders()) return;
  const std::string output = std::string(kOutput) + prefix.fingerprint;
  std::vector<std::uint64_t> places;
  places.reserve(order.length);
  for (std::size_t sample = 0; sample < order.length; ++sample) {
    const FilePart file = part(sample);
    const Keep kept = keep(file);
    const bool is_output = kept == Keep::kOutput && !prefix.fingerprint.empty();
    const std::string_view form = is_output ? output : (kept == Keep::kTranscoded ? kCoefficients : kSourceBytes);
    const auto object = file.object_identity();
    const std::string volume_place = object ? object->volume_place : source_->volume_place_of(file.path);
    places.push_back(hash_of(place_of(form, file, volume_place)));
  }
  store_.load()->announce(places, order);
}

}  // namespace sluice::cache
