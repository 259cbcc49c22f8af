// A file reader that keeps what a slow file system gave, and reads it from the cache's disk the next time.
//
// The cache never decides whether a read succeeds: whatever it cannot give comes from the source, with the source's
// error. It opens on a thread of its own; until then, and where it cannot be opened, all reads go to the source.
// Objects of stores are kept as files are, whatever their read took: read ahead, it takes a thread no time, but each
// costs a request. Their identity is what their part says of them, so a record of one is found without asking its
// store. A file, or a range of one, is stored if reading it took longer than kSlowRead and kSlowReadPerByte say, and if
// it has had the same identity for kSettled: a file that is still being written may change within one tick of its file
// system's clock.
// With Keep::kTranscoded, read_image() keeps the coefficients of JPEG files in place of their bytes, however fast the
// source is (pipeline/jpeg_coefficients.h). They are of the same pixels. A file that has none, as it is damaged or of a
// rare kind, or as they would have more than pipeline::kCoefficientsPerByte times its bytes, gets an empty record, so
// that they are not tried again.
// With Keep::kOutput, read_image() keeps what a pipeline's prefix makes of a file, however fast the source is. Where
// the prefix is empty, it keeps the bytes of slow files. With Keep::kAutomatic each pipeline has a reader of its own
// that chooses by what it measures (chosen_form_files.h). Results of the user's functions are kept beside the files, by
// the states of the files that a call names, for the same reasons and in the same store. Thread safety: all but the
// constructor and the destructor may be called from any thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "src/base/clock.h"
#include "src/cache/asked_ahead.h"
#include "src/cache/counters.h"
#include "src/cache/form_choice.h"
#include "src/cache/record_store.h"
#include "src/pipeline/file_reader.h"
#include "src/transport/function_call.h"

namespace sluice::cache {

class CachedFiles : public pipeline::FileReader {
 public:
  // What a local solid-state disk needs at most: a source that is no slower gains nothing.
  static constexpr std::chrono::nanoseconds kSlowRead = std::chrono::milliseconds(1);
  static constexpr std::chrono::nanoseconds kSlowReadPerByte{2};
  static constexpr std::chrono::seconds kSettled{10};
  // What a read of an object counts as at least, as it may have been read ahead: the first byte and the others.
  static constexpr std::chrono::nanoseconds kObjectRead = std::chrono::milliseconds(30);
  static constexpr std::chrono::nanoseconds kObjectReadPerByte{20};

  // Files of one name space are never given to another. `page_cache_bytes`: of the disk's files, that memory can hold;
  // only the choice of a form looks at it. `own_name`: in front of the paths of files that are on no shared volume
  // (FileIdentity); where stores are shared between machines or pods, no other process may have it. REQUIRES: clock
  // outlives this.
  CachedFiles(std::shared_ptr<const pipeline::FileReader> source, OpenStore open_store, std::string name_space,
              const Clock& clock, Keep keep = Keep::kSource, std::uint64_t page_cache_bytes = 0,
              std::string own_name = "");
  ~CachedFiles() override;

  Result<void> read(const pipeline::FilePart& part, std::vector<std::uint8_t>& bytes) const override;
  Result<pipeline::ImageContent> read_image(const pipeline::FilePart& part, const pipeline::Prefix& prefix,
                                            std::vector<std::uint8_t>& bytes) const override;
  bool has_room_for_output(const pipeline::FilePart& part, const pipeline::Prefix& prefix,
                           const pipeline::FileIdentity& state, std::size_t bytes) const override;
  void keep_output(const pipeline::FilePart& part, const pipeline::Prefix& prefix, const pipeline::FileIdentity& state,
                   std::span<const std::uint8_t> output) const override;
  Result<pipeline::FileIdentity> identify(const std::string& path) const override { return source_->identify(path); }
  std::unique_ptr<const pipeline::PipelineFiles> for_pipeline(std::size_t samples) const override;
  // Of objects that are not kept.
  std::shared_ptr<pipeline::ReadAhead> read_ahead(const PartOf& part, std::size_t parts,
                                                  const pipeline::Prefix& prefix) const override;

  // read_image(), with `keep` for this file. kAutomatic: in whatever form it is kept, and if in none, as kSource.
  Result<pipeline::ImageContent> read_image_as(Keep keep, const pipeline::FilePart& part,
                                               const pipeline::Prefix& prefix, std::vector<std::uint8_t>& bytes) const;
  // Reads from the source and stores nothing. The time that it took.
  Result<Clock::Duration> read_source(const pipeline::FilePart& part, std::vector<std::uint8_t>& bytes) const;
  static bool is_slow(Clock::Duration took, std::size_t bytes) { return took > kSlowRead + kSlowReadPerByte * bytes; }
  // 0 where it is not slow.
  static double wait_seconds(Clock::Duration took, std::size_t bytes);

  bool takes_orders() const override;
  void announce(const PartOf& part, const pipeline::Prefix& prefix, const EpochOrder& order) const override;
  // announce() and read_ahead(), where `keep(part)` says in which form a file is kept.
  using KeepOf = std::function<Keep(const pipeline::FilePart& part)>;
  std::shared_ptr<pipeline::ReadAhead> read_ahead_as(const KeepOf& keep, const PartOf& part, std::size_t parts,
                                                     const pipeline::Prefix& prefix) const;
  void announce_as(const KeepOf& keep, const PartOf& part, const pipeline::Prefix& prefix,
                   const EpochOrder& order) const;

  // Of the files that a call names, in their order. nullopt: one is not there.
  std::optional<std::vector<pipeline::FileIdentity>> states_of(const transport::FunctionCall& call) const;
  // Results of calls, with the states of their files before the call. REQUIRES: is_in_use()
  bool find_result(const transport::FunctionCall& call, const std::vector<pipeline::FileIdentity>& files,
                   std::vector<std::uint8_t>& value) const;
  bool has_room_for_result(const transport::FunctionCall& call, const std::vector<pipeline::FileIdentity>& files,
                           std::size_t bytes) const;
  void keep_result(const transport::FunctionCall& call, const std::vector<pipeline::FileIdentity>& files,
                   std::span<const std::uint8_t> value) const;
  // Of values that could not be read, and of answers that came too late, where they were to be used.
  void count_result_errors(std::uint64_t damaged, std::uint64_t late) const;

  bool is_in_use() const { return store_ != nullptr; }
  // As the store's. REQUIRES: is_in_use()
  std::uint64_t free_bytes() const { return store_.load()->free_bytes(); }
  double asking_seconds() const { return store_.load()->asking_seconds(); }
  std::uint64_t page_cache_bytes() const { return page_cache_bytes_; }

  const Counters& counters() const { return counters_; }
  Counters& counters_of_choices() const { return counters_; }

  // True if the cache is in use, false if it could not be opened.
  bool wait_until_opened() const;

 private:
  void open(const OpenStore& open_store, const std::stop_token& stop);
  Result<pipeline::FileIdentity> identity_of(const pipeline::FilePart& part) const;
  // Of an object, in the order in which its reader asks for them.
  std::vector<Key> keys_of(Keep keep, const pipeline::FilePart& part, const pipeline::Prefix& prefix) const;
  Key key_of(std::string_view form, const pipeline::FilePart& part, const pipeline::FileIdentity& identity) const;
  Key key_of(const pipeline::Prefix& prefix, const pipeline::FilePart& part,
             const pipeline::FileIdentity& identity) const;
  Key key_of(const transport::FunctionCall& call, const std::vector<pipeline::FileIdentity>& files) const;
  static std::string version_of(const pipeline::FileIdentity& identity);
  std::string place_of(std::string_view form, const pipeline::FilePart& part, const std::string& volume_place) const;
  Result<pipeline::ImageContent> read_whatever_is_kept(RecordStore& store, const pipeline::FilePart& part,
                                                       const pipeline::Prefix& prefix,
                                                       const pipeline::FileIdentity& identity,
                                                       std::vector<std::uint8_t>& bytes) const;
  Result<pipeline::ImageContent> read_bytes(RecordStore& store, const pipeline::FilePart& part,
                                            const pipeline::FileIdentity& identity,
                                            std::vector<std::uint8_t>& bytes) const;
  Result<pipeline::ImageContent> read_coefficients(RecordStore& store, const pipeline::FilePart& part,
                                                   const pipeline::FileIdentity& identity,
                                                   std::vector<std::uint8_t>& bytes) const;
  Result<pipeline::ImageContent> read_output(RecordStore& store, const pipeline::FilePart& part,
                                             const pipeline::Prefix& prefix, const pipeline::FileIdentity& identity,
                                             std::vector<std::uint8_t>& bytes) const;
  // Stores the coefficients of a file, of whose bytes they take the place. False: it has none, which is stored, too, or
  // there is no room.
  bool transcode(RecordStore& store, const Key& key, std::vector<std::uint8_t>& bytes) const;
  // How long it took to find the record of `key`, and to read it into `bytes`; nullopt: there is none.
  std::optional<Clock::Duration> find(RecordStore& store, const Key& key, std::vector<std::uint8_t>& bytes) const;
  // The same for the source's bytes, and counts it.
  std::optional<Clock::Duration> find_source(RecordStore& store, const Key& key,
                                             std::vector<std::uint8_t>& bytes) const;
  // is_slow(), and counts what is not.
  bool is_worth_storing(Clock::Duration took, std::size_t bytes) const;
  // Whether the bytes that have just been read are those of the state `before`, and no later one can look like it.
  bool is_certain(const pipeline::FilePart& part, const pipeline::FileIdentity& before, std::size_t bytes) const;
  bool has_settled(const pipeline::FileIdentity& identity) const;

  const std::shared_ptr<const pipeline::FileReader> source_;
  const std::string name_space_;
  const Keep keep_;
  const std::uint64_t page_cache_bytes_;
  const std::string own_name_;
  const Clock& clock_;
  mutable Counters counters_;

  std::unique_ptr<RecordStore> opened_;       // before store_ points to it
  std::unique_ptr<AskedAhead> asked_;         // likewise; null: the store answers without a wait
  std::atomic<RecordStore*> store_{nullptr};  // null: not opened
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  bool opening_ = true;
  std::jthread opener_;  // last: it uses the rest
};

}  // namespace sluice::cache
