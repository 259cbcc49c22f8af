#include "src/kube/informer.h"

#include <utility>

#include <nlohmann/json.hpp>

#include "src/base/guarded.h"
#include "src/base/logging.h"
#include "src/kube/resource_version.h"

namespace sluice::kube {
// Puts the reflector's changes into the store, then tells the handlers.
class Informer::Target final : public ReflectorTarget {
 public:
  explicit Target(Informer& informer) : informer_(informer) {}

  // What is in the store already stays as it is: a new list of everything needs no second copy of it.
  void collect(ObjectPointer object) override {
    const ObjectKey key = key_of(*object);
    StoredPointer listed = std::make_shared<const StoredObject>(std::move(object));
    const StoredPointer known = informer_.store_.find(key);
    informer_.store_.stage(key, known && known->is_same_state(*listed) ? known : std::move(listed));
  }
  void uncollect(const ObjectKey& key) override { informer_.store_.unstage(key); }
  void discard() override { informer_.store_.discard_staged(); }

  void replace() override {
    const bool is_initial = !informer_.has_synced();
    informer_.store_.commit([&](const ObjectKey& key, const StoredPointer& before, const StoredPointer& after) {
      notify({key, before ? before->object() : nullptr, after ? after->object() : nullptr, is_initial});
    });
  }

  void reached(const std::string& resource_version) override {
    informer_.store_.set_version(resource_version);
    {
      std::lock_guard lock(informer_.mutex_);
      informer_.heard_at_ = informer_.clock_.now();
      if (std::exchange(informer_.stored_list_, informer_.current_list_) == informer_.current_list_) return;
    }
    informer_.synced_changed_.notify_all();
  }

  void upsert(ObjectPointer object) override {
    const ObjectKey key = key_of(*object);
    const StoredPointer before = informer_.store_.find(key);
    const StoredPointer after = std::make_shared<const StoredObject>(object);
    if (before && is_older_version(after->version(), before->version())) return;
    informer_.store_.put(key, after);
    // A watch from the server's cache may repeat what the list already had.
    if (!before || !before->is_same_state(*after))
      notify({key, before ? before->object() : nullptr, std::move(object)});
  }

  void remove(const ObjectKey& key, ObjectPointer last_state) override {
    const StoredPointer before = informer_.store_.find(key);
    if (!before || is_older_version(resource_version_of(*last_state), before->version())) return;
    informer_.store_.erase(key);
    notify({key, std::move(last_state), nullptr});
  }

 private:
  void notify(const Change& change) const {
    for (const auto& handler : informer_.handlers_) {
      const auto handled = guarded(ErrorCode::kInternal, change.key.to_string(), [&] { handler(change); });
      if (!handled.ok()) log_error("kube", "a handler has failed", {{"error", handled.error().to_string()}});
    }
  }

  Informer& informer_;
};

Informer::Informer(const Client& client, const Clock& clock, UniformRandom random, Resource resource,
                   ReflectorOptions options)
    : client_(client),
      clock_(clock),
      target_(std::make_unique<Target>(*this)),
      reflector_(std::make_unique<Reflector>(clock, std::move(random), resource, std::move(options), *target_)),
      heard_at_(clock.now()) {}

Informer::~Informer() {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
}

void Informer::add_handler(ChangeHandler handler) { handlers_.push_back(std::move(handler)); }

void Informer::start() {
  thread_ = std::jthread([this](std::stop_token stop) { run(std::move(stop)); });
}

// A round lasts until look_again().
void Informer::run(std::stop_token stop) {
  while (!stop.stop_requested()) {
    std::stop_source round = begin_round();
    const std::stop_callback end_round(stop, [&round] { round.request_stop(); });
    run_reflector(*reflector_, client_, clock_, round.get_token());
  }
}

// The reflector belongs to this thread, so it starts over here.
std::stop_source Informer::begin_round() {
  std::lock_guard lock(mutex_);
  if (std::exchange(current_list_, wanted_list_) != wanted_list_) reflector_->start_over();
  return round_ = std::stop_source();
}

void Informer::look_again() {
  std::stop_source round;
  {
    std::lock_guard lock(mutex_);
    ++wanted_list_;
    round = round_;
  }
  round.request_stop();
  if (!thread_.joinable()) begin_round();
}

bool Informer::has_synced() const {
  std::lock_guard lock(mutex_);
  return stored_list_ == wanted_list_;
}

Clock::Duration Informer::silent_for() const {
  std::lock_guard lock(mutex_);
  return clock_.now() - heard_at_;
}

bool Informer::wait_for_sync(std::stop_token stop) const {
  std::unique_lock lock(mutex_);
  return synced_changed_.wait(lock, stop, [this] { return stored_list_ == wanted_list_; });
}

}  // namespace sluice::kube
