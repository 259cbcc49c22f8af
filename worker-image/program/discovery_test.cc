#include "worker-image/program/discovery.h"

#include <atomic>
#include <thread>

#include "src/base/testing/catch.h"
#include "worker-image/testing/eventually.h"

namespace sluice::program {
namespace {

using testing::eventually;

TEST_CASE("numeric hosts resolve without a name server") {
  const auto addresses = resolve_addresses({"127.0.0.1", 7471});
  REQUIRE(addresses.ok());
  CHECK(*addresses == Addresses{"127.0.0.1:7471"});
  const auto version6 = resolve_addresses({"::1", 7471});
  REQUIRE(version6.ok());
  CHECK(*version6 == Addresses{"[::1]:7471"});
}

TEST_CASE("the last good answer stands while the name server is away") {
  // Shared with the resolving thread, for which no thread waits.
  auto calls = std::make_shared<std::atomic<int>>(0);
  const Discovery discovery({"workers", 1}, std::chrono::seconds(1),
                            [calls](const HostPort& name) -> Result<Addresses> {
                              if (calls->fetch_add(1) == 0) return Addresses{name.to_string()};
                              return unavailable("no name server");
                            });
  CHECK(eventually([&] { return *calls >= 2; }));
  CHECK(discovery.addresses() == Addresses{"workers:1"});
}

TEST_CASE("ending does not wait for a resolver that hangs") {
  auto release = std::make_shared<std::atomic<bool>>(false);
  auto entered = std::make_shared<std::atomic<bool>>(false);
  {
    const Discovery discovery({"workers", 1}, std::chrono::seconds(1),
                              [release, entered](const HostPort&) -> Result<Addresses> {
                                *entered = true;
                                while (!*release) std::this_thread::sleep_for(std::chrono::milliseconds(1));
                                return Addresses{};
                              });
    CHECK(eventually([&] { return entered->load(); }));
    CHECK(discovery.addresses().empty());
  }
  *release = true;
}

}  // namespace
}  // namespace sluice::program
