#include "src/transport/sealed_memory.h"

#include <fcntl.h>
#include <sys/mman.h>

#include "src/base/testing/catch.h"

namespace sluice::transport {
namespace {

UniqueFd memory_file(std::string_view bytes, int seals) {
  UniqueFd fd(::memfd_create("sealed_memory_test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  REQUIRE(::write(fd.get(), bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
  REQUIRE(::fcntl(fd.get(), F_ADD_SEALS, seals) == 0);
  return fd;
}

std::span<const std::byte> bytes_in(std::string_view text) { return std::as_bytes(std::span(text)); }

TEST_CASE("sealed memory has the bytes that were written, for everybody who has its descriptor") {
  for (const std::string& text : {std::string(), std::string("x"), std::string(100'000, 'y')}) {
    const auto memory = SealedMemory::copy_of(text);
    REQUIRE(memory.ok());
    CHECK((*memory)->bytes() == text);
    const auto again = SealedMemory::adopt(UniqueFd(::dup((*memory)->fd())), text.size());
    REQUIRE(again.ok());
    CHECK((*again)->bytes() == text);
  }
}

TEST_CASE("sealed memory cannot be changed, nor made longer or shorter") {
  const auto memory = SealedMemory::copy_of("abc");
  const int fd = (*memory)->fd();
  CHECK(::pwrite(fd, "z", 1, 0) < 0);
  CHECK(::ftruncate(fd, 1) < 0);
  CHECK(::ftruncate(fd, 100) < 0);
  CHECK(::mmap(nullptr, 3, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED);
  CHECK((*memory)->bytes() == "abc");
}

TEST_CASE("what others pass is refused unless it is sealed and small enough") {
  struct Case {
    const char* what;
    UniqueFd fd;
    const char* message;  // null: it is accepted
  };
  Case cases[] = {
      {"sealed", memory_file("abcd", F_SEAL_WRITE | F_SEAL_SHRINK), nullptr},
      {"too large", memory_file("abcde", F_SEAL_WRITE | F_SEAL_SHRINK), "5 bytes, more than 4"},
      {"may be written", memory_file("abcd", F_SEAL_SHRINK), "sealed"},
      {"may shrink", memory_file("abcd", F_SEAL_WRITE), "sealed"},
      {"a file", UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC)), "sealed"},
      {"nothing", UniqueFd(), "sealed"},
  };
  for (Case& test : cases) {
    CAPTURE(test.what);
    const auto memory = SealedMemory::adopt(std::move(test.fd), 4);
    CHECK(memory.ok() == (test.message == nullptr));
    if (!memory.ok()) CHECK_THAT(memory.error().message(), Catch::Contains(test.message));
  }
}

TEST_CASE("memory can be written in pieces") {
  auto writer = MemoryWriter::create(5);
  REQUIRE(writer.ok());
  REQUIRE(writer->append(bytes_in("ab")).ok());
  CHECK(writer->bytes_left() == 3);
  REQUIRE(writer->append(bytes_in("cde")).ok());
  CHECK(writer->bytes_left() == 0);
  const auto memory = std::move(*writer).seal();
  REQUIRE(memory.ok());
  CHECK((*memory)->bytes() == "abcde");
}

}  // namespace
}  // namespace sluice::transport
