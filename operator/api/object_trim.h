// Removes the fields of objects that the operator does not read, before it keeps them. Code that reads another field of
// such an object adds it here. pod_trim.h does the same for pods.
//
// Thread safety: pure functions on their argument.
#pragma once

#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace sluice::api {

// Leaves these members of an object. What is no object stays as it is.
void keep_only(nlohmann::json& object, std::initializer_list<std::string_view> members);

// Leaves name, labels, taints, whether the node is cordoned, allocatable resources and the condition Ready. The images
// that a node names are most of its bytes.
void trim_node(nlohmann::json& node);

// Leaves metadata, status, how many pods the Job asks for, whether it is suspended, and the ports of its template.
void trim_trainer_job(nlohmann::json& job);

// Takes out the copy of the whole object that kubectl apply leaves in an annotation.
void trim_training_job(nlohmann::json& training_job);

}  // namespace sluice::api
