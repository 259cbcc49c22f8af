#include "src/pipeline/file_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

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

class SystemFileReader final : public FileReader {
 public:
  Result<void> read(const std::string& path, std::vector<std::uint8_t>& bytes) const override {
    const FileDescriptor file(path);
    if (file.number() < 0) return errno_error("open " + path);
    struct stat status {};
    if (::fstat(file.number(), &status) != 0) return errno_error("stat " + path);
    if (!S_ISREG(status.st_mode)) return invalid_argument(path + " is not a regular file");
    const auto size = static_cast<std::size_t>(status.st_size);
    if (size > kMaxFileBytes) {
      return invalid_argument(path + " has " + std::to_string(size) + " bytes, more than the " +
                              std::to_string(kMaxFileBytes) + " that a sample may have");
    }
    bytes.resize(size);
    return fill(file, path, bytes);
  }

  Result<FileIdentity> identify(const std::string& path) const override {
    const FileDescriptor file(path);
    if (file.number() < 0) return errno_error("open " + path);
    struct stat status {};
    if (::fstat(file.number(), &status) != 0) return errno_error("stat " + path);
    return FileIdentity{status.st_dev, status.st_ino, static_cast<std::uint64_t>(status.st_size),
                        nanoseconds(status.st_mtim), nanoseconds(status.st_ctim)};
  }

 private:
  static std::int64_t nanoseconds(const timespec& time) {
    constexpr std::int64_t kPerSecond = 1'000'000'000;
    return std::int64_t{time.tv_sec} * kPerSecond + time.tv_nsec;
  }

  static Result<void> fill(const FileDescriptor& file, const std::string& path, std::vector<std::uint8_t>& bytes) {
    std::size_t done = 0;
    while (done < bytes.size()) {
      const ssize_t got = ::read(file.number(), bytes.data() + done, bytes.size() - done);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return errno_error("read " + path);
      if (got == 0) return Error(ErrorCode::kDataLoss, path + " shrank while it was read");
      done += static_cast<std::size_t>(got);
    }
    return {};
  }
};

}  // namespace

std::shared_ptr<const FileReader> make_system_file_reader() { return std::make_shared<SystemFileReader>(); }

}  // namespace sluice::pipeline
