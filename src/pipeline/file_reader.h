// The file system as the pipeline sees it: the seam that lets tests hand in damaged files and failing disks.
//
// Thread safety: implementations may be used from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "src/base/epoch_order.h"
#include "src/base/result.h"
#include "src/pipeline/object_place.h"
#include "src/pipeline/shared_volumes.h"

namespace sluice::pipeline {

// Two files, or two states of one file, differ in one of these, unless one state followed the other within a tick of
// the file system's clock.
struct FileIdentity {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t bytes = 0;
  std::int64_t modified_ns = 0;  // Unix time, by the file system's clock
  std::int64_t changed_ns = 0;   // of the inode: no program can set it
  // Of a file of a volume that other pods mount, too: what they call it (shared_volumes.h), whatever numbers their
  // mounts give to device and inode. Empty: only this machine's processes can tell that a file is this one.
  std::string volume_place = {};

  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};

// What a sample is of a file: all of it, or a range. The index that names ranges is right for one state of the file
// only, so a range comes with the size and the time of modification that the file had then. An object of a store is
// always read by ranges; its state is its size and its ETag.
struct FilePart {
  struct Range {
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
    std::uint64_t file_bytes = 0;
    std::int64_t modified_ns = 0;  // of an object: a digest of its ETag

    bool is_of(const FileIdentity& file) const { return file.bytes == file_bytes && file.modified_ns == modified_ns; }
  };

  // NOLINTNEXTLINE(google-explicit-constructor): a path says the whole file
  FilePart(std::string whole_file) : path(std::move(whole_file)) {}
  FilePart(std::string file, const Range& part) : path(std::move(file)), range(part) {}
  FilePart(std::string url, const Range& part, ObjectAccess how)
      : path(std::move(url)), range(part), object(std::move(how)) {}

  bool is_of(const FileIdentity& file) const { return !range || range->is_of(file); }
  // For people: the path, and where in it. The query of a URL may hold a signature.
  std::string name() const {
    const std::string shown = object ? shown_url(path) : path;
    return range ? shown + " at " + std::to_string(range->offset) : shown;
  }
  // Of an object, as the range says it: its ETag names its content, so that no store has to be asked. nullopt: the part
  // is of a file, or the name is of no content (a weak ETag, a time).
  std::optional<FileIdentity> object_identity() const;

  std::string path;                    // or the URL of an object
  std::optional<Range> range;          // none: the whole file
  std::optional<ObjectAccess> object;  // none: a file
};

// Parts that are being read before they are asked for, of one batch: each waits for the first read() of it. What was
// not read is given up with this. Thread safety: as the reader's.
class ReadAhead {
 public:
  virtual ~ReadAhead() = default;

  // Calls `come` once, on another thread, when each of the parts has come or failed; never, where the reader ends
  // before. False: all have, and it is not called. May be called once.
  virtual bool when_come(std::function<void()> come) = 0;
};

// What a reader gives of an image file.
enum class FileForm {
  kFile,          // its bytes
  kCoefficients,  // jpeg_coefficients.h: the same pixels for less
  kOutput,        // what a pipeline's prefix has made of it, as keep_output() got it
};

// The first operations of a pipeline that draw no random numbers. They make the same of a file in each epoch.
struct Prefix {
  std::string fingerprint;  // of all that decides what they make; empty: there is nothing worth keeping
  std::size_t ops = 0;      // so many of the pipeline's operations
};

struct ImageContent {
  FileForm form = FileForm::kFile;
  // Set where the reader would keep the prefix's output: the state of the file that the content is of.
  std::optional<FileIdentity> wants_output_of = std::nullopt;
  // Of readers that keep forms: whether the source was read, rather than what is kept, and how long that read took, by
  // the clock and without what was done beside it; 0: no longer than a local disk takes.
  bool is_of_source = false;
  double wait_seconds = 0;
  std::size_t bytes = 0;       // that were read
  double keeping_seconds = 0;  // CPU of the thread, to make and store what is kept from now on
  double reading_seconds = 0;  // CPU of the rest, as the pipeline measures it
  double making_seconds = 0;   // CPU to make the sample of these bytes, as the pipeline measures it; 0: not known
};

class PipelineFiles;

class FileReader {
 public:
  // A sample larger than this is a mistake in the data set, not an image.
  static constexpr std::size_t kMaxFileBytes = std::size_t{1} << 30;

  virtual ~FileReader() = default;

  // Replaces `bytes` with those of the part; their capacity is reused. The error's message names the path. DataLoss for
  // a range of a file that is not in the range's state.
  virtual Result<void> read(const FilePart& part, std::vector<std::uint8_t>& bytes) const = 0;

  // Replaces `bytes` with the content of an image, or with another form of it. Errors as read().
  virtual Result<ImageContent> read_image(const FilePart& part, const Prefix& prefix,
                                          std::vector<std::uint8_t>& bytes) const;

  // Begins to read what is going to be read soon, within a bound on bytes. `part(i)` for each i below `parts`. Null:
  // nothing of it is worth that, as it is at hand.
  using PartOf = std::function<FilePart(std::size_t sample)>;
  virtual std::shared_ptr<ReadAhead> read_ahead(const PartOf& part, std::size_t parts, const Prefix& prefix) const;

  // What reads the files of one pipeline of so many samples, in place of this reader; null: this reader does.
  // REQUIRES: this outlives it
  virtual std::unique_ptr<const PipelineFiles> for_pipeline(std::size_t samples) const;

  // For a part whose ImageContent has wants_output_of, which is `state`: whether so many bytes would be kept, and the
  // bytes to keep.
  virtual bool has_room_for_output(const FilePart& part, const Prefix& prefix, const FileIdentity& state,
                                   std::size_t bytes) const;
  virtual void keep_output(const FilePart& part, const Prefix& prefix, const FileIdentity& state,
                           std::span<const std::uint8_t> output) const;

  // An epoch of a pipeline begins: its samples, of which part(i) is the i-th, are used in this order. For a reader that
  // shares what it keeps with other jobs; it takes its time.
  virtual bool takes_orders() const { return false; }
  virtual void announce(const PartOf& part, const Prefix& prefix, const EpochOrder& order) const;

  // Of the file that `path` names now, without reading it. It is opened, as for a read: network file systems look for
  // changes then, and answer a mere stat from memory. The error's message names the path.
  virtual Result<FileIdentity> identify(const std::string& path) const = 0;

  // FileIdentity's volume_place by the path alone: of a path through a symbolic link it is another one.
  virtual std::string volume_place_of(const std::string& /*path*/) const { return {}; }
};

// Reads with open, fstat and pread, and keeps no descriptor: no mapping, so a file that shrinks meanwhile is an error
// and not a SIGBUS.
std::shared_ptr<const FileReader> make_system_file_reader(SharedVolumes volumes = {});

}  // namespace sluice::pipeline
