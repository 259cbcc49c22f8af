#include "src/kube/fake/reply.h"

namespace sluice::kube::fake {

Reply refuse(int status, const std::string& reason, const std::string& message, const std::vector<Violation>& causes) {
  Json body = {{"kind", "Status"},    {"apiVersion", "v1"}, {"metadata", Json::object()},
               {"status", "Failure"}, {"message", message}, {"reason", reason},
               {"code", status}};
  for (const Violation& cause : causes)
    body["details"]["causes"].push_back({{"reason", cause.reason}, {"message", cause.message}, {"field", cause.field}});
  return {status, std::make_shared<const Json>(std::move(body))};
}

Reply no_such_object(const Kind& kind, const std::string& name) {
  return refuse(404, "NotFound", kind.qualified_plural() + " \"" + name + "\" not found");
}

Reply name_is_taken(const Kind& kind, const std::string& name) {
  return refuse(409, "AlreadyExists", kind.qualified_plural() + " \"" + name + "\" already exists");
}

Reply out_of_date(const Kind& kind, const std::string& name, const std::string& why) {
  return refuse(409, "Conflict",
                "Operation cannot be fulfilled on " + kind.qualified_plural() + " \"" + name + "\": " + why);
}

Reply invalid_object(const Kind& kind, const std::string& name, const std::vector<Violation>& causes) {
  std::string all;
  for (const Violation& cause : causes) all += (all.empty() ? "" : ", ") + cause.field + ": " + cause.message;
  if (causes.size() > 1) all = "[" + all + "]";
  const std::string subject = kind.group.empty() ? kind.name : kind.name + "." + kind.group;
  return refuse(422, "Invalid", subject + " \"" + name + "\" is invalid: " + all, causes);
}

Reply history_expired(const std::string& message) { return refuse(410, "Expired", message); }

}  // namespace sluice::kube::fake
