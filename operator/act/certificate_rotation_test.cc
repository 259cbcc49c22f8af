#include "operator/act/certificate_rotation.h"

#include <vector>

#include "operator/testing/certificate_trust.h"
#include "src/base/testing/catch.h"

namespace sluice::act {
namespace {

using control::testing::trusts;
using std::chrono::hours;
using std::chrono::minutes;
using Time = std::chrono::system_clock::time_point;

constexpr hours kDay{24};
const Time kMade = Time(std::chrono::seconds(1767225600));

IdentitySource at(Time now) {
  return [now](const std::string& job) { return make_tls_identity(job, "worker.sluice.internal", now); };
}

TlsEntries made_at(Time now) {
  const auto identity = at(now)("vision");
  REQUIRE(identity.ok());
  return {identity->authority_certificate, identity->certificate, identity->private_key, "", ""};
}

// Nothing to do: the entries as they are.
TlsEntries step(const TlsEntries& entries, Time now) {
  const auto rotated = rotate(entries, "vision", now, at(now));
  REQUIRE(rotated.ok());
  return rotated->value_or(entries);
}

bool same(const TlsEntries& one, const TlsEntries& other) {
  return one.authorities == other.authorities && one.certificate == other.certificate &&
         one.private_key == other.private_key && one.next_certificate == other.next_certificate &&
         one.next_private_key == other.next_private_key;
}

TEST_CASE("certificates stay for two thirds of their life") {
  const TlsEntries first = made_at(kMade);
  for (const auto age : {hours(0), 1 * kDay, 59 * kDay}) CHECK(same(step(first, kMade + age), first));
  CHECK_FALSE(same(step(first, kMade + 61 * kDay), first));
}

TEST_CASE("a new certificate counts on machines whose clocks are behind, be it by a time zone") {
  const TlsEntries first = made_at(kMade);
  for (const auto behind : {minutes(0), minutes(61), minutes(14 * 60)})
    CHECK(trusts(first.authorities, first.certificate, kMade - behind));
}

TEST_CASE("the next authority is trusted for an hour before its certificate is shown") {
  const TlsEntries first = made_at(kMade);
  const Time due = kMade + 60 * kDay;
  const TlsEntries second = step(first, due);
  CHECK(second.certificate == first.certificate);
  CHECK(second.private_key == first.private_key);
  CHECK(trusts(second.authorities, first.certificate, due));
  CHECK(trusts(second.authorities, second.next_certificate, due));
  CHECK(same(step(second, due + minutes(59)), second));
  const TlsEntries third = step(second, due + minutes(60));
  CHECK(third.certificate == second.next_certificate);
  CHECK(third.private_key == second.next_private_key);
  CHECK(third.next_certificate.empty());
  CHECK(third.next_private_key.empty());
  CHECK(same(step(third, due + kDay), third));
}

TEST_CASE("files before and after any step trust each other, for two years, and never more than two authorities") {
  TlsEntries before = made_at(kMade);
  int changes = 0;
  for (Time now = kMade; now < kMade + 730 * kDay; now += hours(1)) {
    const TlsEntries after = step(before, now);
    if (same(before, after)) continue;
    ++changes;
    INFO("day " << (now - kMade) / kDay);
    CHECK((now - hours(1) < rotates_at(before) && rotates_at(before) <= now));
    for (const TlsEntries& one : {before, after})
      for (const TlsEntries& other : {before, after}) CHECK(trusts(one.authorities, other.certificate, now));
    CHECK_FALSE(trusts(after.authorities, made_at(now).certificate, now));
    std::size_t authorities = 0;
    for (std::size_t at = 0; (at = after.authorities.find("BEGIN CERTIFICATE", at)) != std::string::npos; ++at)
      ++authorities;
    CHECK(authorities == 2);
    before = after;
  }
  CHECK(changes == 24);  // two steps, about every sixty days
}

TEST_CASE("after the end of the present certificates, which no operator renewed, there is nothing to wait for") {
  const Time late = kMade + 100 * kDay;
  const TlsEntries second = step(made_at(kMade), late);
  const TlsEntries third = step(second, late);
  CHECK(third.certificate == second.next_certificate);
  CHECK(trusts(third.authorities, third.certificate, late));
}

TEST_CASE("the next certificates do not wait for the very end of the present ones: a clock may be behind") {
  const Time end = kMade + 90 * kDay;
  const TlsEntries second = step(made_at(kMade), end - minutes(20));
  CHECK(same(step(second, end - minutes(16)), second));
  CHECK(step(second, end - minutes(15)).certificate == second.next_certificate);
}

TEST_CASE("damaged entries are made anew") {
  const TlsEntries good = made_at(kMade);
  SECTION("the present certificate: all of them") {
    TlsEntries damaged = good;
    damaged.certificate = "no PEM";
    CHECK(rotates_at(damaged) <= kMade);
    const TlsEntries fresh = step(damaged, kMade);
    CHECK(trusts(fresh.authorities, fresh.certificate, kMade));
    CHECK(fresh.authorities != good.authorities);
  }
  SECTION("the next certificate: that one") {
    const Time due = kMade + 61 * kDay;
    TlsEntries damaged = step(good, due);
    damaged.next_certificate = "no PEM";
    const TlsEntries again = step(damaged, due);
    CHECK(again.certificate == good.certificate);
    CHECK(trusts(again.authorities, again.next_certificate, due));
  }
}

TEST_CASE("where no certificate can be made, the old ones stay and the reason is told") {
  const auto refused =
      rotate(made_at(kMade), "vision", kMade + 61 * kDay,
             [](const std::string&) -> Result<TlsIdentity> { return internal_error("no randomness"); });
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().message() == "no randomness");
}

}  // namespace
}  // namespace sluice::act
