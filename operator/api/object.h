// The common fields of every object of the API: metadata, and a status with conditions.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "src/kube/resource.h"

namespace sluice::api {

// A reader of one object. A field that is missing or of another type than it should be reads as empty, 0 or null.
//
// Thread safety: all methods are const. REQUIRES: the JSON object outlives its reader.
class Object {
 public:
  explicit Object(const nlohmann::json& object) : object_(&object) {}
  explicit Object(nlohmann::json&&) = delete;

  std::string name() const;
  std::string name_space() const;
  kube::ObjectKey key() const { return {name_space(), name()}; }
  std::string uid() const;
  std::string resource_version() const;
  std::int64_t generation() const;
  std::string created() const;        // RFC 3339 in UTC
  double created_at_seconds() const;  // Unix time
  bool deleting() const;              // has been deleted, and waits for its finalizers or its grace period

  std::string label(std::string_view name) const;
  std::string annotation(std::string_view name) const;
  const nlohmann::json& annotations() const;  // an object

  // The owner that controls it; all empty: none does.
  struct Controller {
    std::string kind;
    std::string name;
    std::string uid;
  };
  Controller controller() const;
  std::string controller_uid() const { return controller().uid; }
  // By `owner` itself: same uid, not merely the same name.
  bool controlled_by(const Object& owner) const;

  const nlohmann::json& status() const;
  const nlohmann::json& conditions() const;  // an array
  bool condition_is_true(std::string_view type) const;

 protected:
  const nlohmann::json& object() const { return *object_; }

 private:
  const nlohmann::json* object_;
};

// The member of that name; null where there is none, or `object` is no object.
const nlohmann::json& member(const nlohmann::json& object, std::string_view name);
// The same as text; empty where it is none.
std::string text_member(const nlohmann::json& object, std::string_view name);
// The name of an entry of a list: a container, a volume, a variable.
std::string name_of(const nlohmann::json& entry);

}  // namespace sluice::api
