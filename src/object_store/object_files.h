// A reader of objects beside the one of files: parts with `object` come from their store, all others from `files`.
//
// What is read ahead is asked for at once, neighbours together, and kept until it is read or given up; kAheadBytesMost
// at most, for all batches together. A part that is not read ahead is asked for when it is read, and the thread waits.
// The answer must be of the state that the part says; an empty part asks nothing.
// Thread safety: all but the destructor may be called from any thread.
#pragma once

#include <memory>

#include "src/object_store/range_client.h"
#include "src/pipeline/file_reader.h"

namespace sluice::object_store {

class ObjectFiles final : public pipeline::FileReader {
 public:
  static constexpr std::size_t kAheadBytesMost = std::size_t{256} << 20;

  ObjectFiles(std::shared_ptr<const pipeline::FileReader> files, std::unique_ptr<RangeClient> client);
  ~ObjectFiles() override;

  // Errors: DataLoss for an object that has changed; NotFound, PermissionDenied, InvalidArgument as the store says;
  // Unavailable where all attempts failed; Cancelled after end(). The message names object and range.
  Result<void> read(const pipeline::FilePart& part, std::vector<std::uint8_t>& bytes) const override;
  std::shared_ptr<pipeline::ReadAhead> read_ahead(const PartOf& part, std::size_t parts,
                                                  const pipeline::Prefix& prefix) const override;
  Result<pipeline::FileIdentity> identify(const std::string& path) const override { return files_->identify(path); }
  std::string volume_place_of(const std::string& path) const override { return files_->volume_place_of(path); }

  const Counters& counters() const;

  // Nothing is asked for from here on; threads that wait get an error, and what is read ahead does not come any more.
  void end() const;

 private:
  class Shared;
  class Batch;

  const std::shared_ptr<const pipeline::FileReader> files_;
  const std::shared_ptr<Shared> shared_;
};

}  // namespace sluice::object_store
