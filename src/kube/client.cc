#include "src/kube/client.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "src/base/utf8.h"
#include "src/http/retry.h"
#include "src/kube/json_member.h"
#include "src/kube/json_text.h"
#include "src/kube/status.h"
#include "src/kube/watch.h"

namespace sluice::kube {
namespace {

constexpr std::size_t kMaxQuotedBytes = 200;  // of an answer that is something else

// What came in place of an object. An object that was cut off is not quoted: it may be a Secret.
std::string seen_in(const std::string& body) {
  if (body.starts_with('{')) return "JSON that is cut off or damaged, of " + std::to_string(body.size()) + " bytes";
  return body.empty() ? "nothing" : quote_body(body, kMaxQuotedBytes);
}

class Query {
 public:
  Query& add(std::string_view name, std::string_view value) {
    if (value.empty()) return *this;
    text_ += text_.empty() ? '?' : '&';
    text_ += std::string(name) + "=" + http::percent_encode(value);
    return *this;
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

std::string describe(std::string_view verb, const Resource& resource, const ObjectKey& key,
                     std::string_view subresource = "") {
  std::string text = std::string(verb) + " " + std::string(resource.kind) + " " + key.to_string();
  if (!subresource.empty()) text += "/" + std::string(subresource);
  return text;
}

const char* name_of(Propagation propagation) {
  switch (propagation) {
    case Propagation::kForeground: return "Foreground";
    case Propagation::kOrphan: return "Orphan";
    case Propagation::kBackground: break;
  }
  return "Background";
}

}  // namespace

Client::Client(std::shared_ptr<http::Transport> transport, const Clock& clock, ClientOptions options)
    : transport_(std::move(transport)),
      retrying_(http::with_retries(transport_, clock,
                                   {.max_retries = options.max_retries, .max_wait = options.max_retry_wait})),
      clock_(clock),
      options_(std::move(options)) {}

Result<http::Response> Client::send(http::Request request, std::stop_token stop) const {
  request.headers.try_emplace("Accept", "application/json");
  request.headers["User-Agent"] = options_.user_agent;
  return retrying_->send(request, options_.timeout, std::move(stop));
}

Result<Json> Client::exchange(http::Request request, std::string_view what, std::stop_token stop,
                              MemberPath left_out) const {
  Result<http::Response> response = send(std::move(request), std::move(stop));
  if (!response.ok()) return response.error().with_context(what);
  if (!response->succeeded()) return error_of_response(what, response->status, response->body);
  std::optional<Json> parsed = parse_json(response->body, left_out);
  if (!parsed || !parsed->is_object())
    return Error(ErrorCode::kDataLoss,
                 std::string(what) + ": the answer is no JSON object but " + seen_in(response->body));
  return std::move(*parsed);
}

Result<Json> Client::exchange_object(http::Request request, std::string_view what, std::string_view kind,
                                     std::stop_token stop) const {
  SLUICE_TRY(Json answer, exchange(std::move(request), what, std::move(stop)));
  if (text_at(answer, "kind") != kind)
    return Error(ErrorCode::kDataLoss, std::string(what) + ": the answer is no " + std::string(kind));
  return answer;
}

Result<std::string> Client::exchange_text(http::Request request, std::string_view what, std::stop_token stop) const {
  request.headers["Accept"] = "*/*";
  Result<http::Response> response = send(std::move(request), std::move(stop));
  if (!response.ok()) return response.error().with_context(what);
  if (!response->succeeded()) return error_of_response(what, response->status, response->body);
  return std::move(response->body);
}

Result<ObjectList> Client::list_page(const Resource& resource, const ListOptions& options, std::stop_token stop) const {
  const std::string what = describe("list", resource, {options.namespace_, "*"});
  Query query;
  query.add("labelSelector", options.label_selector).add("fieldSelector", options.field_selector);
  if (options.page_size > 0) query.add("limit", std::to_string(options.page_size));
  // A continuation carries its own version; the server refuses both together.
  query.add(options.continuation.empty() ? "resourceVersion" : "continue",
            options.continuation.empty() ? options.resource_version : options.continuation);
  http::Request request{"GET", collection_path(resource, options.namespace_) + query.text()};
  SLUICE_TRY(Json page, exchange(std::move(request), what, std::move(stop), kManagedFieldsOfList));
  const auto items = page.find("items");
  if (items == page.end() || !(items->is_array() || items->is_null())) {
    return Error(ErrorCode::kDataLoss, what + ": the answer has no items");
  }
  // With another service's JSON in its place all objects would count as gone.
  const std::string version = text_at(page, "metadata", "resourceVersion");
  if (version.empty() || !text_at(page, "kind").ends_with("List"))
    return Error(ErrorCode::kDataLoss, what + ": the answer is no list of the API server");
  ObjectList list;
  list.items.reserve(items->size());
  for (Json& item : *items) {
    if (!item.is_object()) return Error(ErrorCode::kDataLoss, what + ": an item is no object");
    // Lists leave out what would be the same in every item.
    item["apiVersion"] = resource.api_version();
    item["kind"] = resource.kind;
    list.items.push_back(std::move(item));
  }
  list.resource_version = version;
  list.continuation = text_at(page, "metadata", "continue");
  return list;
}

Result<ObjectList> Client::list(const Resource& resource, const ListOptions& options, std::stop_token stop) const {
  SLUICE_TRY(ObjectList all, list_page(resource, options, stop));
  ListOptions next = options;
  while (!all.continuation.empty()) {
    next.continuation = std::move(all.continuation);
    SLUICE_TRY(ObjectList page, list_page(resource, next, stop));
    std::move(page.items.begin(), page.items.end(), std::back_inserter(all.items));
    all.resource_version = std::move(page.resource_version);
    all.continuation = std::move(page.continuation);
  }
  return all;
}

Result<Json> Client::get(const Resource& resource, const ObjectKey& key, std::stop_token stop) const {
  return exchange_object({"GET", object_path(resource, key)}, describe("get", resource, key), resource.kind,
                         std::move(stop));
}

Result<bool> Client::serves(const Resource& resource, std::string_view subresource, std::stop_token stop) const {
  const std::string path = (resource.group.empty() ? "/api/" : "/apis/") + resource.api_version();
  const std::string what = describe("discover", resource, {}, subresource);
  SLUICE_TRY(const Json answer, exchange({"GET", path}, what, std::move(stop)));
  const auto resources = answer.find("resources");
  if (resources == answer.end() || !resources->is_array())
    return Error(ErrorCode::kDataLoss, what + ": the answer has no resources");
  const std::string name = std::string(resource.plural) + "/" + std::string(subresource);
  return std::any_of(resources->begin(), resources->end(),
                     [&](const Json& served) { return served.is_object() && served.value("name", Json()) == name; });
}

namespace {

// Only a number: the name of a port, which services may have here, makes the API server (1.34) break off.
std::string page_path(const ObjectKey& pod, int port, std::string_view target) {
  return object_path(kPods, {pod.namespace_, pod.name + ":" + std::to_string(port)}, "proxy") + std::string(target);
}

}  // namespace

Result<Json> Client::get_from_pod(const ObjectKey& pod, int port, std::string_view target, http::Headers headers,
                                  std::stop_token stop) const {
  return exchange({"GET", page_path(pod, port, target), std::move(headers)}, describe("get from", kPods, pod),
                  std::move(stop));
}

Result<std::string> Client::get_text_from_pod(const ObjectKey& pod, int port, std::string_view target,
                                              std::stop_token stop) const {
  return exchange_text({"GET", page_path(pod, port, target)}, describe("get from", kPods, pod), std::move(stop));
}

Result<std::string> Client::read_log(const ObjectKey& pod, std::string_view container, bool previous, int lines,
                                     std::int64_t bytes, std::stop_token stop) const {
  Query query;
  query.add("container", container).add("previous", previous ? "true" : "");
  query.add("tailLines", std::to_string(lines)).add("limitBytes", std::to_string(bytes));
  return exchange_text({"GET", object_path(kPods, pod, "log") + query.text()}, describe("get", kPods, pod, "log"),
                       std::move(stop));
}

Result<std::string> Client::request_token(const ObjectKey& service_account, std::string_view audience,
                                          std::stop_token stop) const {
  http::Request request{"POST", object_path(kServiceAccounts, service_account, "token")};
  request.headers["Content-Type"] = "application/json";
  request.body = text_of({{"apiVersion", "authentication.k8s.io/v1"},
                          {"kind", "TokenRequest"},
                          {"spec", {{"audiences", Json::array({audience})}, {"expirationSeconds", 600}}}});
  const std::string what = describe("request a token of", kServiceAccounts, service_account);
  SLUICE_TRY(const Json answer, exchange(std::move(request), what, std::move(stop)));
  std::string token = text_at(answer, "status", "token");
  if (token.empty()) return Error(ErrorCode::kDataLoss, what + ": the answer holds none");
  return token;
}

Result<std::string> Client::review_token(std::string_view token, std::string_view audience,
                                         std::stop_token stop) const {
  const Json question = {{"spec", {{"token", token}, {"audiences", Json::array({audience})}}}};
  SLUICE_TRY(const Json answer, create(kTokenReviews, "", question, options_.user_agent, std::move(stop)));
  const Json status = answer.value("status", Json::object());
  const Json audiences = status.value("audiences", Json::array());
  // A server that does not know audiences leaves them out, and has reviewed the token for its own.
  const bool good = status.value("authenticated", false) &&
                    std::find(audiences.begin(), audiences.end(), audience) != audiences.end();
  if (!good)
    return Error(ErrorCode::kUnauthenticated, "the API server knows no such token for " + std::string(audience));
  return text_at(status, "user", "username");
}

Result<Json> Client::create(const Resource& resource, std::string_view namespace_, const Json& object,
                            std::string_view field_manager, std::stop_token stop) const {
  ObjectKey key{std::string(namespace_), key_of(object).name};
  if (key.name.empty()) key.name = text_at(object, "metadata", "generateName") + "*";
  Json body = object;
  body["apiVersion"] = resource.api_version();
  body["kind"] = resource.kind;
  http::Request request{"POST", collection_path(resource, namespace_) +
                                    Query().add("fieldManager", field_manager).add("fieldValidation", "Strict").text()};
  request.headers["Content-Type"] = "application/json";
  request.body = text_of(body);
  request.may_repeat = body.contains("/metadata/name"_json_pointer);
  return exchange_object(std::move(request), describe("create", resource, key), resource.kind, std::move(stop));
}

Result<Json> Client::apply(const Resource& resource, const ObjectKey& key, const Json& object,
                           std::string_view field_manager, std::string_view subresource, std::stop_token stop) const {
  Json body = object;
  body["apiVersion"] = resource.api_version();
  body["kind"] = resource.kind;
  body["metadata"]["name"] = key.name;
  if (!key.namespace_.empty()) body["metadata"]["namespace"] = key.namespace_;
  Query query;
  query.add("fieldManager", field_manager).add("force", "true").add("fieldValidation", "Strict");
  http::Request request{"PATCH", object_path(resource, key, subresource) + query.text()};
  request.headers["Content-Type"] = "application/apply-patch+yaml";  // JSON is YAML
  request.body = text_of(body);
  return exchange_object(std::move(request), describe("apply", resource, key, subresource), resource.kind,
                         std::move(stop));
}

Result<Json> Client::merge_patch(const Resource& resource, const ObjectKey& key, const Json& patch,
                                 std::string_view field_manager, std::string_view subresource,
                                 std::stop_token stop) const {
  http::Request request{"PATCH",
                        object_path(resource, key, subresource) + Query().add("fieldManager", field_manager).text()};
  request.headers["Content-Type"] = "application/merge-patch+json";
  request.body = text_of(patch);
  return exchange_object(std::move(request), describe("patch", resource, key, subresource), resource.kind,
                         std::move(stop));
}

Result<void> Client::remove(const Resource& resource, const ObjectKey& key, const RemoveOptions& options,
                            std::stop_token stop) const {
  Json body{{"apiVersion", "v1"}, {"kind", "DeleteOptions"}, {"propagationPolicy", name_of(options.propagation)}};
  if (!options.uid.empty()) body["preconditions"]["uid"] = options.uid;
  if (!options.resource_version.empty()) body["preconditions"]["resourceVersion"] = options.resource_version;
  if (options.grace_period_seconds) body["gracePeriodSeconds"] = *options.grace_period_seconds;
  http::Request request{"DELETE", object_path(resource, key)};
  request.headers["Content-Type"] = "application/json";
  request.body = text_of(body);
  const std::string what = describe("delete", resource, key);
  SLUICE_TRY(const Json answer, exchange(std::move(request), what, std::move(stop)));
  // The object with its deletion time, or, if it has gone at once, a Status.
  const std::string kind = text_at(answer, "kind");
  if (kind == resource.kind || (kind == "Status" && text_at(answer, "status") == "Success")) return {};
  return Error(ErrorCode::kDataLoss, what + ": the answer is no " + std::string(resource.kind));
}

http::Request Client::watch_request(const Resource& resource, const WatchOptions& options) const {
  Query query;
  query.add("watch", "true").add("allowWatchBookmarks", "true");
  if (options.initial_events) query.add("sendInitialEvents", "true").add("resourceVersionMatch", "NotOlderThan");
  query.add("labelSelector", options.label_selector).add("fieldSelector", options.field_selector);
  query.add("resourceVersion", options.resource_version);
  query.add("timeoutSeconds", std::to_string(options.timeout.count()));
  http::Request request{"GET", collection_path(resource, options.namespace_) + query.text()};
  request.headers["Accept"] = "application/json";
  request.headers["User-Agent"] = options_.user_agent;
  return request;
}

Result<void> Client::watch(const Resource& resource, const WatchOptions& options, const WatchHandler& handler,
                           std::stop_token stop) const {
  WatchDecoder decoder(describe("watch", resource, {options.namespace_, "*"}), handler);
  return decoder.end(
      transport_->stream(watch_request(resource, options), decoder, options.silence_limit, std::move(stop)));
}

}  // namespace sluice::kube
