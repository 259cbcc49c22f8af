#include "src/kube/expectations.h"

#include <nlohmann/json.hpp>

#include "src/base/testing/catch.h"
#include "src/base/testing/manual_clock.h"
#include "src/kube/testing/objects.h"

namespace sluice::kube {
namespace {

using namespace std::chrono_literals;
using testing::pod;

struct Fixture {
  sluice::testing::ManualClock clock;
  Store store;
  Expectations expectations{clock, 1min, 3};
  const ObjectKey owner{"ns", "owner"};

  void see(const Json& object) { store.put(key_of(object), store.pack(std::make_shared<const Json>(object))); }
};

TEST_CASE_METHOD(Fixture, "who wrote nothing has seen everything") { CHECK(expectations.satisfied(owner)); }

TEST_CASE_METHOD(Fixture, "a write is seen when its version is, as a number, or a newer one") {
  see(pod("a", 8));
  store.set_version("8");
  expectations.written(owner, store, pod("a", 10));
  CHECK_FALSE(expectations.satisfied(owner));
  see(pod("a", 9));
  CHECK_FALSE(expectations.satisfied(owner));
  see(pod("a", 11));
  CHECK(expectations.satisfied(owner));
  CHECK(expectations.satisfied({"ns", "another"}));
}

TEST_CASE_METHOD(Fixture, "a write whose object came and went is seen when the informer is beyond it") {
  expectations.written(owner, store, pod("a", 10));
  store.set_version("9");
  CHECK_FALSE(expectations.satisfied(owner));
  store.set_version("12");
  CHECK(expectations.satisfied(owner));
}

TEST_CASE_METHOD(Fixture, "a deletion is seen when the object is gone, dying, or somebody new") {
  see(pod("a", 5));
  expectations.removed(owner, store, {"ns", "a"}, "uid-a");
  CHECK_FALSE(expectations.satisfied(owner));
  SECTION("gone") { store.erase({"ns", "a"}); }
  SECTION("dying") {
    Json dying = pod("a", 6);
    dying["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
    see(dying);
  }
  SECTION("somebody new") { see(pod("a", 7, "another-uid")); }
  CHECK(expectations.satisfied(owner));
}

TEST_CASE_METHOD(Fixture, "all of several writes must be seen") {
  expectations.written(owner, store, pod("a", 10));
  expectations.written(owner, store, pod("b", 11));
  see(pod("b", 11));
  CHECK_FALSE(expectations.satisfied(owner));
  see(pod("a", 10));
  CHECK(expectations.satisfied(owner));
}

TEST_CASE_METHOD(Fixture, "patience, memory and interest end") {
  expectations.written(owner, store, pod("a", 10));
  SECTION("too long ago") { clock.advance(1min); }
  SECTION("too many") {
    for (const char* name : {"b", "c", "d"}) {
      expectations.written(owner, store, pod(name, 11));
      see(pod(name, 11));
    }
  }
  SECTION("the owner is gone") { expectations.forget(owner); }
  CHECK(expectations.satisfied(owner));
}

}  // namespace
}  // namespace sluice::kube
