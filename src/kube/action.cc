#include "src/kube/action.h"

#include <utility>

namespace sluice::kube {
namespace {

std::string_view name_of(Verb verb) {
  switch (verb) {
    case Verb::kApply: return "apply";
    case Verb::kApplyStatus: return "apply status of";
    case Verb::kCreate: return "create";
    case Verb::kMergePatch: return "patch";
    case Verb::kDelete: return "delete";
  }
  return "unknown";
}

// The server compares what the body says of these two with the stored object, and refuses (409) what differs.
Json with_preconditions(const Action& action) {
  Json body = action.body;
  if (!action.uid.empty()) body["metadata"]["uid"] = action.uid;
  if (!action.version.empty()) body["metadata"]["resourceVersion"] = action.version;
  return body;
}

}  // namespace

std::string Action::to_string() const {
  std::string text = std::string(name_of(verb)) + " " + std::string(resource.kind) + " " + key.to_string();
  if (!subresource.empty()) text += "/" + subresource;
  return text;
}

Result<Json> perform(const Client& client, const Action& action, std::stop_token stop) {
  const Action& a = action;
  switch (a.verb) {
    case Verb::kApply:
      return client.apply(a.resource, a.key, with_preconditions(a), a.field_manager, a.subresource, stop);
    case Verb::kApplyStatus:
      return client.apply(a.resource, a.key, with_preconditions(a), a.field_manager, "status", stop);
    case Verb::kCreate: {
      Json body = a.body;
      body["metadata"]["name"] = a.key.name;
      return client.create(a.resource, a.key.namespace_, body, a.field_manager, stop);
    }
    case Verb::kMergePatch:
      return client.merge_patch(a.resource, a.key, with_preconditions(a), a.field_manager, a.subresource, stop);
    case Verb::kDelete: {
      const auto removed = client.remove(a.resource, a.key, {.uid = a.uid, .propagation = a.propagation}, stop);
      if (removed.ok() || removed.error().code() == ErrorCode::kNotFound) return Json();
      // With a uid as the only precondition, a conflict means that another incarnation has the name.
      if (!a.uid.empty() && removed.error().code() == ErrorCode::kConflict) return Json();
      return removed.error();
    }
  }
  return internal_error("unknown verb");
}

}  // namespace sluice::kube
