#include "bench/scale/stored_cluster.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <vector>

#include "operator/act/certificates.h"
#include "operator/act/data_worker_pool.h"
#include "operator/act/training_job.h"
#include "operator/api/names.h"
#include "operator/api/network_policy.h"

namespace sluice::bench {

using kube::Json;

namespace {

constexpr int kNamespaces = 20;
// The names in the texts of job 0 on node 0; other jobs have names of the same length there.
constexpr std::string_view kJob = "job-00000", kNamespace = "scale-00", kWorker = "worker-0", kNode = "node-00000",
                           kStranger = "stranger-0", kVersion = "1000000000";

std::string numbered(std::string_view like, std::int64_t number) {
  const std::size_t prefix = like.find_last_not_of("0123456789") + 1;
  const int digits = static_cast<int>(like.size() - prefix);
  char text[32];
  std::snprintf(text, sizeof text, "%0*lld", digits, static_cast<long long>(number));
  return std::string(like.substr(0, prefix)) + text;
}

void put(std::string& text, std::string_view like, std::int64_t number) {
  const std::string name = numbered(like, number);
  for (std::size_t at = text.find(like); at != std::string::npos; at = text.find(like, at + name.size()))
    text.replace(at, like.size(), name);
}

// As server-side apply notes who has set which field.
Json owned_fields(const Json& value) {
  Json fields = Json::object();
  if (!value.is_object()) return fields;
  for (const auto& [name, member] : value.items()) fields["f:" + name] = owned_fields(member);
  return fields;
}

// `object` as it is stored. `uid`: 36 characters, with the names of what it belongs to.
Json stored(Json object, const std::string& uid) {
  Json entries = Json::array();
  for (const char* part : {"spec", "status"}) {
    if (!object.contains(part)) continue;
    Json fields = {{"f:" + std::string(part), owned_fields(object[part])}};
    entries.push_back({{"apiVersion", object.value("apiVersion", "v1")},
                       {"fieldsType", "FieldsV1"},
                       {"fieldsV1", std::move(fields)},
                       {"manager", "sluice-operator"},
                       {"operation", "Apply"},
                       {"time", "2026-01-01T00:00:00Z"}});
  }
  Json& metadata = object["metadata"];
  metadata["uid"] = uid;
  metadata["resourceVersion"] = kVersion;
  metadata["creationTimestamp"] = "2026-01-01T00:00:00Z";
  metadata["managedFields"] = std::move(entries);
  return object;
}

Json condition(const char* type, bool holds, const char* reason = nullptr, const char* message = nullptr) {
  Json condition = {{"type", type},
                    {"status", holds ? "True" : "False"},
                    {"lastProbeTime", nullptr},
                    {"lastTransitionTime", "2026-01-01T00:00:00Z"}};
  if (reason != nullptr) condition["reason"] = reason;
  if (message != nullptr) condition["message"] = message;
  return condition;
}

Json training_job_of() {
  Json job = Json::parse(R"({"apiVersion": "sluice.dev/v1alpha1", "kind": "TrainingJob",
    "metadata": {"generation": 2, "labels": {"team": "vision", "app.kubernetes.io/name": "resnet"},
      "annotations": {"kubectl.kubernetes.io/last-applied-configuration": ""}},
    "spec": {"mode": "Auto", "priority": 0, "weight": 100, "suspend": false,
      "trainer": {"replicas": 1, "backoffLimit": 6, "template": {"spec": {"restartPolicy": "Never", "containers": [{
        "name": "trainer", "image": "registry.example/vision/trainer:2026-01-01", "imagePullPolicy": "IfNotPresent",
        "command": ["python", "-u", "train.py", "--data", "/data/imagenet", "--epochs", "90", "--batch-size", "256"],
        "env": [{"name": "OMP_NUM_THREADS", "value": "1"}, {"name": "NCCL_DEBUG", "value": "WARN"},
                {"name": "RUN", "value": "resnet"}],
        "resources": {"limits": {"nvidia.com/gpu": "1", "cpu": "2", "memory": "8Gi"}, "requests": {"cpu": "2", "memory": "8Gi"}},
        "volumeMounts": [{"name": "data", "mountPath": "/data", "readOnly": true}, {"name": "shared-memory", "mountPath": "/dev/shm"}]}],
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "imagenet"}},
                    {"name": "shared-memory", "emptyDir": {"medium": "Memory"}}]}}},
      "feeder": {"resources": {"requests": {"cpu": "250m", "memory": "256Mi"}, "limits": {"cpu": "500m"}}, "arena": "64Mi"},
      "dataWorkers": {"min": 10, "max": 10, "placement": "Auto",
        "resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "2Gi"}}}}})");
  Json& metadata = job["metadata"];
  metadata["name"] = kJob;
  metadata["namespace"] = kNamespace;
  metadata["annotations"]["kubectl.kubernetes.io/last-applied-configuration"] = job["spec"].dump();
  job["status"] = {{"observedGeneration", 2},
                   {"phase", "Running"},
                   {"workers", {{"desired", 10}, {"recommended", 10}, {"ready", 10}}},
                   {"bottleneck", "Unknown"},
                   {"explanation", "metrics are missing: the number of workers stays at 10, which min and max ask for"},
                   {"conditions",
                    {condition("Ready", true, "Running", "the trainer runs"),
                     condition("MetricsAvailable", false, "NoMetrics", "no series of this job is known to Prometheus"),
                     condition("WorkersBlocked", false, "NotBlocked", "")}}};
  return stored(std::move(job), "10000000-0000-4000-8000-000" + std::string(kJob));
}

// What the API server and kubelet add to a pod. `stage`: how far it has come.
Json pod_of(Json pod, const std::string& uid, StoredCluster::Stage stage) {
  Json& spec = pod["spec"];
  spec.update(Json::parse(
      R"({"dnsPolicy": "ClusterFirst", "enableServiceLinks": true, "preemptionPolicy": "PreemptLowerPriority",
    "priority": -100, "restartPolicy": "Always", "schedulerName": "default-scheduler", "serviceAccount": "default",
    "serviceAccountName": "default", "terminationGracePeriodSeconds": 30})"));
  if (!spec.contains("tolerations")) spec["tolerations"] = Json::array();
  for (const char* taint : {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"})
    spec["tolerations"].push_back(
        {{"effect", "NoExecute"}, {"key", taint}, {"operator", "Exists"}, {"tolerationSeconds", 300}});
  Json& status = pod["status"] = {{"phase", "Pending"}, {"qosClass", "Burstable"}};
  if (stage == StoredCluster::Stage::kPending) return stored(std::move(pod), uid);
  spec["nodeName"] = kNode;
  const bool ready = stage == StoredCluster::Stage::kReady;
  status["conditions"] = {condition("PodReadyToStartContainers", ready), condition("Initialized", ready),
                          condition("Ready", ready, ready ? nullptr : "ContainersNotReady"),
                          condition("ContainersReady", ready, ready ? nullptr : "ContainersNotReady"),
                          condition("PodScheduled", true)};
  status["phase"] = ready ? "Running" : "Pending";
  status["startTime"] = "2026-01-01T00:00:00Z";
  status["hostIP"] = "10.0.0.1";
  status["hostIPs"] = {{{"ip", "10.0.0.1"}}};
  if (ready) status["podIP"] = "10.244.17.23";
  if (ready) status["podIPs"] = {{{"ip", "10.244.17.23"}}};
  const std::string digest(64, '7');
  for (const char* list : {"initContainers", "containers"}) {
    if (!spec.contains(list)) continue;
    Json& statuses = status[list == std::string_view("containers") ? "containerStatuses" : "initContainerStatuses"];
    for (Json& container : spec[list]) {
      container.update({{"terminationMessagePath", "/dev/termination-log"}, {"terminationMessagePolicy", "File"}});
      Json state = {{"waiting", {{"reason", "PodInitializing"}}}};
      if (ready) state = {{"running", {{"startedAt", "2026-01-01T00:00:00Z"}}}};
      statuses.push_back({{"name", container["name"]},
                          {"image", container["image"]},
                          {"ready", ready},
                          {"started", ready},
                          {"restartCount", 0},
                          {"lastState", Json::object()},
                          {"state", std::move(state)},
                          {"imageID", "registry.example/image@sha256:" + digest},
                          {"containerID", "containerd://" + digest},
                          {"resources", container.value("resources", Json::object())},
                          {"allocatedResources", {{"cpu", "1"}, {"memory", "1Gi"}}}});
    }
  }
  return stored(std::move(pod), uid);
}

Json trainer_of(const Json& job) {
  Json pod = job["spec"]["template"];
  pod["apiVersion"] = "v1";
  pod["kind"] = "Pod";
  Json& metadata = pod["metadata"];
  metadata["name"] = std::string(kJob) + "-0-abcde";
  metadata["namespace"] = kNamespace;
  metadata["labels"].update({{"batch.kubernetes.io/job-name", kJob},
                             {"batch.kubernetes.io/controller-uid", job["metadata"]["uid"]},
                             {"batch.kubernetes.io/job-completion-index", "0"}});
  metadata["ownerReferences"] = {{{"apiVersion", "batch/v1"},
                                  {"kind", "Job"},
                                  {"name", kJob},
                                  {"uid", job["metadata"]["uid"]},
                                  {"controller", true},
                                  {"blockOwnerDeletion", true}}};
  return pod_of(std::move(pod), "20000000-0000-4000-8000-000" + std::string(kJob), StoredCluster::Stage::kReady);
}

Json stranger_of() {
  Json pod = Json::parse(
      R"({"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "kube-system", "generateName": "stranger-",
    "labels": {"app.kubernetes.io/name": "node-exporter", "app.kubernetes.io/part-of": "monitoring", "controller-revision-hash": "6c8d5f7b9",
      "pod-template-generation": "1", "app.kubernetes.io/version": "1.8.2"},
    "ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "stranger", "controller": true, "blockOwnerDeletion": true,
      "uid": "30000000-0000-4000-8000-000000000000"}]},
    "spec": {"containers": [
      {"name": "exporter", "image": "quay.example/prometheus/node-exporter:v1.8.2", "args": ["--path.rootfs=/host", "--no-collector.wifi"],
       "env": [{"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
       "ports": [{"name": "metrics", "containerPort": 9100, "hostPort": 9100, "protocol": "TCP"}],
       "livenessProbe": {"httpGet": {"path": "/healthz", "port": 9100, "scheme": "HTTP"}, "periodSeconds": 10, "failureThreshold": 3},
       "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"memory": "128Mi"}},
       "volumeMounts": [{"name": "root", "mountPath": "/host", "readOnly": true}]},
      {"name": "proxy", "image": "quay.example/brancz/kube-rbac-proxy:v0.18.1", "args": ["--secure-listen-address=:9100"],
       "resources": {"requests": {"cpu": "10m", "memory": "20Mi"}, "limits": {"cpu": "20m", "memory": "40Mi"}}}],
      "volumes": [{"name": "root", "hostPath": {"path": "/", "type": ""}}]}})");
  pod["metadata"]["name"] = std::string(kStranger) + "-" + std::string(kNode);
  return pod_of(std::move(pod), "30000000-" + std::string(kStranger) + "-0-000" + std::string(kNode),
                StoredCluster::Stage::kReady);
}

Json node_of(int images) {
  Json node = Json::parse(R"({"apiVersion": "v1", "kind": "Node", "metadata": {
      "annotations": {"node.alpha.kubernetes.io/ttl": "0", "csi.volume.kubernetes.io/nodeid": "{\"ebs.csi.example\":\"i-0123456789abcdef0\"}"},
      "labels": {"kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux", "node.kubernetes.io/instance-type": "m6i.16xlarge",
        "topology.kubernetes.io/region": "eu-central-1", "topology.kubernetes.io/zone": "eu-central-1a",
        "failure-domain.beta.kubernetes.io/region": "eu-central-1", "failure-domain.beta.kubernetes.io/zone": "eu-central-1a",
        "beta.kubernetes.io/arch": "amd64", "beta.kubernetes.io/os": "linux", "eks.amazonaws.com/capacityType": "ON_DEMAND",
        "eks.amazonaws.com/nodegroup": "workers", "nvidia.com/gpu.present": "true"}},
    "spec": {"podCIDR": "10.244.0.0/24", "podCIDRs": ["10.244.0.0/24"], "providerID": "aws:///eu-central-1a/i-0123456789abcdef0"},
    "status": {"nodeInfo": {"architecture": "amd64", "bootID": "a", "kernelVersion": "6.1.0", "kubeletVersion": "v1.34.4", "osImage": "Linux",
        "containerRuntimeVersion": "containerd://2.1.0", "operatingSystem": "linux", "machineID": "b", "systemUUID": "c", "kubeProxyVersion": ""},
      "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}, {"type": "Hostname", "address": "node"}],
      "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}}}})");
  node["metadata"]["name"] = kNode;
  node["metadata"]["labels"]["kubernetes.io/hostname"] = kNode;
  Json& status = node["status"];
  const Json resources = {
      {"cpu", "64"},          {"memory", "256Gi"},    {"pods", "110"},        {"ephemeral-storage", "100Gi"},
      {"hugepages-1Gi", "0"}, {"hugepages-2Mi", "0"}, {"nvidia.com/gpu", "8"}};
  status["capacity"] = status["allocatable"] = resources;
  for (const char* pressure : {"MemoryPressure", "DiskPressure", "PIDPressure"})
    status["conditions"].push_back(
        condition(pressure, false, "KubeletHasSufficient", "kubelet has sufficient resources available"));
  status["conditions"].push_back(condition("Ready", true, "KubeletReady", "kubelet is posting ready status"));
  for (int image = 0; image < images; ++image) {
    const std::string name = "registry.example/team/some-image-" + std::to_string(image);
    status["images"].push_back(
        {{"names", {name + "@sha256:" + std::string(64, 'd'), name + ":v1.2." + std::to_string(image)}},
         {"sizeBytes", 123456789 + image}});
  }
  return stored(std::move(node), "40000000-0000-4000-8000-00" + std::string(kNode));
}

}  // namespace

Result<StoredCluster> StoredCluster::make(const ClusterSize& size) {
  StoredCluster cluster;
  cluster.size_ = size;
  control::Config config;
  config.image = "registry.example/sluice:1.0.0";
  const Json training_job = training_job_of();
  act::TrainingJobWorld world;
  world.training_job = std::make_shared<const Json>(training_job);
  world.now = std::chrono::system_clock::now();
  const auto identity = [&](const std::string& job) {
    return act::make_tls_identity(job, api::kTlsServerName, world.now);
  };
  SLUICE_TRY(const std::vector<kube::Action> children, act::reconcile_children(world, config, identity));
  cluster.training_job_ = training_job.dump();
  const std::string child_uid = "0000000-0000-4000-8000-000" + std::string(kJob);
  for (const kube::Action& child : children) {
    Json body = child.body;
    if (child.resource == kube::kSecrets) {
      // As long as in base64. An immutable one has no other writer.
      for (const auto& [name, text] : body["stringData"].items()) {
        const auto& pem = text.get_ref<const std::string&>();
        body["data"][name] = pem + pem.substr(0, pem.size() / 3);
      }
      body.erase("stringData");
      body["immutable"] = true;
      cluster.secret_ = stored(body, "5" + child_uid).dump();
    } else if (child.resource == kube::kServices) {
      cluster.service_ = stored(body, "6" + child_uid).dump();
    } else if (child.resource == api::kNetworkPolicies) {
      cluster.network_policy_ = stored(body, "7" + child_uid).dump();
    } else if (child.resource == kube::kJobs) {
      body["status"] = {{"active", 1},
                        {"ready", 1},
                        {"startTime", "2026-01-01T00:00:00Z"},
                        {"uncountedTerminatedPods", Json::object()}};
      const Json job = stored(body, "8" + child_uid);
      cluster.job_ = job.dump();
      cluster.trainer_ = trainer_of(job).dump();
    } else if (child.resource == kube::kDataWorkerPools) {
      body["spec"]["replicas"] = size.workers_per_job;
      body["status"] = {{"replicas", size.workers_per_job},
                        {"readyReplicas", size.workers_per_job},
                        {"observedGeneration", 1},
                        {"conditions", {condition("Ready", true, "AllReady", "all workers are ready")}}};
      const Json pool = stored(body, "9" + child_uid);
      cluster.pool_ = pool.dump();
      const act::PoolStep step = act::reconcile_pool({.pool = std::make_shared<const Json>(pool)}, {});
      if (step.actions.empty()) return invalid_argument("the pool asks for no worker");
      const std::string uid = "50000000-0000-4000-" + std::string(kJob) + std::string(kWorker);
      cluster.pending_worker_ = pod_of(step.actions[0].body, uid, Stage::kPending).dump();
      cluster.bound_worker_ = pod_of(step.actions[0].body, uid, Stage::kBound).dump();
      cluster.ready_worker_ = pod_of(step.actions[0].body, uid, Stage::kReady).dump();
    }
  }
  cluster.stranger_ = stranger_of().dump();
  cluster.node_ = node_of(size.images_per_node).dump();
  return cluster;
}

int StoredCluster::count_of(const kube::Resource& resource) const {
  if (resource == kube::kPods) return size_.jobs * (size_.workers_per_job + 1) + size_.nodes * size_.strangers_per_node;
  if (resource == kube::kNodes) return size_.nodes;
  const kube::Resource per_job[] = {kube::kTrainingJobs, kube::kDataWorkerPools, kube::kJobs, kube::kServices,
                                    api::kNetworkPolicies};
  return std::find(std::begin(per_job), std::end(per_job), resource) == std::end(per_job) ? 0 : size_.jobs;
}

std::string StoredCluster::text_of(const kube::Resource& resource, int index, std::int64_t version) const {
  std::string text;
  int job = index, node = index % size_.nodes;
  if (resource == kube::kPods) {
    const int workers = size_.jobs * size_.workers_per_job;
    if (index < workers)
      return worker_text(index / size_.workers_per_job, index % size_.workers_per_job, version, Stage::kReady);
    job = index - workers;
    text = job < size_.jobs ? trainer_ : stranger_;
    if (job >= size_.jobs) put(text, kStranger, (job - size_.jobs) / size_.nodes);
    if (job >= size_.jobs) node = (job - size_.jobs) % size_.nodes;
  } else {
    const std::pair<kube::Resource, const std::string*> texts[] = {
        {kube::kTrainingJobs, &training_job_}, {kube::kDataWorkerPools, &pool_},          {kube::kJobs, &job_},
        {kube::kServices, &service_},          {api::kNetworkPolicies, &network_policy_}, {kube::kNodes, &node_}};
    for (const auto& [kind, like] : texts)
      if (kind == resource) text = *like;
  }
  put(text, kNode, node);
  put(text, kVersion, version);
  put(text, kNamespace, job % kNamespaces);
  put(text, kJob, job);
  return text;
}

std::string StoredCluster::worker_text(int job, int worker, std::int64_t version, Stage stage) const {
  std::string text = stage == Stage::kReady ? ready_worker_ : stage == Stage::kBound ? bound_worker_ : pending_worker_;
  put(text, kWorker, worker);
  put(text, kNode, (job * size_.workers_per_job + worker) % size_.nodes);
  put(text, kVersion, version);
  put(text, kNamespace, job % kNamespaces);
  put(text, kJob, job);
  return text;
}

std::string StoredCluster::secret_text(std::string_view name) const {
  std::string text = secret_;
  int job = 0;
  std::sscanf(std::string(name).c_str(), "job-%d", &job);
  put(text, kNamespace, job % kNamespaces);
  put(text, kJob, job);
  return text;
}

}  // namespace sluice::bench
