#include "src/kube/status.h"

#include <nlohmann/json.hpp>

#include "src/base/testing/catch.h"

namespace sluice::kube {
namespace {

std::string status_json(int code, const std::string& reason, const std::string& message) {
  return Json{{"kind", "Status"}, {"code", code}, {"reason", reason}, {"message", message}}.dump();
}

TEST_CASE("every HTTP status has the code that tells what to do") {
  struct Case {
    int status;
    const char* reason;
    ErrorCode code;
  };
  const Case cases[] = {
      {400, "BadRequest", ErrorCode::kInvalidArgument},
      {401, "Unauthorized", ErrorCode::kUnauthenticated},
      {403, "Forbidden", ErrorCode::kPermissionDenied},
      {404, "NotFound", ErrorCode::kNotFound},
      {405, "MethodNotAllowed", ErrorCode::kInvalidArgument},
      {409, "AlreadyExists", ErrorCode::kAlreadyExists},
      {409, "Conflict", ErrorCode::kConflict},
      {410, "Expired", ErrorCode::kGone},
      {413, "RequestEntityTooLarge", ErrorCode::kInvalidArgument},
      {415, "UnsupportedMediaType", ErrorCode::kInvalidArgument},
      {422, "Invalid", ErrorCode::kInvalidArgument},
      {429, "TooManyRequests", ErrorCode::kResourceExhausted},
      {500, "InternalError", ErrorCode::kInternal},
      {502, "", ErrorCode::kUnavailable},
      {503, "ServiceUnavailable", ErrorCode::kUnavailable},
      {504, "Timeout", ErrorCode::kDeadlineExceeded},
      {418, "", ErrorCode::kInternal},
  };
  for (const Case& c : cases) {
    INFO(c.status << " " << c.reason);
    const Error error = error_of_response("get Pod a/b", c.status, status_json(c.status, c.reason, "because"));
    CHECK(error.code() == c.code);
    CHECK(error.message() == "get Pod a/b: because");
  }
}

TEST_CASE("an invalid object's fields are named") {
  const Json status{
      {"code", 422},
      {"message", "Pod \"x\" is invalid"},
      {"details",
       {{"causes",
         {{{"field", "spec.containers"}, {"message", "Required value"}, {"reason", "FieldValueRequired"}}}}}}};
  CHECK(error_of_status("apply", status).message() == "apply: Pod \"x\" is invalid; spec.containers: Required value");
}

TEST_CASE("a webhook that denies refuses, whatever the code that it chose") {
  struct Case {
    int http_status;
    const char* reason;
    ErrorCode want;
  };
  const Case test =
      GENERATE(Case{400, "", ErrorCode::kInvalidArgument}, Case{403, "Forbidden", ErrorCode::kPermissionDenied},
               Case{404, "NotFound", ErrorCode::kInvalidArgument}, Case{404, "", ErrorCode::kInvalidArgument},
               Case{409, "Conflict", ErrorCode::kInvalidArgument},
               Case{409, "AlreadyExists", ErrorCode::kInvalidArgument}, Case{410, "Gone", ErrorCode::kInvalidArgument},
               Case{429, "TooManyRequests", ErrorCode::kResourceExhausted}, Case{500, "", ErrorCode::kInternal});
  INFO(test.http_status << " " << test.reason);
  const std::string denial =
      status_json(test.http_status, test.reason, "admission webhook \"a.example\" denied the request: no such team");
  const Error error = error_of_response("create Pod a/b", test.http_status, denial);
  CHECK(error.code() == test.want);
  CHECK_THAT(error.message(), Catch::Contains("no such team"));
}

TEST_CASE("a resource version that the server has not reached asks for a new list") {
  const Json status{{"code", 504},
                    {"message", "Timeout: Too large resource version"},
                    {"details", {{"causes", {{{"reason", "ResourceVersionTooLarge"}, {"message", "x"}}}}}}};
  CHECK(error_of_status("list", status).code() == ErrorCode::kGone);
}

TEST_CASE("another incarnation's uid is a conflict, whatever the server calls it") {
  const Json status{{"code", 422},
                    {"reason", "Invalid"},
                    {"message", "metadata.uid: Invalid value: field is immutable"},
                    {"details", {{"causes", {{{"reason", "FieldValueInvalid"}, {"field", "metadata.uid"}}}}}}};
  CHECK(error_of_status("apply", status).code() == ErrorCode::kConflict);
}

TEST_CASE("answers that are no Status are quoted, in part") {
  CHECK(error_of_response("x", 503, "no healthy upstream").message() == "x: HTTP status 503 'no healthy upstream'");
  CHECK(error_of_response("x", 500, "").message() == "x: HTTP status 500");
  CHECK(error_of_response("x", 500, std::string(100000, 'a')).message().size() < 1000);
  CHECK(error_of_status("x", Json{{"details", {{"causes", {1, "a"}}}}}).code() == ErrorCode::kInternal);
}

TEST_CASE("only the API server tells that an object is absent, taken or changed") {
  struct Case {
    int status;
    std::string body;
    ErrorCode code;
  };
  const Case cases[] = {
      {404, status_json(404, "NotFound", "pods \"a\" not found"), ErrorCode::kNotFound},
      {404, "404 page not found\n", ErrorCode::kNotFound},  // of a kind that is not installed
      {404, "<html>404 Not Found</html>", ErrorCode::kUnavailable},
      {404, "", ErrorCode::kUnavailable},
      {404, "[1]", ErrorCode::kUnavailable},
      {404, R"({"kind": "Status", "message": "a route is missing"})", ErrorCode::kUnavailable},
      {409, "<html>", ErrorCode::kUnavailable},
      {410, "gone", ErrorCode::kUnavailable},
  };
  for (const Case& c : cases) {
    INFO(c.status << " " << c.body);
    CHECK(error_of_response("delete Pod a/b", c.status, c.body).code() == c.code);
  }
}

}  // namespace
}  // namespace sluice::kube
