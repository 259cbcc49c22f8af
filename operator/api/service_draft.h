// A Service that gives names to the pods of a job, and no address of its own (headless).
#pragma once

#include <string_view>

#include "operator/api/labels.h"
#include "operator/api/object_draft.h"

namespace sluice::api {

// Fields that are at their defaults are left out: the API server drops some, and they would never compare equal.
//
// Thread safety: none; one owner.
class ServiceDraft : public ObjectDraft {
 public:
  ServiceDraft(std::string_view name_space, std::string_view name) : ObjectDraft(kube::kServices, name_space, name) {
    spec()["clusterIP"] = "None";
  }

  void select_pods_of(std::string_view job, std::string_view component) {
    spec()["selector"] = labels_of(job, component);
  }
  // Pods have names before they are ready, too.
  void name_unready_pods() { spec()["publishNotReadyAddresses"] = true; }
  // `target`: the pods' port, by its number or its name.
  void add_port(std::string_view name, int port, const nlohmann::json& target) {
    spec()["ports"].push_back({{"name", name}, {"port", port}, {"targetPort", target}, {"protocol", "TCP"}});
  }
};

}  // namespace sluice::api
