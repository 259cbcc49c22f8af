#include "src/transport/credentials.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "src/base/testing/catch.h"
#include "src/base/testing/temporary_directory.h"

namespace sluice::transport {
namespace {

TEST_CASE("credentials are the three files, or expressly none") {
  const testing::TemporaryDirectory folder;
  const std::string directory = folder.path.string();
  CHECK_THAT(read_credentials(directory, false).error().message(), Catch::Contains("ca.crt"));
  for (const char* name : {"ca.crt", "tls.crt", "tls.key"}) folder.file(name, std::string(name) + "\n");
  const auto read = read_credentials(directory, false);
  REQUIRE(read.ok());
  REQUIRE(read->encrypted());
  CHECK(read->now() == TlsMaterial{"ca.crt\n", "tls.crt\n", "tls.key\n"});
}

TEST_CASE("talking in the clear must be said, and only that") {
  const auto insecure = read_credentials("", true);
  REQUIRE(insecure.ok());
  CHECK(!insecure->encrypted());
  CHECK(!insecure->expires());
  CHECK_THAT(read_credentials("", false).error().message(), Catch::Contains("--tls-dir"));
  CHECK_THAT(read_credentials("/somewhere", true).error().message(), Catch::Contains("exclude each other"));
}

}  // namespace
}  // namespace sluice::transport
