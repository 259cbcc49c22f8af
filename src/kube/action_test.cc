#include "src/kube/action.h"

#include "src/base/testing/catch.h"
#include "src/base/testing/manual_clock.h"
#include "src/http/testing/scripted_transport.h"
#include "src/kube/testing/objects.h"

namespace sluice::kube {
namespace {

using http::testing::ScriptedTransport;

struct ActionsOnServer {
  std::shared_ptr<ScriptedTransport> server = std::make_shared<ScriptedTransport>();
  sluice::testing::ManualClock clock;
  Client client{server, clock};
};

TEST_CASE_METHOD(ActionsOnServer, "each verb is the request it names") {
  struct Case {
    Verb verb;
    const char* method;
    const char* target;
    const char* text;
  };
  const Case cases[] = {
      {Verb::kApply, "PATCH", "/api/v1/namespaces/ns/services/s?fieldManager=m&force=true&fieldValidation=Strict",
       "apply Service ns/s"},
      {Verb::kApplyStatus, "PATCH",
       "/api/v1/namespaces/ns/services/s/status?fieldManager=m&force=true&fieldValidation=Strict",
       "apply status of Service ns/s"},
      {Verb::kCreate, "POST", "/api/v1/namespaces/ns/services?fieldManager=m&fieldValidation=Strict",
       "create Service ns/s"},
      {Verb::kMergePatch, "PATCH", "/api/v1/namespaces/ns/services/s?fieldManager=m", "patch Service ns/s"},
      {Verb::kDelete, "DELETE", "/api/v1/namespaces/ns/services/s", "delete Service ns/s"},
  };
  for (std::size_t i = 0; i < std::size(cases); ++i) {
    const Action action{cases[i].verb, kServices, {"ns", "s"}, Json::object(), "m"};
    INFO(action.to_string());
    server->answer(200, R"({"kind": "Service"})");
    CHECK(perform(client, action).ok());
    CHECK(server->requests().at(i).method == cases[i].method);
    CHECK(server->requests().at(i).target == cases[i].target);
    CHECK(action.to_string() == cases[i].text);
  }
  CHECK(Json::parse(server->requests().at(2).body)["metadata"]["name"] == "s");
}

TEST_CASE_METHOD(ActionsOnServer, "a uid is a precondition wherever the API has one") {
  for (const Verb verb : {Verb::kApply, Verb::kApplyStatus, Verb::kMergePatch}) {
    server->answer(200, R"({"kind": "Pod"})");
    CHECK(perform(client, {verb, kPods, {"ns", "p"}, Json::object(), "m", "u1"}).ok());
    CHECK(Json::parse(server->requests().back().body)["metadata"]["uid"] == "u1");
  }
  server->answer(200, R"({"kind": "Pod"})");
  CHECK(perform(client, {Verb::kDelete, kPods, {"ns", "p"}, {}, "", "u1"}).ok());
  CHECK(Json::parse(server->requests().back().body)["preconditions"]["uid"] == "u1");
}

TEST_CASE_METHOD(ActionsOnServer, "a version is a precondition of every patch") {
  for (const Verb verb : {Verb::kApply, Verb::kApplyStatus, Verb::kMergePatch}) {
    server->answer(409, testing::status(409, "Conflict").dump());
    CHECK(perform(client, {verb, kPods, {"ns", "p"}, Json::object(), "m", "u1", "", "17"}).error().code() ==
          ErrorCode::kConflict);
    const Json metadata = Json::parse(server->requests().back().body)["metadata"];
    CHECK(metadata["uid"] == "u1");
    CHECK(metadata["resourceVersion"] == "17");
  }
}

TEST_CASE_METHOD(ActionsOnServer, "a patch may name a subresource") {
  server->answer(200, R"({"kind": "DataWorkerPool"})");
  const Action action{Verb::kMergePatch, kDataWorkerPools, {"ns", "p"}, Json::object(), "m", "", "status"};
  CHECK(perform(client, action).ok());
  CHECK_THAT(server->requests().back().target, Catch::Contains("/dataworkerpools/p/status?"));
  CHECK(action.to_string() == "patch DataWorkerPool ns/p/status");
}

TEST_CASE_METHOD(ActionsOnServer, "an apply may name a subresource") {
  server->answer(200, R"({"kind": "Pod"})");
  Action action{Verb::kApply, kPods, {"ns", "p"}, Json::object(), "m", "u1"};
  action.subresource = "resize";
  CHECK(perform(client, action).ok());
  CHECK(server->requests().back().target ==
        "/api/v1/namespaces/ns/pods/p/resize?fieldManager=m&force=true&fieldValidation=Strict");
  CHECK(action.to_string() == "apply Pod ns/p/resize");
}

TEST_CASE_METHOD(ActionsOnServer, "deleting an object that is gone, or is another one by now, succeeds") {
  const Action with_uid{Verb::kDelete, kPods, {"ns", "p"}, {}, "", "u1"};
  const Action by_name{Verb::kDelete, kPods, {"ns", "p"}};
  server->answer(404, testing::status(404, "NotFound").dump());
  CHECK(perform(client, with_uid).ok());
  server->answer(409, testing::status(409, "Conflict").dump());
  CHECK(perform(client, with_uid).ok());
  server->answer(409, testing::status(409, "Conflict").dump());
  CHECK(perform(client, by_name).error().code() == ErrorCode::kConflict);
  server->answer(403, testing::status(403, "Forbidden").dump());
  CHECK(perform(client, with_uid).error().code() == ErrorCode::kPermissionDenied);
}

TEST_CASE_METHOD(ActionsOnServer, "a deletion says what becomes of what the object owns") {
  Action action{Verb::kDelete, kJobs, {"ns", "j"}};
  for (const auto& [propagation, name] :
       {std::pair{Propagation::kBackground, "Background"}, std::pair{Propagation::kForeground, "Foreground"}}) {
    action.propagation = propagation;
    server->answer(200, R"({"kind": "Job"})");
    CHECK(perform(client, action).ok());
    CHECK(Json::parse(server->requests().back().body)["propagationPolicy"] == name);
  }
}

}  // namespace
}  // namespace sluice::kube
