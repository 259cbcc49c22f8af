// The objects of one kind in all watched namespaces: one informer for the whole cluster, or one per namespace.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "src/kube/informer.h"

namespace sluice::observe {

// Thread safety: as kube::Informer.
class Collection {
 public:
  // `namespaces` empty: all of them. `trim` removes the fields of each object that are not read. REQUIRES: client and
  // clock outlive the collection.
  Collection(const kube::Client& client, const Clock& clock, const kube::Resource& resource,
             const kube::UniformRandom& random, std::vector<std::string> namespaces,
             const std::string& label_selector = "", const std::function<void(kube::Json&)>& trim = nullptr) {
    if (namespaces.empty()) namespaces.emplace_back();
    for (const std::string& name_space : namespaces) {
      kube::ReflectorOptions options;
      options.namespace_ = name_space;
      options.label_selector = label_selector;
      options.trim = trim;
      informers_.push_back(std::make_unique<kube::Informer>(client, clock, random, resource, std::move(options)));
    }
  }

  // REQUIRES: not started.
  void add_handler(const kube::ChangeHandler& handler) {
    for (auto& informer : informers_) informer->add_handler(handler);
  }

  void start() {
    for (auto& informer : informers_) informer->start();
  }

  void look_again() {
    for (auto& informer : informers_) informer->look_again();
  }

  const kube::Resource& resource() const { return informers_.front()->resource(); }

  // For callers without threads.
  const std::vector<std::unique_ptr<kube::Informer>>& informers() const { return informers_; }

  bool has_synced() const {
    return std::all_of(informers_.begin(), informers_.end(),
                       [](const auto& informer) { return informer->has_synced(); });
  }

  // Of the informer that has heard nothing for longest.
  Clock::Duration silent_for() const {
    Clock::Duration longest{0};
    for (const auto& informer : informers_) longest = std::max(longest, informer->silent_for());
    return longest;
  }

  bool wait_for_sync(std::stop_token stop) const {
    return std::all_of(informers_.begin(), informers_.end(),
                       [&](const auto& informer) { return informer->wait_for_sync(stop); });
  }

  // nullptr: not seen.
  kube::ObjectPointer get(const kube::ObjectKey& key) const {
    for (const auto& informer : informers_)
      if (auto object = informer->store().get(key)) return object;
    return nullptr;
  }

  kube::Store::Objects snapshot() const {
    kube::Store::Objects all;
    for (const auto& informer : informers_) all.merge(informer->store().snapshot());
    return all;
  }

 private:
  std::vector<std::unique_ptr<kube::Informer>> informers_;
};

}  // namespace sluice::observe
