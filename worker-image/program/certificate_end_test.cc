#include "worker-image/program/certificate_end.h"

#include <prometheus/registry.h>

#include "src/base/testing/catch.h"
#include "src/base/testing/manual_clock.h"
#include "src/base/testing/temporary_directory.h"
#include "src/http/testing/certificates.h"

namespace sluice::program {
namespace {

constexpr const char* kSeries = "sluice_certificate_expiry_timestamp_seconds";

// nullopt: there is no such series.
std::optional<double> value_of(prometheus::Registry& registry) {
  for (const auto& family : registry.Collect())
    if (family.name == kSeries) return family.metric.at(0).gauge.value;
  return std::nullopt;
}

TEST_CASE("the end of the certificate is a metric, which follows the files within a minute") {
  const testing::TemporaryDirectory folder;
  const auto issue = [&](const char* name) {
    const http::testing::CertificateAuthority authority(name);
    const auto leaf = authority.issue("sluice", "DNS:worker.sluice.internal");
    folder.file("ca.crt", authority.certificate_pem());
    folder.file("tls.crt", leaf.certificate_pem);
    folder.file("tls.key", leaf.key_pem);
  };
  issue("first");
  const auto credentials = transport::read_credentials(folder.path.string(), false);
  REQUIRE(credentials.ok());
  prometheus::Registry registry;
  testing::ManualClock clock;
  CertificateEnd end(registry, {"vision", "default"}, *credentials, clock);
  const auto first = value_of(registry);
  REQUIRE(first);
  CHECK(std::abs(*first - static_cast<double>(std::time(nullptr)) - 3600) < 300);

  // A certificate of these tests is for an hour from the second in which it is made.
  const std::time_t made = std::time(nullptr);
  while (std::time(nullptr) == made) std::this_thread::yield();
  issue("second");
  clock.advance(std::chrono::seconds(59));
  end.tick();
  CHECK(value_of(registry) == first);
  clock.advance(std::chrono::seconds(1));
  end.tick();
  CHECK(*value_of(registry) > *first);
}

TEST_CASE("in the clear there is no such series") {
  prometheus::Registry registry;
  const testing::ManualClock clock;
  CertificateEnd end(registry, {"vision", "default"}, {}, clock);
  end.tick();
  CHECK_FALSE(value_of(registry));
}

}  // namespace
}  // namespace sluice::program
