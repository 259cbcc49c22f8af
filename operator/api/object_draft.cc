#include "operator/api/object_draft.h"

#include "operator/api/labels.h"
#include "operator/api/names.h"

namespace sluice::api {

using nlohmann::json;

MetadataDraft::MetadataDraft(json& metadata) : metadata_(&metadata) {
  if (!metadata.is_object()) metadata = json::object();
}

json& MetadataDraft::entries(const char* name) {
  json& map = (*metadata_)[name];
  if (!map.is_object()) map = json::object();
  return map;
}

void MetadataDraft::set_label(std::string_view name, std::string_view value) {
  entries("labels")[std::string(name)] = value;
}

void MetadataDraft::set_annotation(std::string_view name, std::string_view value) {
  entries("annotations")[std::string(name)] = value;
}

void MetadataDraft::set_sluice_labels(std::string_view job, std::string_view component) {
  set_label(kJobLabel, job);
  set_label(kComponentLabel, component);
  set_label(kManagedByLabel, kOperatorManager);
  set_label(kPartOfLabel, kPartOf);
}

void MetadataDraft::drop_labels_of_jobs() {
  json& labels = entries("labels");
  for (const char* name :
       {"batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name", "controller-uid", "job-name"})
    labels.erase(name);
}

void MetadataDraft::set_scraped(int port) {
  json& annotations = entries("annotations");
  // A user's path or scheme, for metrics at another port, would be asked of ours.
  const std::string_view domain = kScrapeAnnotation.substr(0, kScrapeAnnotation.find('/') + 1);
  for (auto each = annotations.begin(); each != annotations.end();)
    each = each.key().starts_with(domain) ? annotations.erase(each) : std::next(each);
  set_annotation(kScrapeAnnotation, "true");
  set_annotation(kScrapePortAnnotation, std::to_string(port));
}

void MetadataDraft::set_controller(const Object& owner, const kube::Resource& kind_of_owner) {
  (*metadata_)["ownerReferences"] = json::array({{{"apiVersion", kind_of_owner.api_version()},
                                                  {"kind", kind_of_owner.kind},
                                                  {"name", owner.name()},
                                                  {"uid", owner.uid()},
                                                  {"controller", true}}});
}

json labels_of(std::string_view job, std::string_view component) {
  return {{std::string(kJobLabel), job}, {std::string(kComponentLabel), component}};
}

ObjectDraft::ObjectDraft(const kube::Resource& resource, std::string_view name_space, std::string_view name)
    : resource_(resource), body_({{"metadata", {{"name", name}, {"namespace", name_space}}}}) {}

void ObjectDraft::follow(json object_template) {
  const json& said = member(object_template, "metadata");
  json& metadata = body_["metadata"];
  if (const json& labels = member(said, "labels"); labels.is_object()) metadata["labels"].update(labels);
  if (const json& annotations = member(said, "annotations"); annotations.is_object())
    metadata["annotations"] = annotations;
  object_template["metadata"] = std::move(metadata);
  body_ = std::move(object_template);
}

json ObjectDraft::complete() const {
  json object = body_;
  object["apiVersion"] = resource_.api_version();
  object["kind"] = resource_.kind;
  return object;
}

}  // namespace sluice::api
