// How trainer pods of one job find each other.
#include "operator/act/rendezvous.h"

#include <nlohmann/json.hpp>

#include "operator/act/trainer_pod.h"
#include "operator/api/fields.h"
#include "operator/testing/objects.h"
#include "src/base/testing/catch.h"

namespace sluice::act {
namespace {

using api::text_field;
using control::testing::test_config;
using control::testing::training_job;
using nlohmann::json;

json gang(int replicas) {
  json job = training_job();
  job["spec"]["trainer"]["replicas"] = replicas;
  return job;
}

json& trainer_env(json& job) { return job["spec"]["trainer"]["template"]["spec"]["containers"][0]["env"]; }

// The variables of the container that trains: its value, or the field of the pod that it is taken from.
json variables(const json& job, FeederRole role = FeederRole::kMakesBatches) {
  const auto pod = trainer_pod_template(api::TrainingJob(job), role, test_config());
  REQUIRE(pod.ok());
  json result = json::object();
  for (const json& entry : pod->at("spec").at("containers").at(0).at("env"))
    result[text_field(entry, "/name")] =
        text_field(entry, "/value", text_field(entry, "/valueFrom/fieldRef/fieldPath"));
  return result;
}

constexpr const char* kIndex = "metadata.annotations['batch.kubernetes.io/job-completion-index']";

TEST_CASE("each of several trainer pods is told where the first one is, how many there are and which one it is") {
  const FeederRole role = GENERATE(FeederRole::kMakesBatches, FeederRole::kNone);
  const json env = variables(gang(3), role);
  CHECK(env["MASTER_ADDR"] == "vision-0.vision-trainers.default.svc");
  CHECK(env["MASTER_PORT"] == "29500");
  for (const char* size : {"WORLD_SIZE", "PET_NNODES"}) CHECK(env[size] == "3");
  for (const char* index : {"RANK", "NODE_RANK", "PET_NODE_RANK"}) CHECK(env[index] == kIndex);
  CHECK(env["PET_MASTER_ADDR"] == "$(MASTER_ADDR)");
  CHECK(env["PET_MASTER_PORT"] == "$(MASTER_PORT)");
}

TEST_CASE("an elastic trainer's pods meet at torchrun's own rendezvous, which numbers them") {
  json job = gang(3);
  job["spec"]["trainer"]["elasticPolicy"] = {{"minReplicas", 2}};
  job["spec"]["trainer"]["backoffLimit"] = 9;
  const json env = variables(job);
  CHECK(env["PET_NNODES"] == "2:3");
  CHECK(env["PET_RDZV_BACKEND"] == "c10d");
  CHECK(env["PET_RDZV_ENDPOINT"] == "$(MASTER_ADDR):$(MASTER_PORT)");
  CHECK(env["PET_RDZV_ID"] == "vision");
  CHECK(env["PET_MAX_RESTARTS"] == "9");
  CHECK(env["TORCH_DISABLE_SHARE_RDZV_TCP_STORE"] == "1");
  for (const char* fixed : {"RANK", "WORLD_SIZE", "NODE_RANK", "PET_NODE_RANK", "PET_MASTER_ADDR"})
    CHECK_FALSE(env.contains(fixed));
}

TEST_CASE("a variable that the user has set stays, and comes before those that refer to it") {
  json job = gang(2);
  trainer_env(job).push_back({{"name", "MASTER_PORT"}, {"value", "12345"}});
  CHECK(variables(job)["MASTER_PORT"] == "12345");
  const auto pod = trainer_pod_template(api::TrainingJob(job), FeederRole::kMakesBatches, test_config());
  std::vector<std::string> order;
  for (const json& entry : pod->at("spec").at("containers").at(0).at("env"))
    if (const std::string name = text_field(entry, "/name"); name.find("MASTER_PORT") != name.npos)
      order.push_back(name);
  CHECK(order == std::vector<std::string>{"MASTER_PORT", "PET_MASTER_PORT"});
}

TEST_CASE("trainer pods have names in the Service, and the Job controller gives each its own") {
  json job = gang(2);
  job["spec"]["trainer"]["template"]["spec"].update(
      {{"hostname", "one-for-all"}, {"subdomain", "other"}, {"setHostnameAsFQDN", true}});
  const auto pod = trainer_pod_template(api::TrainingJob(job), FeederRole::kMakesBatches, test_config());
  CHECK(pod->at("spec")["subdomain"] == "vision-trainers");
  CHECK_FALSE(pod->at("spec").contains("hostname"));
  CHECK_FALSE(pod->at("spec").contains("setHostnameAsFQDN"));
}

TEST_CASE("a trainer that is alone meets no other") {
  const json job = training_job();
  const auto pod = trainer_pod_template(api::TrainingJob(job), FeederRole::kMakesBatches, test_config());
  CHECK(pod->dump().find("MASTER_ADDR") == std::string::npos);
  CHECK_FALSE(pod->at("spec").contains("subdomain"));
}

}  // namespace
}  // namespace sluice::act
