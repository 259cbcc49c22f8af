#include "src/kube/resource.h"

#include <nlohmann/json.hpp>
#include <unordered_set>

#include "src/base/testing/catch.h"

namespace sluice::kube {

TEST_CASE("URLs of collections and objects") {
  CHECK(collection_path(kPods, "a") == "/api/v1/namespaces/a/pods");
  CHECK(collection_path(kPods, "") == "/api/v1/pods");
  CHECK(collection_path(kNodes, "ignored") == "/api/v1/nodes");
  CHECK(collection_path(kTrainingJobs, "a") == "/apis/sluice.dev/v1alpha1/namespaces/a/trainingjobs");
  CHECK(object_path(kJobs, {"a", "b"}) == "/apis/batch/v1/namespaces/a/jobs/b");
  CHECK(object_path(kJobs, {"a", "b"}, "status") == "/apis/batch/v1/namespaces/a/jobs/b/status");
  CHECK(object_path(kNodes, {"", "n"}) == "/api/v1/nodes/n");
  CHECK(object_path(kPods, {"a", "../x"}) == "/api/v1/namespaces/a/pods/..%2Fx");
}

TEST_CASE("keys come from metadata, order by namespace and name, and hash") {
  CHECK(key_of(Json{{"metadata", {{"namespace", "a"}, {"name", "b"}}}}) == ObjectKey{"a", "b"});
  CHECK(key_of(Json{{"metadata", {{"name", "n"}}}}) == ObjectKey{"", "n"});
  CHECK(key_of(Json::object()) == ObjectKey{});
  CHECK(key_of(Json{{"metadata", 1}}) == ObjectKey{});
  CHECK(ObjectKey{"a", "z"} < ObjectKey{"b", "a"});
  CHECK(ObjectKey{"a", "b"}.to_string() == "a/b");
  CHECK(ObjectKey{"", "n"}.to_string() == "n");
  const std::unordered_set<ObjectKey> set{{"a", "b"}, {"a", "b"}, {"b", "a"}};
  CHECK(set.size() == 2);
}

}  // namespace sluice::kube
