#include "src/pipeline/file_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>

#include "src/pipeline/pipeline_files.h"

namespace sluice::pipeline {
namespace {

class FileDescriptor {
 public:
  // Opening a FIFO would wait for its writer, for ever if there is none. Regular files know no O_NONBLOCK.
  explicit FileDescriptor(const std::string& path) : number_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
  ~FileDescriptor() {
    if (number_ >= 0) ::close(number_);
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;

  int number() const { return number_; }

 private:
  int number_;
};

// Where an open file lies, without symbolic links; empty where the kernel cannot say, or the file is deleted.
std::string real_path(const FileDescriptor& file, const struct stat& status) {
  std::array<char, PATH_MAX> path{};
  const std::string link = "/proc/self/fd/" + std::to_string(file.number());
  const ssize_t bytes = ::readlink(link.c_str(), path.data(), path.size());
  const bool is_whole = bytes > 0 && bytes < static_cast<ssize_t>(path.size());
  return is_whole && status.st_nlink > 0 ? std::string(path.data(), static_cast<std::size_t>(bytes)) : "";
}

class SystemFileReader final : public FileReader {
 public:
  explicit SystemFileReader(SharedVolumes volumes) : volumes_(std::move(volumes)) {}

  std::string volume_place_of(const std::string& path) const override { return volumes_.place_of(path); }

  Result<void> read(const FilePart& part, std::vector<std::uint8_t>& bytes) const override {
    if (part.object) return internal_error(part.name() + " is an object of a store, and only files are read here");
    const FileDescriptor file(part.path);
    if (file.number() < 0) return errno_error("open " + part.path);
    struct stat status {};
    if (::fstat(file.number(), &status) != 0) return errno_error("stat " + part.path);
    if (!S_ISREG(status.st_mode)) return invalid_argument(part.path + " is not a regular file");
    if (part.range && !part.range->is_of(identity_of(status)))
      return Error(ErrorCode::kDataLoss, part.path + " has changed since its index was made");
    const auto size = part.range ? part.range->bytes : static_cast<std::uint64_t>(status.st_size);
    if (size > kMaxFileBytes) {
      return invalid_argument(part.name() + " has " + std::to_string(size) + " bytes, more than the " +
                              std::to_string(kMaxFileBytes) + " that a sample may have");
    }
    bytes.resize(size);
    return fill(file, part, bytes);
  }

  Result<FileIdentity> identify(const std::string& path) const override {
    const FileDescriptor file(path);
    if (file.number() < 0) return errno_error("open " + path);
    struct stat status {};
    if (::fstat(file.number(), &status) != 0) return errno_error("stat " + path);
    FileIdentity identity = identity_of(status);
    if (!volumes_.empty()) identity.volume_place = volumes_.place_of(real_path(file, status));
    return identity;
  }

 private:
  static FileIdentity identity_of(const struct stat& status) {
    return {status.st_dev, status.st_ino, static_cast<std::uint64_t>(status.st_size), nanoseconds(status.st_mtim),
            nanoseconds(status.st_ctim)};
  }

  static std::int64_t nanoseconds(const timespec& time) {
    constexpr std::int64_t kPerSecond = 1'000'000'000;
    return std::int64_t{time.tv_sec} * kPerSecond + time.tv_nsec;
  }

  static Result<void> fill(const FileDescriptor& file, const FilePart& part, std::vector<std::uint8_t>& bytes) {
    const std::uint64_t begin = part.range ? part.range->offset : 0;
    std::size_t done = 0;
    while (done < bytes.size()) {
      const ssize_t got =
          ::pread(file.number(), bytes.data() + done, bytes.size() - done, static_cast<off_t>(begin + done));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return errno_error("read " + part.path);
      if (got == 0) return Error(ErrorCode::kDataLoss, part.path + " shrank while it was read");
      done += static_cast<std::size_t>(got);
    }
    return {};
  }

  const SharedVolumes volumes_;
};

}  // namespace

std::optional<FileIdentity> FilePart::object_identity() const {
  if (!object || !range || !names_content(object->etag)) return std::nullopt;
  // No volume has such a place: it begins with a NUL.
  return FileIdentity{.bytes = range->file_bytes,
                      .modified_ns = range->modified_ns,
                      .volume_place = '\0' + place_of_object(path, *object)};
}

Result<ImageContent> FileReader::read_image(const FilePart& part, const Prefix& /*prefix*/,
                                            std::vector<std::uint8_t>& bytes) const {
  SLUICE_TRY_VOID(read(part, bytes));
  return ImageContent{};
}

void FileReader::announce(const PartOf& /*part*/, const Prefix& /*prefix*/, const EpochOrder& /*order*/) const {}

std::shared_ptr<ReadAhead> FileReader::read_ahead(const PartOf& /*part*/, std::size_t /*parts*/,
                                                  const Prefix& /*prefix*/) const {
  return nullptr;
}

std::unique_ptr<const PipelineFiles> FileReader::for_pipeline(std::size_t /*samples*/) const { return nullptr; }

bool FileReader::has_room_for_output(const FilePart& /*part*/, const Prefix& /*prefix*/, const FileIdentity& /*state*/,
                                     std::size_t /*bytes*/) const {
  return false;
}

void FileReader::keep_output(const FilePart& /*part*/, const Prefix& /*prefix*/, const FileIdentity& /*state*/,
                             std::span<const std::uint8_t> /*output*/) const {}

std::shared_ptr<const FileReader> make_system_file_reader(SharedVolumes volumes) {
  return std::make_shared<SystemFileReader>(std::move(volumes));
}

}  // namespace sluice::pipeline
