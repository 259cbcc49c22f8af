#include "src/kube/client.h"

#include <thread>

#include "src/base/testing/catch.h"
#include "src/base/testing/manual_clock.h"
#include "src/http/testing/scripted_transport.h"
#include "src/kube/testing/objects.h"
#include "src/kube/watch.h"

namespace sluice::kube {
namespace {

using namespace std::chrono_literals;
using http::testing::ScriptedStream;
using http::testing::ScriptedTransport;
using namespace testing;

struct ClientOfServer {
  std::shared_ptr<ScriptedTransport> server = std::make_shared<ScriptedTransport>();
  sluice::testing::ManualClock clock;
  Client client{server, clock};

  http::Request asked(std::size_t index) const { return server->requests().at(index); }
  Json sent(std::size_t index) const { return Json::parse(asked(index).body); }
};

TEST_CASE_METHOD(ClientOfServer, "a list collects its pages and says what its items are") {
  server->answer(200, list_of({pod("a", 1), pod("b", 2)}, 7, "more/&"));
  server->answer(200, list_of({pod("c", 3)}, 7));
  const auto list = client.list(kPods, {"ns", "app=x", "spec.nodeName=n", "0"});
  REQUIRE(list.ok());
  REQUIRE(list->items.size() == 3);
  CHECK(list->items[2]["metadata"]["name"] == "c");
  for (const Json& item : list->items) CHECK_FALSE(item["metadata"].contains("managedFields"));
  CHECK(list->items[2]["kind"] == "Pod");
  CHECK(list->items[2]["apiVersion"] == "v1");
  CHECK(list->resource_version == "7");
  CHECK(asked(0).target ==
        "/api/v1/namespaces/ns/pods?labelSelector=app%3Dx&fieldSelector=spec.nodeName%3Dn&limit=500&resourceVersion=0");
  CHECK(
      asked(1).target ==
      "/api/v1/namespaces/ns/pods?labelSelector=app%3Dx&fieldSelector=spec.nodeName%3Dn&limit=500&continue=more%2F%26");
}

TEST_CASE_METHOD(ClientOfServer, "a list of nothing, and a list that expired between pages") {
  server->answer(200, R"({"kind":"NodeList","metadata":{"resourceVersion":"1"},"items":null})");
  CHECK(client.list(kNodes, {})->items.empty());
  CHECK(asked(0).target == "/api/v1/nodes?limit=500");

  server->answer(200, list_of({pod("a", 1)}, 7, "token"));
  server->answer(410, status(410, "Expired").dump());
  CHECK(client.list(kPods, {}).error().code() == ErrorCode::kGone);
}

TEST_CASE_METHOD(ClientOfServer, "get") {
  server->answer(200, pod("a", 1).dump());
  CHECK((*client.get(kPods, {"ns", "a"}))["metadata"]["uid"] == "uid-a");
  CHECK(asked(0).method == "GET");
  CHECK(asked(0).target == "/api/v1/namespaces/ns/pods/a");
  CHECK(asked(0).headers.at("accept") == "application/json");

  server->answer(404, status(404, "NotFound", "pods \"b\" not found").dump());
  const auto missing = client.get(kPods, {"ns", "b"});
  CHECK(missing.error() == Error(ErrorCode::kNotFound, "get Pod ns/b: pods \"b\" not found"));
}

TEST_CASE_METHOD(ClientOfServer, "a page that a pod serves comes through the API server, with the pod's own errors") {
  server->answer(200, R"({"jobs": []})");
  CHECK((*client.get_from_pod({"ns", "a"}, 8080, "/plan?nodes=2x32", {{"Sluice-Token", "t"}}))["jobs"].empty());
  CHECK(asked(0).target == "/api/v1/namespaces/ns/pods/a%3A8080/proxy/plan?nodes=2x32");
  CHECK(asked(0).headers.at("sluice-token") == "t");
  server->answer(400, "nodes=x: give a number\n");
  const auto refused = client.get_from_pod({"ns", "a"}, 8080, "/plan?nodes=x");
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code() == ErrorCode::kInvalidArgument);
  CHECK_THAT(refused.error().message(), Catch::Contains("nodes=x: give a number"));
}

TEST_CASE_METHOD(ClientOfServer, "a pod's log and its pages of text are read as they are") {
  server->answer(200, "one\ntwo\n");
  CHECK(*client.read_log({"ns", "a"}, "main", true, 20, 1000) == "one\ntwo\n");
  CHECK(asked(0).target ==
        "/api/v1/namespaces/ns/pods/a/log?container=main&previous=true&tailLines=20&limitBytes=1000");
  CHECK(asked(0).headers.at("accept") == "*/*");
  server->answer(200, "up 1\n");
  CHECK(*client.get_text_from_pod({"ns", "a"}, 9464, "/metrics") == "up 1\n");
  CHECK(asked(1).target == "/api/v1/namespaces/ns/pods/a%3A9464/proxy/metrics");
  server->answer(403, status(403, "Forbidden", "no logs for you").dump());
  const auto refused = client.read_log({"ns", "a"}, "main", false, 20, 1000);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code() == ErrorCode::kPermissionDenied);
}

TEST_CASE_METHOD(ClientOfServer, "a token of a service account is requested for one audience") {
  server->answer(201, R"({"status": {"token": "abc"}})");
  CHECK(*client.request_token({"ns", "reader"}, "plan") == "abc");
  CHECK(asked(0).method == "POST");
  CHECK(asked(0).target == "/api/v1/namespaces/ns/serviceaccounts/reader/token");
  CHECK(Json::parse(asked(0).body)["spec"] == Json{{"audiences", Json::array({"plan"})}, {"expirationSeconds", 600}});
  server->answer(201, R"({"status": {}})");
  CHECK(client.request_token({"ns", "reader"}, "plan").error().code() == ErrorCode::kDataLoss);
  server->answer(403, status(403, "Forbidden", "no").dump());
  CHECK(client.request_token({"ns", "reader"}, "plan").error().code() == ErrorCode::kPermissionDenied);
}

TEST_CASE_METHOD(ClientOfServer, "a token that is reviewed is good for the audience alone") {
  server->answer(
      201,
      R"({"kind": "TokenReview", "status": {"authenticated": true, "audiences": ["plan"], "user": {"username": "u"}}})");
  CHECK(*client.review_token("abc", "plan") == "u");
  CHECK(asked(0).method == "POST");
  CHECK_THAT(asked(0).target, Catch::StartsWith("/apis/authentication.k8s.io/v1/tokenreviews?"));
  CHECK(Json::parse(asked(0).body)["spec"] == Json{{"token", "abc"}, {"audiences", Json::array({"plan"})}});
  for (const char* answer :
       {R"({"status": {"authenticated": false}})", R"({})", R"({"status": {"error": "expired"}})",
        R"({"status": {"authenticated": true, "user": {"username": "u"}}})",
        R"({"status": {"authenticated": true, "audiences": ["api"], "user": {"username": "u"}}})"}) {
    INFO(answer);
    Json review = Json::parse(answer);
    review["kind"] = "TokenReview";
    server->answer(201, review.dump());
    CHECK(client.review_token("abc", "plan").error().code() == ErrorCode::kUnauthenticated);
  }
  server->answer(403, status(403, "Forbidden", "no").dump());
  CHECK(client.review_token("abc", "plan").error().code() == ErrorCode::kPermissionDenied);
}

TEST_CASE_METHOD(ClientOfServer, "a create whose name the server makes up must not arrive twice") {
  server->answer(201, pod("a-x7", 1).dump());
  REQUIRE(client.create(kPods, "ns", {{"metadata", {{"generateName", "a-"}}}}, "me").ok());
  CHECK_FALSE(asked(0).may_repeat);
}

TEST_CASE_METHOD(ClientOfServer, "create sends the object and tells a taken name from a conflict") {
  server->answer(201, pod("a", 1).dump());
  const Json object{{"metadata", {{"name", "a"}}}};
  REQUIRE(client.create(kPods, "ns", object, "me").ok());
  CHECK(asked(0).method == "POST");
  CHECK(asked(0).target == "/api/v1/namespaces/ns/pods?fieldManager=me&fieldValidation=Strict");
  CHECK(sent(0) == Json{{"apiVersion", "v1"}, {"kind", "Pod"}, {"metadata", {{"name", "a"}}}});
  CHECK(asked(0).may_repeat);  // the second one would find the first

  server->answer(409, status(409, "AlreadyExists").dump());
  CHECK(client.create(kPods, "ns", object, "me").error().code() == ErrorCode::kAlreadyExists);
  server->answer(409, status(409, "Conflict").dump());
  CHECK(client.create(kPods, "ns", object, "me").error().code() == ErrorCode::kConflict);
}

TEST_CASE_METHOD(ClientOfServer, "apply forces our fields, of the object or of its status") {
  server->answer(200, R"({"kind": "DataWorkerPool"})");
  server->answer(200, R"({"kind": "DataWorkerPool"})");
  const Json intent{{"spec", {{"replicas", 2}}}};
  REQUIRE(client.apply(kDataWorkerPools, {"ns", "p"}, intent, "sluice-scheduler").ok());
  REQUIRE(client.apply(kDataWorkerPools, {"ns", "p"}, {{"status", 1}}, "sluice-operator", "status").ok());
  CHECK(asked(0).method == "PATCH");
  CHECK(asked(0).target ==
        "/apis/sluice.dev/v1alpha1/namespaces/ns/dataworkerpools/"
        "p?fieldManager=sluice-scheduler&force=true&fieldValidation=Strict");
  CHECK(asked(0).headers.at("Content-Type") == "application/apply-patch+yaml");
  CHECK(sent(0) == Json{{"apiVersion", "sluice.dev/v1alpha1"},
                        {"kind", "DataWorkerPool"},
                        {"metadata", {{"namespace", "ns"}, {"name", "p"}}},
                        {"spec", {{"replicas", 2}}}});
  CHECK_THAT(asked(1).target, Catch::Contains("/dataworkerpools/p/status?"));
}

TEST_CASE_METHOD(ClientOfServer, "merge patch") {
  server->answer(200, R"({"kind": "DataWorkerPool"})");
  REQUIRE(client.merge_patch(kDataWorkerPools, {"ns", "p"}, {{"spec", {{"replicas", 3}}}}, "me", "status").ok());
  CHECK(asked(0).target == "/apis/sluice.dev/v1alpha1/namespaces/ns/dataworkerpools/p/status?fieldManager=me");
  CHECK(asked(0).headers.at("Content-Type") == "application/merge-patch+json");
}

TEST_CASE_METHOD(ClientOfServer, "remove carries its preconditions") {
  server->answer(200, pod("a", 1).dump());
  RemoveOptions options;
  options.uid = "u";
  options.resource_version = "5";
  options.propagation = Propagation::kForeground;
  options.grace_period_seconds = 0;
  REQUIRE(client.remove(kPods, {"ns", "a"}, options).ok());
  CHECK(asked(0).method == "DELETE");
  CHECK(sent(0) == Json{{"apiVersion", "v1"},
                        {"kind", "DeleteOptions"},
                        {"propagationPolicy", "Foreground"},
                        {"gracePeriodSeconds", 0},
                        {"preconditions", {{"uid", "u"}, {"resourceVersion", "5"}}}});

  server->answer(200, R"({"kind": "Status", "status": "Success"})");
  REQUIRE(client.remove(kPods, {"ns", "a"}).ok());
  CHECK(sent(1) == Json{{"apiVersion", "v1"}, {"kind", "DeleteOptions"}, {"propagationPolicy", "Background"}});
}

TEST_CASE_METHOD(ClientOfServer, "a server that says when to come back is asked again then, and only so often") {
  SECTION("the wait is the server's") {
    server->answer(429, status(429, "TooManyRequests").dump(), {{"Retry-After", "3"}});
    server->answer(200, pod("a", 1).dump());
    Result<Json> result = unavailable("not yet");
    std::thread caller([&] { result = client.get(kPods, {"ns", "a"}); });
    clock.wait_for_sleepers(1);
    clock.advance(2999ms);
    CHECK(server->requests().size() == 1);
    clock.advance(1ms);
    caller.join();
    CHECK(result.ok());
  }
  SECTION("not for ever") {
    for (int i = 0; i < 6; ++i) server->answer(503, "", {{"Retry-After", "0"}});
    CHECK(client.get(kPods, {"ns", "a"}).error().code() == ErrorCode::kUnavailable);
    CHECK(server->requests().size() == 6);
  }
  SECTION("not without being told when") {
    server->answer(503, "");
    CHECK(client.get(kPods, {"ns", "a"}).error().code() == ErrorCode::kUnavailable);
    server->answer(429, "", {{"Retry-After", "soon"}});
    CHECK(client.get(kPods, {"ns", "a"}).error().code() == ErrorCode::kResourceExhausted);
    CHECK(server->requests().size() == 2);
  }
  SECTION("a stop request ends the wait") {
    server->answer(429, "", {{"Retry-After", "3"}});
    std::stop_source stop;
    Result<Json> result = unavailable("not yet");
    std::thread caller([&] { result = client.get(kPods, {"ns", "a"}, stop.get_token()); });
    clock.wait_for_sleepers(1);
    stop.request_stop();
    caller.join();
    CHECK(result.error().code() == ErrorCode::kCancelled);
  }
}

TEST_CASE_METHOD(ClientOfServer,
                 "answers that are no JSON are damaged data and named, lost connections keep their reason") {
  struct Case {
    const char* body;
    const char* want;
  };
  for (const Case& test : {Case{"<html><title>Sign in</title>", "web page 'Sign in'"}, Case{"\x1f\x8b\x08", "gzip"},
                           Case{"", "nothing"}, Case{"soon", "'soon'"}, Case{R"({"kind":"Pod","secret)", "cut off"}}) {
    server->answer(200, test.body);
    const auto damaged = client.get(kPods, {"ns", "a"});
    REQUIRE_FALSE(damaged.ok());
    CHECK(damaged.error().code() == ErrorCode::kDataLoss);
    CHECK_THAT(damaged.error().message(), Catch::Contains(test.want) && !Catch::Contains("secret"));
  }
  server->answer(unavailable("connection refused"));
  const auto refused = client.get(kPods, {"ns", "a"});
  CHECK(refused.error() == Error(ErrorCode::kUnavailable, "get Pod ns/a: connection refused"));
}

TEST_CASE_METHOD(ClientOfServer, "the JSON of another service is no list, and so no empty one") {
  const char* answer = GENERATE(R"({"no":"items"})", R"({"items":[]})", R"({"kind":"PodList","items":[]})",
                                R"({"items":[],"metadata":{"resourceVersion":"5"}})",
                                R"({"kind":"Pod","items":[],"metadata":{"resourceVersion":"5"}})",
                                R"({"kind":"PodList","items":{},"metadata":{"resourceVersion":"5"}})");
  INFO(answer);
  server->answer(200, answer);
  const auto list = client.list(kPods, {});
  REQUIRE_FALSE(list.ok());
  CHECK(list.error().code() == ErrorCode::kDataLoss);
}

TEST_CASE_METHOD(ClientOfServer, "a page of a proxy with status 200 does not count as done") {
  const Json object{{"metadata", {{"name", "a"}}}};
  for (const char* page :
       {"<html>", "[]", "null", R"({"status": 7, "data": []})", R"({"kind": "Status", "code": "503"})"}) {
    INFO(page);
    for (int i = 0; i < 5; ++i) server->answer(200, page);
    CHECK(client.get(kPods, {"ns", "a"}).error().code() == ErrorCode::kDataLoss);
    CHECK(client.create(kPods, "ns", object, "me").error().code() == ErrorCode::kDataLoss);
    CHECK(client.apply(kPods, {"ns", "a"}, object, "me").error().code() == ErrorCode::kDataLoss);
    CHECK(client.merge_patch(kPods, {"ns", "a"}, object, "me").error().code() == ErrorCode::kDataLoss);
    CHECK(client.remove(kPods, {"ns", "a"}).error().code() == ErrorCode::kDataLoss);
  }
}

TEST_CASE_METHOD(ClientOfServer, "a watch hands over its events and ends as the server ends it") {
  std::vector<std::string> seen;
  const auto note = [&](WatchEvent&& event) -> Result<void> {
    CHECK_FALSE(event.object["metadata"].contains("managedFields"));
    seen.push_back(key_of(event.object).name);
    return {};
  };
  const WatchOptions options{"ns", "app=x", "", "42", 400s};

  SECTION("cleanly, with an event split over two reads") {
    const std::string text = event("ADDED", pod("a", 43)) + event("MODIFIED", pod("b", 44));
    server->answer(ScriptedStream{{text.substr(0, 30), text.substr(30)}});
    CHECK(client.watch(kPods, options, note, {}).ok());
    CHECK(seen == std::vector<std::string>{"a", "b"});
    CHECK(asked(0).target ==
          "/api/v1/namespaces/ns/pods?watch=true&allowWatchBookmarks=true&labelSelector=app%3Dx&resourceVersion=42"
          "&timeoutSeconds=400");
  }
  SECTION("in the middle of an event") {
    server->answer(ScriptedStream{{event("ADDED", pod("a", 43)), "{\"type\":"}});
    CHECK(client.watch(kPods, options, note, {}).error().code() == ErrorCode::kUnavailable);
    CHECK(seen == std::vector<std::string>{"a"});
  }
  SECTION("with an ERROR event in a successful answer") {
    server->answer(ScriptedStream{{event("ERROR", status(410, "Expired"))}});
    CHECK(client.watch(kPods, options, note, {}).error().code() == ErrorCode::kGone);
  }
  SECTION("with 410 as the HTTP status") {
    server->answer(410, status(410, "Expired").dump());
    CHECK(client.watch(kPods, options, note, {}).error().code() == ErrorCode::kGone);
  }
  SECTION("with garbage") {
    server->answer(ScriptedStream{{"garbage\n"}});
    CHECK(client.watch(kPods, options, note, {}).error().code() == ErrorCode::kDataLoss);
  }
  SECTION("with a web page that has no line's end") {
    server->answer(ScriptedStream{{"<html><title>Sign in</title>"}});
    const auto ended = client.watch(kPods, options, note, {});
    REQUIRE_FALSE(ended.ok());
    CHECK(ended.error().code() == ErrorCode::kDataLoss);
    CHECK_THAT(ended.error().message(), Catch::Contains("web page 'Sign in'"));
  }
  SECTION("by a lost connection") {
    server->answer(ScriptedStream{{event("ADDED", pod("a", 43))}, ScriptedStream::Ending::kFail});
    CHECK(client.watch(kPods, options, note, {}).error().code() == ErrorCode::kUnavailable);
  }
}

}  // namespace
}  // namespace sluice::kube
