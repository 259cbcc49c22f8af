#include "src/object_store/spare_buffers.h"

#include "src/base/testing/catch.h"

namespace sluice::object_store {
namespace {

TEST_CASE("a buffer is handed out once, to what is not much smaller") {
  SpareBuffers spare;
  spare.keep(std::vector<std::uint8_t>(1000));
  CHECK(spare.take(249).capacity() == 0);
  CHECK(spare.take(250).capacity() == 1000);
  CHECK(spare.take(250).capacity() == 0);
}

TEST_CASE("their number and their bytes are bounded") {
  SpareBuffers spare;
  spare.keep(std::vector<std::uint8_t>(SpareBuffers::kBytesMost));
  spare.keep(std::vector<std::uint8_t>(1));
  CHECK(spare.take(SpareBuffers::kBytesMost).capacity() == SpareBuffers::kBytesMost);
  CHECK(spare.take(1).capacity() == 0);
  for (std::size_t i = 0; i < 2 * SpareBuffers::kMost; ++i) spare.keep(std::vector<std::uint8_t>(10));
  std::size_t kept = 0;
  while (spare.take(10).capacity() > 0) ++kept;
  CHECK(kept == SpareBuffers::kMost);
}

}  // namespace
}  // namespace sluice::object_store
