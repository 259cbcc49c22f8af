#include "operator/api/security_context.h"

#include <nlohmann/json.hpp>

#include "operator/api/fields.h"

namespace sluice::api {

using nlohmann::json;

namespace {

// What every one of them has.
void set_seccomp_profile(json& security) {
  if (field(security, "/seccompProfile").is_null()) security["seccompProfile"] = {{"type", "RuntimeDefault"}};
}

void restrict_container(json& security) {
  security["allowPrivilegeEscalation"] = false;
  security["readOnlyRootFilesystem"] = true;
  security["capabilities"] = {{"drop", {"ALL"}}};
  set_seccomp_profile(security);
}

}  // namespace

json hardened(json security) {
  if (!security.is_object()) security = json::object();
  security.erase("privileged");
  security.erase("procMount");
  // runAsNonRoot is not forced: the executor must be the trainer's user to read its files, and an image whose user is
  // root would not start. Where the pod has to pass "restricted", the user has said runAsNonRoot, and it is inherited.
  restrict_container(security);
  return security;
}

json hardened_pod(json security) {
  if (!security.is_object()) security = json::object();
  security.erase("sysctls");
  // Or each worker would give every file of the data set to the group before it starts.
  if (security.contains("fsGroup") && !security.contains("fsGroupChangePolicy"))
    security["fsGroupChangePolicy"] = "OnRootMismatch";
  set_seccomp_profile(security);
  return security;
}

json restricted(std::optional<std::int64_t> user) {
  json security = {{"runAsNonRoot", true}};
  if (user) security["runAsUser"] = *user;
  restrict_container(security);
  return security;
}

std::int64_t run_as_user(const json& security_context) { return integer_field(security_context, "/runAsUser"); }

}  // namespace sluice::api
