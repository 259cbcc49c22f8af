// The spec of a pod as the operator writes it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "operator/api/container_draft.h"
#include "operator/api/object_draft.h"

namespace sluice::api {

// A writer of one pod spec: a new one, or one of the user's to which something is added.
//
// Thread safety: none; one owner. REQUIRES: the JSON value outlives its writer.
class PodSpecDraft {
 public:
  explicit PodSpecDraft(nlohmann::json& spec) : spec_(&spec) {}

  void add_container(nlohmann::json container) { list("containers").push_back(std::move(container)); }
  // After those that are there.
  void add_init_container(nlohmann::json container) { list("initContainers").push_back(std::move(container)); }
  // REQUIRES: there are more than `index`
  ContainerDraft container(std::size_t index) { return ContainerDraft(list("containers")[index]); }
  // Among the containers or the init containers. Null: there is none of this name.
  nlohmann::json* find_container(std::string_view name);
  const nlohmann::json& spec() const { return *spec_; }
  void add_volume(nlohmann::json volume) { list("volumes").push_back(std::move(volume)); }
  void add_empty_volume(std::string_view name);
  void add_secret_volume(std::string_view name, std::string_view secret);
  // Of two files: "token", of the pod's service account for `audience` alone, and "ca.crt", that entry of the Secret. A
  // pod starts without the second one where the Secret has no such entry.
  void add_token_volume(std::string_view name, std::string_view audience, std::string_view secret,
                        std::string_view authorities);
  void add_pull_secret(const std::string& name);  // if it is not there

  // Of the pod as a whole (KEP-2837).
  void set_request(const char* resource, std::string_view amount) {
    (*spec_)["resources"]["requests"][resource] = amount;
  }
  void set_restart_policy(std::string_view policy) { (*spec_)["restartPolicy"] = policy; }
  void set_grace_seconds(int seconds) { (*spec_)["terminationGracePeriodSeconds"] = seconds; }
  void set_security_context(nlohmann::json context) { (*spec_)["securityContext"] = std::move(context); }
  void set_priority_class(std::string_view name) { (*spec_)["priorityClassName"] = name; }
  void set_node_selector(nlohmann::json selector) { (*spec_)["nodeSelector"] = std::move(selector); }
  // Keeps it off nodes on which programs of this image do not start, unless the pod says where it runs.
  // Where the pod does not say other nodes itself.
  void pin_to_platform(std::string_view architecture);
  // The pod's scheduler takes this node where it can, unless the pod says itself which nodes it prefers.
  void prefer_node(std::string_view node);
  void set_tolerations(nlohmann::json tolerations) { (*spec_)["tolerations"] = std::move(tolerations); }
  // The pods are named in this Service. A hostname of the user's would be the same for all of them.
  void join_service(std::string_view name);
  // Asks the cluster's name server, although the pod is on its node's network.
  void resolve_services_on_host_network() { (*spec_)["dnsPolicy"] = "ClusterFirstWithHostNet"; }
  // No token for the API server, and no variables for each Service of the namespace.
  void know_no_cluster();
  // Takes over how another pod's images are pulled, names are resolved and nodes are chosen.
  void take_over(const nlohmann::json& other);

 private:
  nlohmann::json& list(const char* name);  // empty where there is none

  nlohmann::json* spec_;
};

// The template that a controller makes pods of.
//
// Thread safety: none; one owner. REQUIRES: the draft outlives the writers of its parts.
class PodTemplateDraft {
 public:
  explicit PodTemplateDraft(nlohmann::json pod_template = nlohmann::json::object())
      : template_(std::move(pod_template)) {}

  MetadataDraft metadata() { return MetadataDraft(template_["metadata"]); }
  PodSpecDraft pod() { return PodSpecDraft(template_["spec"]); }
  nlohmann::json take() { return std::move(template_); }

 private:
  nlohmann::json template_;
};

}  // namespace sluice::api
