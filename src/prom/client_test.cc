#include "src/prom/client.h"

#include <nlohmann/json.hpp>

#include "src/base/testing/catch.h"
#include "src/http/testing/scripted_transport.h"

namespace sluice::prom {
namespace {

using http::testing::ScriptedTransport;

struct Fixture {
  std::shared_ptr<ScriptedTransport> server = std::make_shared<ScriptedTransport>();
  Client client{server};
};

TEST_CASE_METHOD(Fixture, "a vector's samples come with their labels; what is no number is absent with the reason") {
  server->answer(200, R"({"status":"success","data":{"resultType":"vector","result":[
    {"metric":{"training_job":"a","rank":"0"},"value":[1767225600.123,"812.5"]},
    {"metric":{"training_job":"b"},"value":[1767225600.123,"0"]},
    {"metric":{"training_job":"c"},"value":[1767225600.123,"NaN"]},
    {"metric":{"training_job":"d"},"value":[1767225600.123,"+Inf"]},
    {"metric":{"training_job":"e"},"value":[1767225600.123,"-Inf"]}]},"warnings":["partial"]})");
  const auto answer = client.query("sum(rate(x[1m])) by (job)");
  REQUIRE(answer.ok());
  REQUIRE(answer->samples.size() == 2);
  CHECK(answer->samples[0].labels == Labels{{"training_job", "a"}, {"rank", "0"}});
  CHECK(answer->samples[0].value == 812.5);
  CHECK(answer->samples[0].timestamp_seconds == 1767225600.123);
  CHECK(answer->samples[1].value == 0.0);
  REQUIRE(answer->absent.size() == 3);
  CHECK(answer->absent[0].labels == Labels{{"training_job", "c"}});
  CHECK(answer->absent[0].reason == "NaN");
  CHECK(answer->absent[1].reason == "+Inf");
  CHECK(answer->absent[2].reason == "-Inf");
  CHECK(answer->warnings == std::vector<std::string>{"partial"});
  CHECK(server->requests().at(0).target ==
        "/api/v1/query?query=sum%28rate%28x%5B1m%5D%29%29%20by%20%28job%29&timeout=5000ms");
}

TEST_CASE_METHOD(Fixture, "the server hears of the shorter of the client's patience and the caller's") {
  struct Case {
    std::chrono::milliseconds timeout;
    const char* want;
  };
  for (const Case& test :
       {Case{std::chrono::seconds(2), "timeout=2000ms"}, Case{std::chrono::hours(1), "timeout=5000ms"}}) {
    server->answer(200, R"({"status":"success","data":{"resultType":"vector","result":[]}})");
    CHECK(client.query("x", {}, test.timeout).ok());
    CHECK_THAT(server->requests().back().target, Catch::EndsWith(test.want));
  }
}

TEST_CASE_METHOD(Fixture, "an error page in Latin-1, cut in the middle, becomes an error in UTF-8") {
  server->answer(500,
                 "<html>\xFC"
                 "berlastet \xE2\x82");
  const auto answer = client.query("x");
  REQUIRE_FALSE(answer.ok());
  CHECK_NOTHROW(nlohmann::json(answer.error().message()).dump());
}

TEST_CASE_METHOD(Fixture, "nothing is an answer, and a scalar is a sample without labels") {
  server->answer(200, R"({"status":"success","data":{"resultType":"vector","result":[]}})");
  const auto empty = client.query("x");
  REQUIRE(empty.ok());
  CHECK(empty->samples.empty());
  CHECK(empty->absent.empty());

  server->answer(200, R"({"status":"success","data":{"resultType":"scalar","result":[1.5,"42"]}})");
  const auto scalar = client.query("42");
  REQUIRE(scalar.ok());
  CHECK(scalar->samples.at(0).value == 42);
  CHECK(scalar->samples.at(0).labels.empty());
}

TEST_CASE_METHOD(Fixture, "every way to fail has its own code") {
  struct Case {
    const char* why;
    ScriptedTransport::Answer answer;
    ErrorCode code;
  };
  const auto response = [](int status, const char* body) { return http::Response{status, {}, body}; };
  const Case cases[] = {
      {"no server there", unavailable("connection refused"), ErrorCode::kUnavailable},
      {"no answer", Error(ErrorCode::kDeadlineExceeded, "no answer in time"), ErrorCode::kDeadlineExceeded},
      {"bad expression", response(400, R"({"status":"error","errorType":"bad_data","error":"parse error"})"),
       ErrorCode::kInvalidArgument},
      {"gave up", response(503, R"({"status":"error","errorType":"timeout","error":"query timed out"})"),
       ErrorCode::kDeadlineExceeded},
      {"engine", response(422, R"({"status":"error","errorType":"execution","error":"many-to-many"})"),
       ErrorCode::kInternal},
      {"error in a 200", response(200, R"({"status":"error","errorType":"bad_data","error":"x"})"),
       ErrorCode::kInvalidArgument},
      {"starting up", response(503, "Service Unavailable"), ErrorCode::kUnavailable},
      {"proxy", response(502, "<html>"), ErrorCode::kUnavailable},
      {"no credentials", response(401, ""), ErrorCode::kUnauthenticated},
      {"not allowed", response(403, ""), ErrorCode::kPermissionDenied},
      {"wrong place", response(404, "404 page not found"), ErrorCode::kInternal},
      {"no JSON", response(200, "<html>"), ErrorCode::kDataLoss},
      {"cut off", response(200, R"({"status":"success","data":{"resultTy)"), ErrorCode::kDataLoss},
      {"no status", response(200, "{}"), ErrorCode::kDataLoss},
      {"no data", response(200, R"({"status":"success"})"), ErrorCode::kDataLoss},
      {"no result", response(200, R"({"status":"success","data":{"resultType":"vector"}})"), ErrorCode::kDataLoss},
      {"no number",
       response(200, R"({"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"x"]}]}})"),
       ErrorCode::kDataLoss},
      {"empty number",
       response(200, R"({"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,""]}]}})"),
       ErrorCode::kDataLoss},
      {"number as a number",
       response(200, R"({"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,2]}]}})"),
       ErrorCode::kDataLoss},
      {"a label that is no text",
       response(200,
                R"({"status":"success","data":{"resultType":"vector","result":[{"metric":{"a":1},"value":[1,"2"]}]}})"),
       ErrorCode::kDataLoss},
      {"a series that is none", response(200, R"({"status":"success","data":{"resultType":"vector","result":[7]}})"),
       ErrorCode::kDataLoss},
      {"a matrix", response(200, R"({"status":"success","data":{"resultType":"matrix","result":[]}})"),
       ErrorCode::kInvalidArgument},
  };
  for (const Case& c : cases) {
    INFO(c.why);
    server->answer(c.answer);
    const auto answer = client.query("x");
    REQUIRE_FALSE(answer.ok());
    CHECK(answer.error().code() == c.code);
    CHECK_THAT(answer.error().message(), Catch::Contains("Prometheus"));
  }
}

TEST_CASE_METHOD(Fixture, "a proxy in front of Prometheus is named in words") {
  struct Case {
    http::Response answer;
    ErrorCode code;
    std::vector<const char*> words;
  };
  const char* login = "<html><head><title>Sign in</title></head></html>";
  const Case cases[] = {
      {{401, {}, ""}, ErrorCode::kUnauthenticated, {"401", "wants credentials"}},
      {{403, {}, "denied"}, ErrorCode::kPermissionDenied, {"403", "not allowed to query", "'denied'"}},
      {{404, {}, "404 page not found"}, ErrorCode::kInternal, {"path of the URL"}},
      {{302, {{"location", "https://login.example/?to=x"}}, ""},
       ErrorCode::kUnauthenticated,
       {"302", "'https://login.example/?to=x'", "login page"}},
      {{301, {}, ""}, ErrorCode::kUnauthenticated, {"301 leads to ''"}},
      {{502, {}, "<html><title>502 Bad Gateway</title>"}, ErrorCode::kUnavailable, {"web page '502 Bad Gateway'"}},
      {{200, {}, login}, ErrorCode::kDataLoss, {"web page 'Sign in'", "a proxy or a login page"}},
      {{200, {}, ""}, ErrorCode::kDataLoss, {"nothing"}},
      {{200, {}, "</title><title>"}, ErrorCode::kDataLoss, {"'</title><title>'"}},
  };
  for (const Case& c : cases) {
    INFO(c.words.front());
    server->answer(c.answer);
    const auto answer = client.query("x");
    REQUIRE_FALSE(answer.ok());
    CHECK(answer.error().code() == c.code);
    for (const char* word : c.words) CHECK_THAT(answer.error().message(), Catch::Contains(word));
  }
}

TEST_CASE_METHOD(Fixture, "a stop request is not an answer") {
  std::stop_source stop;
  stop.request_stop();
  CHECK(client.query("x", stop.get_token()).error().code() == ErrorCode::kCancelled);
}

}  // namespace
}  // namespace sluice::prom
