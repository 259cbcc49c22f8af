#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "src/cache/disk.h"

namespace sluice::cache {
namespace {

constexpr const char* kLockName = "sluice-cache.lock";

class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  int number() const { return number_; }

 private:
  int number_;
};

class SystemFile final : public DiskFile {
 public:
  SystemFile(std::string path, Descriptor descriptor) : path_(std::move(path)), descriptor_(std::move(descriptor)) {}

  Result<std::size_t> read_at(std::uint64_t offset, std::span<std::uint8_t> bytes) const override {
    std::size_t done = 0;
    while (done < bytes.size()) {
      const ssize_t got =
          ::pread(descriptor_.number(), bytes.data() + done, bytes.size() - done, static_cast<off_t>(offset + done));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return errno_error("read " + path_);
      if (got == 0) break;
      done += static_cast<std::size_t>(got);
    }
    return done;
  }

  Result<void> write_at(std::uint64_t offset, std::span<const std::uint8_t> bytes) override {
    std::size_t done = 0;
    while (done < bytes.size()) {
      const ssize_t put =
          ::pwrite(descriptor_.number(), bytes.data() + done, bytes.size() - done, static_cast<off_t>(offset + done));
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) return errno_error("write " + path_);
      done += static_cast<std::size_t>(put);
    }
    return {};
  }

  Result<void> truncate(std::uint64_t bytes) override {
    if (::ftruncate(descriptor_.number(), static_cast<off_t>(bytes)) != 0) return errno_error("truncate " + path_);
    return {};
  }

  Result<bool> make_hole(std::uint64_t offset, std::uint64_t bytes) override {
    constexpr int kMode = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
    while (::fallocate(descriptor_.number(), kMode, static_cast<off_t>(offset), static_cast<off_t>(bytes)) != 0) {
      if (errno == EOPNOTSUPP || errno == ENOSYS) return false;
      if (errno != EINTR) return errno_error("make a hole in " + path_);
    }
    return true;
  }

 private:
  const std::string path_;
  const Descriptor descriptor_;
};

class SystemDisk final : public Disk {
 public:
  explicit SystemDisk(std::string directory) : directory_(std::move(directory)) {}

  Result<void> lock() override {
    if (::mkdir(directory_.c_str(), 0700) != 0 && errno != EEXIST) return errno_error("make directory " + directory_);
    SLUICE_TRY(Descriptor held, open_file(kLockName, O_RDWR | O_CREAT));
    if (::flock(held.number(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EWOULDBLOCK) return unavailable(directory_ + " is in use by another process");
      return errno_error("lock " + path(kLockName));
    }
    lock_ = std::move(held);
    return {};
  }

  Result<std::vector<Entry>> list() const override {
    std::error_code error;
    std::vector<Entry> entries;
    for (std::filesystem::directory_iterator at(directory_, error), end; !error && at != end; at.increment(error)) {
      const std::uint64_t bytes = at->is_regular_file(error) ? at->file_size(error) : 0;
      if (!error) entries.push_back({at->path().filename().string(), bytes});
    }
    if (error) return internal_error("list " + directory_ + ": " + error.message());
    return entries;
  }

  Result<std::shared_ptr<DiskFile>> open(const std::string& name) override { return file(name, O_RDWR); }
  Result<std::shared_ptr<DiskFile>> create(const std::string& name) override {
    return file(name, O_RDWR | O_CREAT | O_EXCL);
  }

  Result<void> remove(const std::string& name) override {
    if (::unlink(path(name).c_str()) != 0) return errno_error("remove " + path(name));
    return {};
  }

 private:
  std::string path(const std::string& name) const { return directory_ + "/" + name; }

  Result<Descriptor> open_file(const std::string& name, int flags) const {
    Descriptor descriptor(::open(path(name).c_str(), flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
    if (descriptor.number() < 0) return errno_error("open " + path(name));
    return descriptor;
  }

  Result<std::shared_ptr<DiskFile>> file(const std::string& name, int flags) const {
    SLUICE_TRY(Descriptor descriptor, open_file(name, flags));
    return std::shared_ptr<DiskFile>(std::make_shared<SystemFile>(path(name), std::move(descriptor)));
  }

  const std::string directory_;
  Descriptor lock_;
};

}  // namespace

std::unique_ptr<Disk> make_system_disk(std::string directory) {
  return std::make_unique<SystemDisk>(std::move(directory));
}

}  // namespace sluice::cache
