#include "operator/api/pod_template.h"

#include <nlohmann/json.hpp>
#include <string>

#include "operator/api/object.h"

namespace sluice::api {
namespace {

using nlohmann::json;

enum class Shape { kText, kObject, kTexts, kObjects, kNamedObjects, kTextByName };

struct Field {
  const char* name;
  Shape shape;
};
constexpr Field kMetadataFields[] = {{"labels", Shape::kTextByName}, {"annotations", Shape::kTextByName}};
constexpr Field kSpecFields[] = {{"initContainers", Shape::kNamedObjects},
                                 {"containers", Shape::kNamedObjects},
                                 {"volumes", Shape::kNamedObjects},
                                 {"imagePullSecrets", Shape::kObjects},
                                 {"tolerations", Shape::kObjects},
                                 {"hostAliases", Shape::kObjects},
                                 {"nodeSelector", Shape::kTextByName},
                                 {"securityContext", Shape::kObject},
                                 {"dnsConfig", Shape::kObject},
                                 {"restartPolicy", Shape::kText},
                                 {"schedulerName", Shape::kText},
                                 {"dnsPolicy", Shape::kText},
                                 {"affinity", Shape::kObject},
                                 {"serviceAccountName", Shape::kText},
                                 {"priorityClassName", Shape::kText},
                                 {"topologySpreadConstraints", Shape::kObjects}};
constexpr Field kContainerFields[] = {
    {"image", Shape::kText},       {"imagePullPolicy", Shape::kText},   {"command", Shape::kTexts},
    {"args", Shape::kTexts},       {"env", Shape::kNamedObjects},       {"envFrom", Shape::kObjects},
    {"resources", Shape::kObject}, {"securityContext", Shape::kObject}, {"volumeMounts", Shape::kNamedObjects},
    {"ports", Shape::kObjects}};

const char* text_of(Shape shape) {
  switch (shape) {
    case Shape::kText: return "text";
    case Shape::kObject: return "an object";
    case Shape::kTexts: return "a list of texts";
    case Shape::kObjects: return "a list of objects";
    case Shape::kNamedObjects: return "a list of objects, each with a name";
    case Shape::kTextByName: return "an object whose values are texts (in quotes where they look like numbers)";
  }
  return "";
}

bool all(const json& elements, bool (*fits)(const json&)) {
  for (const json& element : elements)
    if (!fits(element)) return false;
  return true;
}

bool is_text(const json& value) { return value.is_string(); }
bool is_text_or_null(const json& value) { return value.is_string() || value.is_null(); }
bool is_object(const json& value) { return value.is_object(); }
bool is_named(const json& value) { return !text_member(value, "name").empty(); }

bool has(const json& value, Shape shape) {
  switch (shape) {
    case Shape::kText: return value.is_string();
    case Shape::kObject: return value.is_object();
    case Shape::kTexts: return value.is_array() && all(value, is_text);
    case Shape::kObjects: return value.is_array() && all(value, is_object);
    case Shape::kNamedObjects: return value.is_array() && all(value, is_named);
    case Shape::kTextByName: return value.is_object() && all(value, is_text_or_null);
  }
  return false;
}

// A member that is null counts as absent, as in Kubernetes.
template <std::size_t count>
Result<void> check_fields(const json& object, const Field (&fields)[count], const std::string& path) {
  if (!object.is_null() && !object.is_object()) return invalid_argument(path + " must be an object; correct it");
  for (const Field& field : fields) {
    const json& value = member(object, field.name);
    if (!value.is_null() && !has(value, field.shape))
      return invalid_argument(path + "." + field.name + " must be " + text_of(field.shape) + "; correct it");
  }
  return {};
}

Result<void> check_containers(const json& containers, const std::string& path) {
  std::size_t index = 0;
  for (const json& container : containers)
    SLUICE_TRY_VOID(check_fields(container, kContainerFields, path + "[" + std::to_string(index++) + "]"));
  return {};
}

}  // namespace

Result<void> check_pod_template_part(const json& pod_template, std::string_view path) {
  const std::string root(path);
  if (!pod_template.is_null() && !pod_template.is_object())
    return invalid_argument(root + " must be an object; correct it");
  const json& spec = member(pod_template, "spec");
  SLUICE_TRY_VOID(check_fields(member(pod_template, "metadata"), kMetadataFields, root + ".metadata"));
  SLUICE_TRY_VOID(check_fields(spec, kSpecFields, root + ".spec"));
  SLUICE_TRY_VOID(check_containers(member(spec, "containers"), root + ".spec.containers"));
  return check_containers(member(spec, "initContainers"), root + ".spec.initContainers");
}

Result<void> check_pod_template(const json& pod_template, std::string_view path) {
  SLUICE_TRY_VOID(check_pod_template_part(pod_template, path));
  if (member(member(pod_template, "spec"), "containers").empty())  // or null
    return invalid_argument(std::string(path) + ".spec.containers must hold at least one container; add it");
  return {};
}

}  // namespace sluice::api
