#include "operator/api/pod_spec_draft.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "operator/api/labels.h"
#include "operator/api/names.h"
#include "operator/api/object.h"

namespace sluice::api {

using nlohmann::json;

namespace {

// Kubelets replace a token when four fifths of its life are over.
constexpr int kTokenSeconds = 3600;

}  // namespace

json& PodSpecDraft::list(const char* name) {
  json& entries = (*spec_)[name];
  if (!entries.is_array()) entries = json::array();
  return entries;
}

void PodSpecDraft::add_empty_volume(std::string_view name) {
  add_volume({{"name", name}, {"emptyDir", json::object()}});
}

void PodSpecDraft::add_secret_volume(std::string_view name, std::string_view secret) {
  add_volume({{"name", name}, {"secret", {{"secretName", secret}}}});
}

void PodSpecDraft::add_token_volume(std::string_view name, std::string_view audience, std::string_view secret,
                                    std::string_view authorities) {
  const json entry = {{"key", authorities}, {"path", "ca.crt"}};
  const json of_secret = {{"secret", {{"name", secret}, {"items", json::array({entry})}, {"optional", true}}}};
  const json token = {{"audience", audience}, {"expirationSeconds", kTokenSeconds}, {"path", "token"}};
  const json of_account = {{"serviceAccountToken", token}};
  add_volume({{"name", name}, {"projected", {{"sources", json::array({of_secret, of_account})}}}});
}

json* PodSpecDraft::find_container(std::string_view name) {
  for (const char* kind : {"containers", "initContainers"})
    if (const auto found = spec_->find(kind); found != spec_->end() && found->is_array())
      for (json& container : *found)
        if (name_of(container) == name) return &container;
  return nullptr;
}

void PodSpecDraft::add_pull_secret(const std::string& name) {
  json& secrets = list("imagePullSecrets");
  const auto is_same = [&](const json& secret) { return name_of(secret) == name; };
  if (std::none_of(secrets.begin(), secrets.end(), is_same)) secrets.push_back({{"name", name}});
}

void PodSpecDraft::pin_to_platform(std::string_view architecture) {
  json& selector = (*spec_)["nodeSelector"];
  if (!selector.is_object()) selector = json::object();
  selector.emplace(kArchitectureLabel, architecture);
  selector.emplace(kLinux.name, kLinux.value);
}

void PodSpecDraft::prefer_node(std::string_view node) {
  constexpr const char* kPreferences = "preferredDuringSchedulingIgnoredDuringExecution";
  constexpr int kMostWeight = 100;  // that a preference may have
  // What is no object, the API server refuses anyway, in better words.
  json affinity = spec_->value("affinity", json());
  if (!affinity.is_object() && !affinity.is_null()) return;
  json& of_nodes = affinity["nodeAffinity"];
  if (!of_nodes.is_object() && !of_nodes.is_null()) return;
  json& preferences = of_nodes[kPreferences];
  if (!preferences.is_null() && preferences != json::array()) return;
  const json field = {{"key", "metadata.name"}, {"operator", "In"}, {"values", json::array({node})}};
  preferences = json::array({{{"weight", kMostWeight}, {"preference", {{"matchFields", json::array({field})}}}}});
  (*spec_)["affinity"] = std::move(affinity);
}

void PodSpecDraft::join_service(std::string_view name) {
  (*spec_)["subdomain"] = name;
  spec_->erase("hostname");  // the Job controller gives each pod its own: the job's name and its number
  // With the Service's and the namespace's, that name is often longer than the 64 characters of a hostname on Linux,
  // and such a pod never starts.
  spec_->erase("setHostnameAsFQDN");
}

void PodSpecDraft::know_no_cluster() {
  (*spec_)["automountServiceAccountToken"] = false;
  (*spec_)["enableServiceLinks"] = false;
}

void PodSpecDraft::take_over(const json& other) {
  for (const char* inherited : {"imagePullSecrets", "hostAliases", "dnsPolicy", "dnsConfig", "schedulerName"})
    if (const auto found = other.find(inherited); found != other.end()) (*spec_)[inherited] = *found;
}

}  // namespace sluice::api
