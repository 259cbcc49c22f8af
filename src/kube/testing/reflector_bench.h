// A reflector without its loop: each test says what came of its last wish, and reads off its next one.
#pragma once

#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "src/base/testing/catch.h"
#include "src/base/testing/manual_clock.h"
#include "src/kube/reflector.h"
#include "src/kube/testing/objects.h"
#include "src/kube/watch.h"

namespace sluice::kube::testing {

using namespace std::chrono_literals;
using Kind = ReflectorStep::Kind;

class RecordingTarget final : public ReflectorTarget {
 public:
  void collect(ObjectPointer object) override {
    check(*object);
    collected.insert(key_of(*object).name);
  }
  void uncollect(const ObjectKey& key) override { collected.erase(key.name); }
  void discard() override { collected.clear(); }
  void replace() override {
    std::string text = "replace";
    for (const std::string& name : collected) text += " " + name;
    notes.push_back(text);
    collected.clear();
  }
  void upsert(ObjectPointer object) override {
    check(*object);
    notes.push_back("upsert " + key_of(*object).name);
  }
  void remove(const ObjectKey& key, ObjectPointer last_state) override {
    check(*last_state);
    notes.push_back("remove " + key.name);
  }
  void reached(const std::string& resource_version) override { version = resource_version; }

  std::set<std::string> collected;
  std::vector<std::string> notes;
  std::string version;
  bool saw_spec = false;

 private:
  void check(const Json& object) { saw_spec |= object.contains("spec"); }
};

struct ReflectorBench {
  using Notes = std::vector<std::string>;
  sluice::testing::ManualClock clock;
  RecordingTarget target;
  ReflectorOptions options;
  std::optional<Reflector> machine;

  Reflector& reflector() {
    if (!machine)
      machine.emplace(
          clock, [] { return 0.5; }, kPods, options, target);
    return *machine;
  }
  // A reflector that has listed up to `version` without the initial watch.
  void start_with_list(std::initializer_list<Json> items, int version) {
    options.stream_initial_list = false;
    REQUIRE(reflector().next().kind == Kind::kList);
    reflector().on_page(page(items, version));
  }
  static ObjectList page(std::initializer_list<Json> items, int version, const std::string& continuation = "") {
    return {std::vector<Json>(items), std::to_string(version), continuation};
  }
  ReflectorStep expect(Kind kind) {
    ReflectorStep step = reflector().next();
    REQUIRE(step.kind == kind);
    return step;
  }
  std::string expect_watch_from() { return expect(Kind::kWatch).watch.resource_version; }
  // Jitter 0.5: 1.5 times the nominal pause.
  void expect_pause(std::chrono::milliseconds pause) { CHECK(expect(Kind::kPause).pause == pause); }
  Result<void> tell(WatchEventType type, const Json& object) { return reflector().on_event({type, object}); }
  void added(const Json& object) { CHECK(tell(WatchEventType::kAdded, object).ok()); }
  static Json mark(int version, bool is_end = true) {
    Json bookmark{{"metadata", {{"resourceVersion", std::to_string(version)}}}};
    if (is_end) bookmark["metadata"]["annotations"]["k8s.io/initial-events-end"] = "true";
    return bookmark;
  }
  void end(ErrorCode code) { reflector().on_watch_end(Error(code, "because")); }
};

}  // namespace sluice::kube::testing
