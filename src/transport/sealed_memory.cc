#include "src/transport/sealed_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

namespace sluice::transport {
namespace {

constexpr int kSeals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
constexpr int kNeededSeals = F_SEAL_SHRINK | F_SEAL_WRITE;

}  // namespace

Result<SealedMemoryHandle> SealedMemory::adopt(UniqueFd fd, std::size_t bytes_max) {
  const int seals = ::fcntl(fd.get(), F_GET_SEALS);
  if (seals < 0 || (seals & kNeededSeals) != kNeededSeals) {
    return invalid_argument("the descriptor is not of memory that is sealed against writing and shrinking");
  }
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return errno_error("fstat");
  const auto bytes = static_cast<std::size_t>(status.st_size);
  if (bytes > bytes_max) {
    return invalid_argument("the memory has " + std::to_string(bytes) + " bytes, more than " +
                            std::to_string(bytes_max));
  }
  // Older kernels refuse a shared mapping of sealed memory. A private one that is only read has the very same pages.
  void* data = nullptr;
  if (bytes > 0) data = ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (data == MAP_FAILED) return errno_error("mmap of sealed memory");
  return SealedMemoryHandle(new SealedMemory(std::move(fd), static_cast<const char*>(data), bytes));
}

Result<SealedMemoryHandle> SealedMemory::copy_of(std::string_view bytes) {
  SLUICE_TRY(MemoryWriter writer, MemoryWriter::create(bytes.size()));
  SLUICE_TRY_VOID(writer.append(std::as_bytes(std::span(bytes))));
  return std::move(writer).seal();
}

SealedMemory::~SealedMemory() {
  if (data_ != nullptr) ::munmap(const_cast<char*>(data_), bytes_);
}

Result<MemoryWriter> MemoryWriter::create(std::size_t bytes) {
  UniqueFd fd(::memfd_create("sluice-pipeline", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid()) return errno_error("memfd_create");
  if (::ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) return errno_error("ftruncate of a pipeline's memory");
  return MemoryWriter(std::move(fd), bytes);
}

Result<void> MemoryWriter::append(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::pwrite(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(written_));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno_error("write to a pipeline's memory");
    written_ += static_cast<std::size_t>(count);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
  return {};
}

Result<SealedMemoryHandle> MemoryWriter::seal() && {
  if (::fcntl(fd_.get(), F_ADD_SEALS, kSeals) != 0) return errno_error("sealing a pipeline's memory");
  return SealedMemory::adopt(std::move(fd_), bytes_);
}

}  // namespace sluice::transport
