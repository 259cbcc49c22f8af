#include "src/kube/informer.h"

#include <utility>

#include <nlohmann/json.hpp>

#include "src/kube/resource_version.h"

namespace sluice::kube {
namespace {

bool is_same_state(const Json& a, const Json& b) {
  const auto field = [](const Json& object, const char* name) -> const Json* {
    const auto metadata = object.find("metadata");
    if (metadata == object.end() || !metadata->is_object()) return nullptr;
    const auto found = metadata->find(name);
    return found == metadata->end() ? nullptr : &*found;
  };
  for (const char* name : {"uid", "resourceVersion"}) {
    const Json* first = field(a, name);
    const Json* second = field(b, name);
    if (first == nullptr || second == nullptr || *first != *second) return false;
  }
  return true;
}

}  // namespace

// Puts what the reflector says into the store, then tells the handlers.
class Informer::Target final : public ReflectorTarget {
 public:
  explicit Target(Informer& informer) : informer_(informer) {}

  void replace(std::vector<ObjectPointer> objects) override {
    Store::Objects after;
    for (auto& object : objects) {
      ObjectKey key = key_of(*object);
      after.insert_or_assign(std::move(key), std::move(object));
    }
    const bool is_initial = !informer_.has_synced();
    const Store::Objects before = informer_.store_.replace(after);
    for (const auto& [key, object] : before) {
      if (after.count(key) == 0) notify({key, object, nullptr});
    }
    for (const auto& [key, object] : after) {
      const auto old = before.find(key);
      if (old == before.end()) {
        notify({key, nullptr, object, is_initial});
      } else if (!is_same_state(*old->second, *object)) {
        notify({key, old->second, object});
      }
    }
  }

  void reached(const std::string& resource_version) override {
    informer_.store_.set_version(resource_version);
    if (informer_.has_synced()) return;
    {
      std::lock_guard lock(informer_.mutex_);
      informer_.synced_ = true;
    }
    informer_.synced_changed_.notify_all();
  }

  void upsert(ObjectPointer object) override {
    const ObjectKey key = key_of(*object);
    const ObjectPointer current = informer_.store_.get(key);
    if (current && is_older_version(resource_version_of(*object), resource_version_of(*current))) return;
    informer_.store_.put(key, object);
    // A watch from the server's cache may repeat what the list already had.
    if (!current || !is_same_state(*current, *object)) notify({key, current, object});
  }

  void remove(const ObjectKey& key, ObjectPointer last_state) override {
    const ObjectPointer current = informer_.store_.get(key);
    if (!current || is_older_version(resource_version_of(*last_state), resource_version_of(*current))) return;
    informer_.store_.erase(key);
    notify({key, last_state, nullptr});
  }

 private:
  void notify(const Change& change) const {
    for (const auto& handler : informer_.handlers_) handler(change);
  }

  Informer& informer_;
};

Informer::Informer(const Client& client, const Clock& clock, UniformRandom random, Resource resource,
                   ReflectorOptions options)
    : client_(client),
      clock_(clock),
      target_(std::make_unique<Target>(*this)),
      reflector_(std::make_unique<Reflector>(clock, std::move(random), resource, std::move(options), *target_)) {}

Informer::~Informer() {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
}

void Informer::add_handler(ChangeHandler handler) { handlers_.push_back(std::move(handler)); }

void Informer::start() {
  thread_ =
      std::jthread([this](std::stop_token stop) { run_reflector(*reflector_, client_, clock_, std::move(stop)); });
}

bool Informer::has_synced() const {
  std::lock_guard lock(mutex_);
  return synced_;
}

bool Informer::wait_for_sync(std::stop_token stop) const {
  std::unique_lock lock(mutex_);
  return synced_changed_.wait(lock, stop, [this] { return synced_; });
}

}  // namespace sluice::kube
