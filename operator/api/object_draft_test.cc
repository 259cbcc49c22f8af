#include "operator/api/object_draft.h"

#include <nlohmann/json.hpp>

#include "operator/api/labels.h"
#include "operator/api/pod_spec_draft.h"
#include "src/base/testing/catch.h"

namespace sluice::api {
namespace {

using nlohmann::json;

TEST_CASE("an object knows its kind when it is complete, and is compared without") {
  const ObjectDraft draft(kube::kJobs, "team", "vision");
  CHECK(draft.body() == json::parse(R"({"metadata":{"name":"vision","namespace":"team"}})"));
  CHECK(draft.complete() ==
        json::parse(R"({"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"vision","namespace":"team"}})"));
  CHECK(draft.key().to_string() == "team/vision");
}

TEST_CASE("an object follows its template and keeps its own name, labels and owner") {
  const json owner = json::parse(R"({"metadata":{"name":"vision","uid":"u1"}})");
  ObjectDraft pod(kube::kPods, "team", "vision-worker-0");
  pod.metadata().set_label("ours", "1");
  pod.metadata().set_controller(Object(owner), kube::kDataWorkerPools);
  pod.follow(json::parse(R"({"metadata":{"name":"other","labels":{"theirs":"2"},"annotations":{"a":"b"}},
                             "spec":{"nodeName":"n"}})"));
  CHECK(pod.body() == json::parse(R"({"metadata":{"name":"vision-worker-0","namespace":"team",
      "labels":{"ours":"1","theirs":"2"},"annotations":{"a":"b"},
      "ownerReferences":[{"apiVersion":"sluice.dev/v1alpha1","kind":"DataWorkerPool","name":"vision","uid":"u1",
                          "controller":true}]},
      "spec":{"nodeName":"n"}})"));
}

TEST_CASE("Prometheus is asked for our metrics only") {
  json metadata = json::parse(R"({"annotations":{"prometheus.io/path":"/theirs","other":"stays"}})");
  MetadataDraft(metadata).set_scraped(9464);
  CHECK(metadata["annotations"] ==
        json({{"other", "stays"}, {kScrapeAnnotation, "true"}, {kScrapePortAnnotation, "9464"}}));
}

TEST_CASE("metadata of no use become an object") {
  for (const json& odd : {json(), json("text"), json::array()}) {
    json metadata = odd;
    MetadataDraft(metadata).set_annotation("a", "b");
    CHECK(metadata == json({{"annotations", {{"a", "b"}}}}));
  }
}

TEST_CASE("a pod prefers a node beside its other rules, and not in place of its own preferences") {
  const json preferred = json::parse(R"([{"weight": 100, "preference": {
      "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["cheap"]}]}}])");
  const auto with = [&](json affinity) {
    affinity["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"] = preferred;
    return affinity;
  };
  const auto affinity_for = [](const json& before) {
    json spec = {{"containers", json::array()}};
    if (before != "none") spec["affinity"] = before;
    PodSpecDraft(spec).prefer_node("cheap");
    return spec.value("affinity", json());
  };
  CHECK(affinity_for("none") == with(json::object()));
  for (const char* text : {R"(null)", R"({})", R"({"nodeAffinity": null})",
                           R"({"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}})",
                           R"({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": []}})",
                           R"({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {}}})"}) {
    INFO(text);
    const json before = json::parse(text);
    CHECK(affinity_for(before) == with(before.is_null() ? json::object() : before));
  }
  for (const char* text :
       {R"({"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": {}}]}})",
        R"({"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": 7}})", R"({"nodeAffinity": "x"})",
        R"(["x"])"}) {
    INFO(text);
    CHECK(affinity_for(json::parse(text)) == json::parse(text));
  }
}

}  // namespace
}  // namespace sluice::api
