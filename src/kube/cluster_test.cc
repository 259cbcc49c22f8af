// Against a real API server: only with SLUICE_TEST_KUBECONFIG. Everything happens in a namespace of the test's own,
// which is deleted at the end.
#include <atomic>
#include <cstdlib>
#include <thread>

#include <nlohmann/json.hpp>

#include "src/base/testing/catch.h"
#include "src/kube/action.h"
#include "src/kube/config.h"
#include "src/kube/event_recorder.h"
#include "src/kube/informer.h"
#include "src/kube/leader_election.h"
#include "src/kube/watch.h"

namespace sluice::kube {
namespace {

using namespace std::chrono_literals;

constexpr const char* kManager = "sluice-test";

bool eventually(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + 30s;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(10ms);
  }
  return true;
}

class Cluster {
 public:
  explicit Cluster(const char* kubeconfig) {
    const auto connection = read_kubeconfig(kubeconfig, clock_);
    REQUIRE(connection.ok());
    const auto transport = open_transport(*connection);
    REQUIRE(transport.ok());
    client_ = std::make_unique<Client>(*transport, clock_);
    const auto created =
        client_->create(kNamespaces, "", {{"metadata", {{"generateName", "sluice-kube-test-"}}}}, kManager);
    INFO((created.ok() ? "" : created.error().to_string()));
    REQUIRE(created.ok());
    namespace_ = (*created)["metadata"]["name"];
  }
  ~Cluster() {
    const auto removed = client_->remove(kNamespaces, {"", namespace_});
    if (!removed.ok()) WARN("left behind: namespace " << namespace_ << ": " << removed.error().to_string());
  }
  const Client& client() const { return *client_; }
  const Clock& clock() const { return clock_; }
  ObjectKey key(const std::string& name) const { return {namespace_, name}; }
  const std::string& namespace_name() const { return namespace_; }

 private:
  SystemClock clock_;
  std::unique_ptr<Client> client_;
  std::string namespace_;
};

std::unique_ptr<Cluster> connect_or_skip() {
  const char* kubeconfig = std::getenv("SLUICE_TEST_KUBECONFIG");
  if (kubeconfig == nullptr) {
    WARN("skipped: set SLUICE_TEST_KUBECONFIG to a kubeconfig to run this test against a real API server");
    return nullptr;
  }
  return std::make_unique<Cluster>(kubeconfig);
}

template <typename Value>
ErrorCode code_of(const Result<Value>& result) {
  return result.ok() ? ErrorCode::kInternal : result.error().code();
}

TEST_CASE("a real API server: a token of a service account is good for one audience alone", "[cluster]") {
  const auto cluster = connect_or_skip();
  if (!cluster) return;
  const Client& client = cluster->client();
  REQUIRE(
      client.create(kServiceAccounts, cluster->namespace_name(), {{"metadata", {{"name", "reader"}}}}, kManager).ok());
  const auto token = client.request_token(cluster->key("reader"), "plan");
  REQUIRE(token.ok());
  const auto user = client.review_token(*token, "plan");
  REQUIRE(user.ok());
  CHECK(*user == "system:serviceaccount:" + cluster->namespace_name() + ":reader");
  CHECK(code_of(client.review_token(*token, "another")) == ErrorCode::kUnauthenticated);
  CHECK(code_of(client.review_token("forged", "plan")) == ErrorCode::kUnauthenticated);
  const auto others = client.request_token(cluster->key("reader"), "another");
  REQUIRE(others.ok());
  CHECK(code_of(client.review_token(*others, "plan")) == ErrorCode::kUnauthenticated);
  CHECK(code_of(client.request_token(cluster->key("nobody"), "plan")) == ErrorCode::kNotFound);
}

TEST_CASE("a real API server: every verb and its errors", "[cluster]") {
  const auto cluster = connect_or_skip();
  if (!cluster) return;
  const Client& client = cluster->client();
  const ObjectKey key = cluster->key("settings");

  CHECK(code_of(client.get(kConfigMaps, key)) == ErrorCode::kNotFound);
  constexpr Resource kNotInstalled{"absent.example", "v1", "things", "Thing"};
  CHECK(code_of(client.get(kNotInstalled, key)) == ErrorCode::kNotFound);
  const auto applied = client.apply(kConfigMaps, key, {{"data", {{"a", "1"}, {"b", "2"}}}}, kManager);
  REQUIRE(applied.ok());
  const std::string uid = (*applied)["metadata"]["uid"];
  const std::string first_version = (*applied)["metadata"]["resourceVersion"];

  // What we no longer mention is dropped; what another manager owns stays.
  REQUIRE(client.merge_patch(kConfigMaps, key, {{"data", {{"c", "3"}}}}, "somebody-else").ok());
  REQUIRE(client.apply(kConfigMaps, key, {{"data", {{"a", "10"}}}}, kManager).ok());
  CHECK((*client.get(kConfigMaps, key))["data"] == Json{{"a", "10"}, {"c", "3"}});

  const Json create_again{{"metadata", {{"name", key.name}}}};
  CHECK(code_of(client.create(kConfigMaps, key.namespace_, create_again, kManager)) == ErrorCode::kAlreadyExists);
  const Json stale{{"metadata", {{"resourceVersion", first_version}}}, {"data", {{"a", "11"}}}};
  CHECK(code_of(client.merge_patch(kConfigMaps, key, stale, kManager)) == ErrorCode::kConflict);
  const Json other_uid{{"metadata", {{"uid", "00000000-0000-0000-0000-000000000000"}}}, {"data", {{"a", "12"}}}};
  CHECK(code_of(client.apply(kConfigMaps, key, other_uid, kManager)) == ErrorCode::kConflict);
  CHECK(code_of(client.apply(kConfigMaps, cluster->key("absent"), other_uid, kManager)) == ErrorCode::kConflict);
  CHECK(code_of(client.merge_patch(kConfigMaps, key, other_uid, kManager)) == ErrorCode::kConflict);
  CHECK(code_of(client.merge_patch(kConfigMaps, cluster->key("absent"), stale, kManager)) == ErrorCode::kNotFound);

  const auto invalid = client.apply(kServices, cluster->key("bad"), {{"spec", {{"ports", {{{"port", 0}}}}}}}, kManager);
  REQUIRE_FALSE(invalid.ok());
  CHECK(invalid.error().code() == ErrorCode::kInvalidArgument);
  CHECK_THAT(invalid.error().message(), Catch::Contains("spec.ports[0].port"));

  Action wrong_incarnation{Verb::kDelete, kConfigMaps, key};
  wrong_incarnation.uid = "00000000-0000-0000-0000-000000000000";
  CHECK(perform(client, wrong_incarnation).ok());
  CHECK(client.get(kConfigMaps, key).ok());
  Action removal{Verb::kDelete, kConfigMaps, key};
  removal.uid = uid;
  CHECK(perform(client, removal).ok());
  CHECK(perform(client, removal).ok());
  CHECK(code_of(client.get(kConfigMaps, key)) == ErrorCode::kNotFound);
}

TEST_CASE("a real API server: pages of a list", "[cluster]") {
  const auto cluster = connect_or_skip();
  if (!cluster) return;
  for (int i = 0; i < 7; ++i) {
    REQUIRE(cluster->client().apply(kConfigMaps, cluster->key("c" + std::to_string(i)), Json::object(), kManager).ok());
  }
  ListOptions options{cluster->namespace_name()};
  options.page_size = 3;
  options.field_selector = "metadata.name!=kube-root-ca.crt";
  const auto list = cluster->client().list(kConfigMaps, options);
  REQUIRE(list.ok());
  CHECK(list->items.size() == 7);
  CHECK(list->items[6]["kind"] == "ConfigMap");
  CHECK_FALSE(list->resource_version.empty());
}

TEST_CASE("a real API server: an informer follows", "[cluster]") {
  const auto cluster = connect_or_skip();
  if (!cluster) return;
  const Client& client = cluster->client();
  ReflectorOptions options;
  options.namespace_ = cluster->namespace_name();
  options.label_selector = "watched=yes";
  std::atomic<int> added = 0;
  std::atomic<int> changed = 0;
  std::atomic<int> deleted = 0;
  Informer informer(client, cluster->clock(), system_random(), kConfigMaps, options);
  informer.add_handler([&](const Change& change) { ++(change.before ? change.after ? changed : deleted : added); });
  informer.start();
  REQUIRE(informer.wait_for_sync({}));

  const Json labelled{{"metadata", {{"labels", {{"watched", "yes"}}}}}};
  const ObjectKey key = cluster->key("followed");
  REQUIRE(client.apply(kConfigMaps, key, labelled, kManager).ok());
  REQUIRE(client.apply(kConfigMaps, cluster->key("ignored"), Json::object(), kManager).ok());
  CHECK(eventually([&] { return added == 1; }));
  REQUIRE(client.merge_patch(kConfigMaps, key, {{"data", {{"x", "y"}}}}, kManager).ok());
  CHECK(eventually([&] { return changed == 1; }));
  CHECK((*informer.store().get(key))["data"]["x"] == "y");
  CHECK_FALSE((*informer.store().get(key))["metadata"].contains("managedFields"));
  REQUIRE(client.remove(kConfigMaps, key).ok());
  CHECK(eventually([&] { return deleted == 1; }));
  CHECK(informer.store().size() == 0);
}

TEST_CASE("a real API server: a watch from a forgotten version is Gone", "[cluster]") {
  const auto cluster = connect_or_skip();
  if (!cluster) return;
  WatchOptions options{cluster->namespace_name(), "", "", "1", 5s};
  const auto watched = cluster->client().watch(kConfigMaps, options, [](WatchEvent&&) { return Result<void>(); }, {});
  // A young cluster may still know its first version; then the watch ends cleanly after its five seconds.
  if (!watched.ok()) CHECK(watched.error().code() == ErrorCode::kGone);
}

TEST_CASE("a real API server: leader election and events", "[cluster]") {
  const auto cluster = connect_or_skip();
  if (!cluster) return;
  const Client& client = cluster->client();
  std::atomic<bool> leads = false;
  LeaderElector elector(client, cluster->clock(), system_random(), {cluster->key("leader"), "me"},
                        {[&] { leads = true; }, [] {}});
  std::atomic<bool> ended_well = false;
  std::jthread thread([&](std::stop_token stop) { ended_well = elector.run(stop).ok(); });
  REQUIRE(eventually([&] { return leads.load(); }));
  const auto renew_time = [&] {
    const auto lease = client.get(kLeases, cluster->key("leader"));
    return lease.ok() ? (*lease)["spec"].value("renewTime", "") : std::string();
  };
  const std::string before = renew_time();
  CHECK(eventually([&] { return !renew_time().empty() && renew_time() != before; }));
  thread.request_stop();
  thread.join();
  CHECK(ended_well);
  CHECK((*client.get(kLeases, cluster->key("leader")))["spec"].value("holderIdentity", "") == "");

  EventRecorderOptions options;
  options.instance = "test";
  EventRecorder recorder(client, cluster->clock(), options);
  recorder.start();
  const Event event{kConfigMaps, cluster->key("x"), "", EventType::kNormal, "Tested", "Test", "a note"};
  for (int i = 0; i < 2; ++i) recorder.record(event);
  CHECK(eventually([&] {
    const auto events = client.list(kEvents, {cluster->namespace_name()});
    if (!events.ok()) return false;
    for (const Json& found : events->items) {
      if (found.value("reason", "") == "Tested" && found.contains("series") && found["series"]["count"] == 2)
        return true;
    }
    return false;
  }));
}

}  // namespace
}  // namespace sluice::kube
