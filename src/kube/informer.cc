#include "src/kube/informer.h"

#include <utility>

#include <nlohmann/json.hpp>

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
    const Store::Objects before = informer_.store_.replace(after);
    for (const auto& [key, object] : before) {
      if (after.count(key) == 0) notify(key, object, nullptr);
    }
    for (const auto& [key, object] : after) {
      const auto old = before.find(key);
      if (old == before.end()) {
        notify(key, nullptr, object);
      } else if (!is_same_state(*old->second, *object)) {
        notify(key, old->second, object);
      }
    }
    {
      std::lock_guard lock(informer_.mutex_);
      informer_.synced_ = true;
    }
    informer_.synced_changed_.notify_all();
  }

  void upsert(ObjectPointer object) override {
    const ObjectKey key = key_of(*object);
    const ObjectPointer before = informer_.store_.put(key, object);
    // A watch from the server's cache may repeat what the list already had.
    if (!before || !is_same_state(*before, *object)) notify(key, before, object);
  }

  void remove(const ObjectKey& key, ObjectPointer last_state) override {
    if (informer_.store_.erase(key)) notify(key, last_state, nullptr);
  }

 private:
  void notify(const ObjectKey& key, const ObjectPointer& before, const ObjectPointer& after) const {
    for (const auto& handler : informer_.handlers_) handler(key, before, after);
  }

  Informer& informer_;
};

Informer::Informer(const Client& client, const Clock& clock, UniformRandom random, Resource resource,
                   ReflectorOptions options)
    : target_(std::make_unique<Target>(*this)),
      reflector_(
          std::make_unique<Reflector>(client, clock, std::move(random), resource, std::move(options), *target_)) {}

Informer::~Informer() {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
}

void Informer::add_handler(ChangeHandler handler) { handlers_.push_back(std::move(handler)); }

void Informer::start() {
  thread_ = std::jthread([this](std::stop_token stop) { reflector_->run(std::move(stop)); });
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
