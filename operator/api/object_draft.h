// An object of the API as the operator writes it.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "operator/api/object.h"
#include "src/kube/resource.h"

namespace sluice::api {

// A writer of one object's metadata.
//
// Thread safety: none; one owner. REQUIRES: the JSON value outlives its writer.
class MetadataDraft {
 public:
  explicit MetadataDraft(nlohmann::json& metadata);  // what is no object becomes an empty one

  void set_label(std::string_view name, std::string_view value);
  void set_annotation(std::string_view name, std::string_view value);
  // By which Sluice finds the parts of a job, and people find the parts of Sluice.
  void set_sluice_labels(std::string_view job, std::string_view component);
  // The labels by which the Job controller finds the pods of a Job. A template that was exported from a Job has those
  // of that Job, and the API server would refuse them.
  void drop_labels_of_jobs();
  // The annotations by which Prometheus finds feeder and worker pods, and their port.
  void set_scraped(int port);
  // The controlling owner. Its deletion takes this object along.
  void set_controller(const Object& owner, const kube::Resource& kind_of_owner);

 private:
  nlohmann::json& entries(const char* name);

  nlohmann::json* metadata_;
};

// As the labels of the pods of a job's component.
nlohmann::json labels_of(std::string_view job, std::string_view component);

// A new object, or what the operator has to say of one that is there.
//
// Thread safety: none; one owner.
class ObjectDraft {
 public:
  ObjectDraft(const kube::Resource& resource, std::string_view name_space, std::string_view name);

  MetadataDraft metadata() { return MetadataDraft(body_["metadata"]); }
  // Takes over what a template says: its labels beside those that are set, all else in place of what is set.
  void follow(nlohmann::json object_template);

  const kube::Resource& resource() const { return resource_; }
  kube::ObjectKey key() const { return kube::key_of(body_); }
  // Without its kind: informers do not show it.
  const nlohmann::json& body() const { return body_; }
  nlohmann::json complete() const;

 protected:
  nlohmann::json& part(const char* name) { return body_[name]; }
  nlohmann::json& spec() { return body_["spec"]; }

 private:
  kube::Resource resource_;
  nlohmann::json body_;
};

}  // namespace sluice::api
