#include "src/object_store/identity.h"

#include "src/base/testing/catch.h"
#include "src/object_store/shared_credentials.h"
#include "src/object_store/testing/fake_network.h"

namespace sluice::object_store {
namespace {

using testing::FakeNetwork;
using Files = std::map<std::string, std::string>;

// The credentials of the moment, by their key; "none"; "error: ..."; "" where nothing is told yet.
struct PodWithIdentity {
  explicit PodWithIdentity(Environment variables, Files on_disk = {})
      : environment(std::make_shared<const Environment>(std::move(variables))),
        files(std::move(on_disk)),
        network(clock),
        identity(network, clock, [this](const std::string& path) -> Result<std::string> {
          const auto found = files.find(path);
          return found == files.end() ? Result<std::string>(not_found(path)) : found->second;
        }) {}

  std::shared_ptr<std::string> ask(const Credentials* refused = nullptr) {
    auto told = std::make_shared<std::string>();
    identity.credentials(environment, refused, [told](const Result<std::optional<Credentials>>& known) {
      *told = !known.ok() ? "error: " + known.error().message()
                          : (*known ? (*known)->key_id + "/" + (*known)->token : "none");
    });
    return told;
  }

  void answer(std::string_view body, int status = 200) {
    network.answer(HttpAnswer{status, "Words", {}, {body.begin(), body.end()}});
  }

  std::shared_ptr<const Environment> environment;
  Files files;
  sluice::testing::ManualClock clock;  // from 2026-01-01T00:00:00Z on
  FakeNetwork network;
  Identity identity;
};

const Environment kRole{{"AWS_ROLE_ARN", "arn:a/b"}, {"AWS_WEB_IDENTITY_TOKEN_FILE", "/token"}, {"AWS_REGION", "eu-1"}};
const Environment kAgent{{"AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://169.254.170.23/v1"},
                         {"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "/token"}};
const Files kToken{{"/token", "the-token\n"}};

std::string session(const std::string& key, const std::string& ends) {
  return "<R><Credentials><AccessKeyId>" + key +
         "</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken><Expiration>" + ends +
         "</Expiration></Credentials></R>";
}

TEST_CASE("credentials are the first that there are") {
  const Files file{{"/shared", "[default]\naws_access_key_id = FILE\naws_secret_access_key = s\n"}};
  CHECK(*PodWithIdentity({}).ask() == "none");
  CHECK(*PodWithIdentity({{"AWS_ACCESS_KEY_ID", "ID"},
                          {"AWS_SECRET_ACCESS_KEY", "s"},
                          {"AWS_SESSION_TOKEN", "t"},
                          {"AWS_SHARED_CREDENTIALS_FILE", "/shared"}},
                         file)
             .ask() == "ID/t");
  CHECK(*PodWithIdentity({{"AWS_ACCESS_KEY_ID", "ID"}, {"AWS_SHARED_CREDENTIALS_FILE", "/shared"}}, file).ask() ==
        "FILE/");
  CHECK(*PodWithIdentity({{"AWS_SHARED_CREDENTIALS_FILE", "/shared"}, {"AWS_PROFILE", "other"}}, file).ask() == "none");
  CHECK(*PodWithIdentity({{"AWS_SHARED_CREDENTIALS_FILE", "/missing"}}, file).ask() == "none");
  Environment all = kRole;
  all.insert(kAgent.begin(), kAgent.end());
  all["AWS_SHARED_CREDENTIALS_FILE"] = "/shared";
  PodWithIdentity site(all, {{"/shared", file.at("/shared")}, {"/token", "the-token"}});
  site.ask();
  REQUIRE(site.network.pending.size() == 1);
  CHECK(site.network.pending[0].request.target.authority == "sts.eu-1.amazonaws.com");
}

TEST_CASE("a role's session is bought with the token, and renewed before it ends") {
  PodWithIdentity site(kRole, kToken);
  const auto first = site.ask(), second = site.ask();
  REQUIRE(site.network.pending.size() == 1);
  const HttpRequest& request = site.network.pending[0].request;
  CHECK(request.method == "POST");
  CHECK(request.target.path == "/");
  CHECK(request.body ==
        "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn=arn%3Aa%2Fb&RoleSessionName=sluice&"
        "WebIdentityToken=the-token");
  site.answer(session("ONE", "2026-01-01T01:00:00Z"));
  CHECK(*first == "ONE/t");
  CHECK(*second == "ONE/t");

  site.clock.advance(std::chrono::minutes(47));
  CHECK(*site.ask() == "ONE/t");
  CHECK(site.network.pending.empty());
  site.clock.advance(std::chrono::minutes(2));
  CHECK(*site.ask() == "ONE/t");  // while it is renewed
  REQUIRE(site.network.pending.size() == 1);
  site.answer("<Error/>", 503);
  CHECK(*site.ask() == "ONE/t");
  CHECK(site.network.pending.empty());  // not again at once
  site.clock.advance(std::chrono::seconds(31));
  site.ask();
  site.answer(session("TWO", "2026-01-01T03:00:00.5+01:00"));
  CHECK(*site.ask() == "TWO/t");

  site.clock.advance(std::chrono::hours(2));
  const auto late = site.ask();
  CHECK(late->empty());  // it has ended
  site.answer(session("THREE", "2026-01-01T08:00:00Z"));
  CHECK(*late == "THREE/t");
}

TEST_CASE("credentials that a store calls expired are bought anew") {
  PodWithIdentity site(kRole, kToken);
  site.ask();
  site.answer(session("ONE", "2026-01-01T01:00:00Z"));
  const Credentials refused{"ONE", "s", "t"};
  const auto told = site.ask(&refused);
  CHECK(told->empty());
  site.answer(session("TWO", "2026-01-01T01:00:00Z"));
  CHECK(*told == "TWO/t");
  CHECK(*site.ask(&refused) == "TWO/t");
}

TEST_CASE("an agent of the node hands credentials out for its token") {
  PodWithIdentity site(kAgent, kToken);
  const auto told = site.ask();
  REQUIRE(site.network.pending.size() == 1);
  CHECK(site.network.pending[0].request.target.path == "/v1");
  CHECK(site.network.pending[0].request.headers.back() ==
        std::pair<std::string, std::string>("Authorization", "the-token"));
  site.answer(R"({"AccessKeyId": "A", "SecretAccessKey": "s", "Token": "t", "Expiration": "2026-01-01T06:00:00Z"})");
  CHECK(*told == "A/t");
}

TEST_CASE("why no credentials are lent, without a secret") {
  const auto refusal = [](Environment environment, const Files& files, int status, const char* body) {
    PodWithIdentity site(std::move(environment), files);
    const auto told = site.ask();
    if (!site.network.pending.empty()) site.answer(body, status);
    CHECK_THAT(*told, !Catch::Contains("the-token"));
    return *told;
  };
  CHECK_THAT(refusal(kRole, {}, 200, ""),
             Catch::Contains("AWS_WEB_IDENTITY_TOKEN_FILE names /token, which cannot be read"));
  CHECK_THAT(refusal(kRole, {{"/token", "a\nb"}}, 200, ""), Catch::Contains("cannot be read"));
  CHECK_THAT(refusal(kRole, kToken, 403, "<Code>AccessDenied</Code> the-token"),
             Catch::Contains("sts.eu-1.amazonaws.com, for role arn:a/b, refuses: 403 Words (AccessDenied)"));
  CHECK_THAT(refusal(kRole, kToken, 200, "<AccessKeyId>A</AccessKeyId>"),
             Catch::Contains("answers without AccessKeyId"));
  CHECK_THAT(refusal(kAgent, kToken, 200, "[1]"), Catch::Contains("answers without AccessKeyId"));
  CHECK_THAT(refusal(kAgent, kToken, 200, R"({"AccessKeyId": 1, "SecretAccessKey": "s", "Expiration": "soon"})"),
             Catch::Contains("answers without"));
  Environment far = kAgent;
  far["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = "http://192.0.2.1/v1";
  CHECK_THAT(refusal(far, kToken, 200, ""),
             Catch::Contains("names 192.0.2.1 without TLS, which is no agent of this node"));
  far["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = "http://me:the-token@localhost/v1";
  CHECK_THAT(refusal(far, kToken, 200, ""), Catch::Contains("is not http(s)://HOST"));
}

TEST_CASE("the shared file of credentials as the tools of S3 write it") {
  const std::string text =
      "# mine\n; and\n[a]\naws_access_key_id=A\nAWS_SECRET_ACCESS_KEY : s=1 \naws_session_token = t\ns3 =\n  max = "
      "3\n\n[b]\naws_access_key_id = B\n"
      "[c]\r\naws_access_key_id = C\r\naws_secret_access_key = s\r\n";
  CHECK(*credentials_in(text, "a") == Credentials{"A", "s=1", "t"});
  CHECK_FALSE(credentials_in(text, "b")->has_value());
  CHECK(*credentials_in(text, "c") == Credentials{"C", "s", ""});
  CHECK_FALSE(credentials_in(text, "d")->has_value());
  CHECK_FALSE(credentials_in("", "a")->has_value());
  for (const char* damaged : {"secret", "a = b", "[a]\nsecret", "[a]\n= b"}) {
    CAPTURE(damaged);
    REQUIRE_FALSE(credentials_in(damaged, "a").ok());
    CHECK_THAT(credentials_in(damaged, "a").error().message(), !Catch::Contains("secret"));
  }
  CHECK(*PodWithIdentity({{"AWS_SHARED_CREDENTIALS_FILE", "/f"}}, {{"/f", "secret"}}).ask() ==
        "error: /f is no file of credentials");
}

}  // namespace
}  // namespace sluice::object_store
