// A container as the operator writes it.
#pragma once

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::api {

// A writer of one container: a new one, or one of the user's to which something is added.
//
// Thread safety: none; one owner. REQUIRES: the JSON value outlives its writer.
class ContainerDraft {
 public:
  explicit ContainerDraft(nlohmann::json& container) : container_(&container) {}

  void set_name(std::string_view name) { (*container_)["name"] = name; }
  void set_image(std::string_view image, std::string_view pull_policy);
  // Takes over image and environment.
  void run_image_of(const nlohmann::json& other);
  void set_command(const std::vector<std::string>& command) { (*container_)["command"] = command; }
  void set_arguments(const std::vector<std::string>& arguments) { (*container_)["args"] = arguments; }
  void set_security_context(nlohmann::json context) { (*container_)["securityContext"] = std::move(context); }
  void set_resources(nlohmann::json resources) { (*container_)["resources"] = std::move(resources); }
  void set_requests(std::string_view cpu, std::string_view memory) { set_amounts("requests", cpu, memory); }
  void set_limits(std::string_view cpu, std::string_view memory) { set_amounts("limits", cpu, memory); }
  // Takes out its limits of those resources that `limits` names.
  void leave_limits_to(const nlohmann::json& limits);
  // Of an init container: it runs beside the others until they end.
  void run_as_sidecar() { (*container_)["restartPolicy"] = "Always"; }

  // Values may refer to earlier variables as $(NAME).
  void set_variable(std::string_view name, std::string_view value);  // in place of those of the same name
  // These two leave a variable of that name as it is.
  void add_variable(std::string_view name, std::string_view value);
  void add_index_variable(std::string_view name);  // which rank of an indexed Job the pod is
  // Puts `directory` before the variable's own value, which its env or its envFrom may have. The own value becomes
  // that of another variable, `kept_as`.
  void prepend_to_path(std::string_view name, std::string_view directory, std::string_view kept_as);
  // References to the resources of a container of its pod are to this one.
  void refer_to_own_resources();

  void mount(std::string_view volume, std::string_view path, bool read_only);
  // The same mount as another container's. Propagation goes: it may need privileges that this one shall not have.
  void add_mount_like(nlohmann::json other, bool read_only);
  void replace_mounts_at(std::string_view path, const nlohmann::json& mount);
  void remove_mounts_at(const std::set<std::string>& paths);

  void add_port(std::string_view name, int port);
  // HTTP probes at the port of the name "probes".
  void set_readiness_probe(std::string_view path, int period_seconds, int failure_threshold);
  void set_liveness_probe(std::string_view path, int period_seconds, int failure_threshold);

 private:
  nlohmann::json& list(const char* name);  // empty where there is none
  void set_amounts(const char* kind, std::string_view cpu, std::string_view memory);

  nlohmann::json* container_;
};

// Every reference to a container's resources in `volumes_or_variables` is to `container`.
void refer_to_resources_of(std::string_view container, nlohmann::json& volumes_or_variables);

}  // namespace sluice::api
