// Writes as data. Reconcile code is a pure function from observed objects to a list of Actions, and does no I/O itself.
// perform() is the one place where they happen. So the same code runs against a fake API server.
#pragma once

#include <stop_token>
#include <string>

#include <nlohmann/json.hpp>

#include "src/base/result.h"
#include "src/kube/client.h"
#include "src/kube/resource.h"

namespace sluice::kube {

enum class Verb { kApply, kApplyStatus, kCreate, kMergePatch, kDelete };

// Thread safety: a value.
struct Action {
  Verb verb = Verb::kApply;
  Resource resource;
  ObjectKey key;
  Json body;                  // kDelete: unused
  std::string field_manager;  // kDelete: unused
  std::string uid;            // not empty: only if the object still is this incarnation (not for kCreate)
  std::string subresource;    // kApply: "" or "resize"; kMergePatch: "", "scale" or "status"
  std::string version;        // not empty: only if the object still has this resourceVersion (patches only)
  Propagation propagation = Propagation::kBackground;  // kDelete: what becomes of the objects that it owns

  // "apply Job a/b"
  std::string to_string() const;
};

// The object as stored; null after a deletion.
// Errors: the client's, Conflict where the object is another one than stated. Deleting an object that is gone, or is
// another incarnation, is success: the work is done.
Result<Json> perform(const Client& client, const Action& action, std::stop_token stop = {});

}  // namespace sluice::kube
