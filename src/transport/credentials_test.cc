#include "src/transport/credentials.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "src/base/testing/catch.h"

namespace sluice::transport {
namespace {

TEST_CASE("credentials are the three files, or expressly none") {
  std::string directory = (std::filesystem::temp_directory_path() / "credentials_test.XXXXXX").string();
  REQUIRE(::mkdtemp(directory.data()) != nullptr);
  CHECK_THAT(read_credentials(directory, false).error().message(), Catch::Contains("ca.crt"));
  for (const char* name : {"ca.crt", "tls.crt", "tls.key"}) std::ofstream(directory + "/" + name) << name << "\n";
  const auto read = read_credentials(directory, false);
  REQUIRE(read.ok());
  REQUIRE(read->has_value());
  CHECK((*read)->authority == "ca.crt\n");
  CHECK((*read)->certificate == "tls.crt\n");
  CHECK((*read)->key == "tls.key\n");
  std::filesystem::remove_all(directory);
}

TEST_CASE("talking in the clear must be said, and only that") {
  const auto insecure = read_credentials("", true);
  REQUIRE(insecure.ok());
  CHECK(!insecure->has_value());
  CHECK_THAT(read_credentials("", false).error().message(), Catch::Contains("--tls-dir"));
  CHECK_THAT(read_credentials("/somewhere", true).error().message(), Catch::Contains("exclude each other"));
}

}  // namespace
}  // namespace sluice::transport
