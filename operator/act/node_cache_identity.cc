#include "operator/act/node_cache_identity.h"

#include <nlohmann/json.hpp>

#include "operator/act/certificate_rotation.h"
#include "operator/act/certificates.h"
#include "operator/api/labels.h"
#include "operator/api/names.h"
#include "operator/api/tls_secret.h"
#include "src/base/logging.h"

namespace sluice::act {

using namespace api;

namespace {

constexpr auto kIdentityBelievedFor = std::chrono::minutes(5);
constexpr auto kTriedAgainAfter = std::chrono::seconds(30);  // jobs wait for each try
constexpr const char* kIdentityName = "node cache";

kube::Action creation_of_secret(const kube::ObjectKey& key, const TlsIdentity& identity) {
  TlsSecretDraft secret(key.namespace_, key.name);
  secret.metadata().set_label(kManagedByLabel, kOperatorManager);
  secret.metadata().set_label(kPartOfLabel, kPartOf);
  secret.set_entries({identity.authority_certificate, identity.certificate, identity.private_key, "", ""});
  return {kube::Verb::kCreate, secret.resource(), secret.key(), secret.complete(), std::string(kOperatorManager)};
}

}  // namespace

NodeCacheIdentity::NodeCacheIdentity(ClusterSeams seams, const control::Config& config, const Clock& clock)
    : seams_(std::move(seams)), config_(config), clock_(clock) {}

std::string NodeCacheIdentity::authorities(std::stop_token stop) {
  if (config_.node_cache.address.empty()) return "";
  std::lock_guard lock(mutex_);
  const bool is_due = problem_.empty() && clock_.wall_now() >= rotates_at_;
  if (next_try_ && clock_.now() < *next_try_ && !is_due) return authorities_;
  const auto looked = look(std::move(stop));
  next_try_ = clock_.now() + (looked.ok() ? Clock::Duration(kIdentityBelievedFor) : kTriedAgainAfter);
  const std::string problem = looked.ok() ? "" : std::string(looked.error().message());
  if (!problem.empty() && problem != problem_)
    log_warning("act", "the certificate of the nodes' caches cannot be looked after", {{"error", problem}});
  problem_ = problem;
  return authorities_;
}

Result<void> NodeCacheIdentity::look(std::stop_token stop) {
  const kube::ObjectKey key{config_.leader_election.lease_namespace, config_.node_cache.secret};
  const auto make_identity = [this](const std::string& name) {
    return make_tls_identity(name, kCacheServerName, clock_.wall_now());
  };
  const auto known = [this](const TlsEntries& entries) {
    authorities_ = entries.authorities;
    rotates_at_ = rotates_at(entries);
  };
  const auto object = seams_.read(kube::kSecrets, key, stop);
  if (!object.ok() && object.error().code() == ErrorCode::kNotFound) {
    SLUICE_TRY(const TlsIdentity identity, make_identity(kIdentityName));
    const kube::Action action = creation_of_secret(key, identity);
    SLUICE_TRY_VOID(seams_.perform(action, stop));
    log_info("act", action.to_string());
    known({identity.authority_certificate, identity.certificate, identity.private_key, "", ""});
    return {};
  }
  if (!object.ok()) return object.error();
  const TlsSecret secret(*object);
  SLUICE_TRY(const auto rotated, rotate(secret.entries(), kIdentityName, clock_.wall_now(), make_identity));
  if (rotated) {
    kube::Action action{kube::Verb::kMergePatch, kube::kSecrets, key, patch_of(*rotated),
                        std::string(kOperatorManager)};
    action.uid = secret.uid();
    action.version = secret.resource_version();
    SLUICE_TRY_VOID(seams_.perform(action, stop));
    log_info("act", action.to_string());
  }
  known(rotated.value_or(secret.entries()));
  return {};
}

}  // namespace sluice::act
