#include "operator/api/security_context.h"

#include <nlohmann/json.hpp>

#include "src/base/testing/catch.h"

namespace sluice::api {
namespace {

using nlohmann::json;

TEST_CASE("a container keeps its user and loses its privileges") {
  const json kept = hardened(json::parse(R"({"runAsUser":1000,"privileged":true,"procMount":"Unmasked",
      "capabilities":{"add":["SYS_ADMIN"]},"seccompProfile":{"type":"Localhost"}})"));
  CHECK(kept == json::parse(R"({"runAsUser":1000,"allowPrivilegeEscalation":false,"readOnlyRootFilesystem":true,
      "capabilities":{"drop":["ALL"]},"seccompProfile":{"type":"Localhost"}})"));
  CHECK(hardened(json())["seccompProfile"]["type"] == "RuntimeDefault");
}

TEST_CASE("a pod hands no file of the data set to its group anew, unless its user says so") {
  CHECK(hardened_pod(json::parse(R"({"fsGroup":5,"sysctls":[]})")) ==
        json::parse(R"({"fsGroup":5,"fsGroupChangePolicy":"OnRootMismatch",
                        "seccompProfile":{"type":"RuntimeDefault"}})"));
  CHECK(hardened_pod(json::parse(R"({"fsGroup":5,"fsGroupChangePolicy":"Always"})"))["fsGroupChangePolicy"] ==
        "Always");
  CHECK_FALSE(hardened_pod(json()).contains("fsGroupChangePolicy"));
}

TEST_CASE("a container of our own is no root") {
  CHECK(restricted(7)["runAsUser"] == 7);
  CHECK_FALSE(restricted(std::nullopt).contains("runAsUser"));
  for (const auto& user : {std::optional<std::int64_t>(7), std::optional<std::int64_t>()})
    CHECK(restricted(user)["runAsNonRoot"] == true);
}

TEST_CASE("a security context names a user, or none") {
  CHECK(run_as_user(json::parse(R"({"runAsUser":1000})")) == 1000);
  for (const char* none : {"null", "{}", R"({"runAsUser":"root"})"}) CHECK(run_as_user(json::parse(none)) == 0);
}

}  // namespace
}  // namespace sluice::api
