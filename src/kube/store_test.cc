#include "src/kube/store.h"

#include <nlohmann/json.hpp>

#include "src/base/testing/catch.h"
#include "src/kube/testing/objects.h"

namespace sluice::kube {
namespace {

using testing::pod;

struct Fixture {
  Store store;

  void put(const Json& object) {
    store.put(key_of(object), std::make_shared<const StoredObject>(std::make_shared<const Json>(object)));
  }
  void stage(const Json& object) {
    store.stage(key_of(object), std::make_shared<const StoredObject>(std::make_shared<const Json>(object)));
  }
  std::vector<std::string> commit() {
    std::vector<std::string> told;
    store.commit([&](const ObjectKey& key, const StoredPointer& before, const StoredPointer& after) {
      told.push_back((before ? after ? "change " : "delete " : "add ") + key.name);
    });
    return told;
  }
};

TEST_CASE_METHOD(Fixture, "an object comes out of the store as it went in") {
  Json odd = pod("a", 1);
  odd["spec"] = {{"float", 1.5}, {"big", 9007199254740993}, {"text", "\xC3\xA4\n"}, {"list", {1, nullptr, true, "x"}}};
  put(odd);
  CHECK(*store.get({"ns", "a"}) == odd);
  CHECK(store.get({"ns", "b"}) == nullptr);
  CHECK(*store.snapshot().at({"ns", "a"}) == odd);
  CHECK(store.size() == 1);
  store.erase({"ns", "a"});
  CHECK(store.size() == 0);
}

TEST_CASE_METHOD(Fixture, "a snapshot stays as it was while the store moves on") {
  put(pod("a", 1));
  const Store::Objects snapshot = store.snapshot();
  store.erase({"ns", "a"});
  CHECK(snapshot.size() == 1);
  CHECK(key_of(*snapshot.begin()->second).name == "a");
}

TEST_CASE_METHOD(Fixture, "a new collection is unseen until it is complete, then what is different is told") {
  for (const Json& object : {pod("same", 1), pod("changed", 2), pod("gone", 3), pod("reborn", 4, "first")}) put(object);
  for (const Json& object : {pod("same", 1), pod("changed", 20), pod("new", 21), pod("reborn", 4, "second")})
    stage(object);
  stage(pod("brief", 22));
  store.unstage({"ns", "brief"});
  CHECK(store.get({"ns", "new"}) == nullptr);
  CHECK(store.size() == 4);
  CHECK(commit() == std::vector<std::string>{"delete gone", "change changed", "add new", "change reborn"});
  CHECK(store.get({"ns", "new"}) != nullptr);
  stage(pod("never", 1));
  store.discard_staged();
  CHECK(commit() == std::vector<std::string>{"delete changed", "delete new", "delete reborn", "delete same"});
}

TEST_CASE("packed objects are smaller than their text") {
  const Json object = pod("a-pod-with-a-name", 123456);
  CHECK(Json::to_cbor(object).size() < object.dump().size());
}

}  // namespace
}  // namespace sluice::kube
