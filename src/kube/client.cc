#include "src/kube/client.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include <nlohmann/json.hpp>

#include "src/kube/status.h"
#include "src/kube/watch.h"

namespace sluice::kube {
namespace {

// An object may have 1.5 MiB in etcd (its default request limit) and a little more as JSON.
constexpr std::size_t kMaxWatchLineBytes = 16u << 20;

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

std::string text_at(const Json& object, const char* outer, const char* inner) {
  const auto found = object.find(outer);
  if (found == object.end() || !found->is_object()) return {};
  const auto text = found->find(inner);
  return text != found->end() && text->is_string() ? text->get<std::string>() : std::string();
}

// How long the server asks us to wait; nullopt when it does not ask. Only whole seconds are used by API servers.
std::optional<std::chrono::seconds> retry_after(const http::Response& response) {
  if (response.status != 429 && response.status < 500) return std::nullopt;
  const auto header = response.headers.find("Retry-After");
  if (header == response.headers.end()) return std::nullopt;
  int seconds = 0;
  const std::string& text = header->second;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (parsed.ec != std::errc() || seconds < 0) return std::nullopt;
  return std::chrono::seconds(seconds);
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
    : transport_(std::move(transport)), clock_(clock), options_(std::move(options)) {}

Result<http::Response> Client::send(http::Request request, std::stop_token stop) const {
  request.headers["Accept"] = "application/json";
  request.headers["User-Agent"] = options_.user_agent;
  for (int retries = 0;; ++retries) {
    Result<http::Response> response = transport_->send(request, options_.timeout, stop);
    if (!response.ok() || retries >= options_.max_retries) return response;
    const auto wait = retry_after(*response);
    if (!wait) return response;
    if (!clock_.sleep_for(std::min(*wait, options_.max_retry_wait), stop)) {
      return Error(ErrorCode::kCancelled, "stopped");
    }
  }
}

Result<Json> Client::exchange(http::Request request, std::string_view what, std::stop_token stop) const {
  Result<http::Response> response = send(std::move(request), std::move(stop));
  if (!response.ok()) return response.error().with_context(what);
  if (!response->succeeded()) return error_of_response(what, response->status, response->body);
  Json parsed = Json::parse(response->body, nullptr, false);
  if (!parsed.is_object()) return Error(ErrorCode::kDataLoss, std::string(what) + ": the answer is no JSON object");
  return parsed;
}

Result<ObjectList> Client::list(const Resource& resource, const ListOptions& options, std::stop_token stop) const {
  const std::string what = describe("list", resource, {options.namespace_, "*"});
  ObjectList list;
  std::string continuation;
  do {
    Query query;
    query.add("labelSelector", options.label_selector).add("fieldSelector", options.field_selector);
    if (options.page_size > 0) query.add("limit", std::to_string(options.page_size));
    // A continuation carries its own version; the server refuses both together.
    query.add(continuation.empty() ? "resourceVersion" : "continue",
              continuation.empty() ? options.resource_version : continuation);
    http::Request request{"GET", collection_path(resource, options.namespace_) + query.text()};
    SLUICE_TRY(Json page, exchange(std::move(request), what, stop));
    const auto items = page.find("items");
    if (items == page.end() || !(items->is_array() || items->is_null())) {
      return Error(ErrorCode::kDataLoss, what + ": the answer has no items");
    }
    for (Json& item : *items) {
      // Lists leave out what would be the same in every item.
      item["apiVersion"] = resource.api_version();
      item["kind"] = resource.kind;
      list.items.push_back(std::move(item));
    }
    list.resource_version = text_at(page, "metadata", "resourceVersion");
    continuation = text_at(page, "metadata", "continue");
  } while (!continuation.empty());
  return list;
}

Result<Json> Client::get(const Resource& resource, const ObjectKey& key, std::stop_token stop) const {
  return exchange({"GET", object_path(resource, key)}, describe("get", resource, key), std::move(stop));
}

Result<Json> Client::create(const Resource& resource, std::string_view namespace_, const Json& object,
                            std::string_view field_manager, std::stop_token stop) const {
  ObjectKey key{std::string(namespace_), key_of(object).name};
  if (key.name.empty()) key.name = text_at(object, "metadata", "generateName") + "*";
  Json body = object;
  body["apiVersion"] = resource.api_version();
  body["kind"] = resource.kind;
  http::Request request{"POST",
                        collection_path(resource, namespace_) + Query().add("fieldManager", field_manager).text()};
  request.headers["Content-Type"] = "application/json";
  request.body = body.dump();
  return exchange(std::move(request), describe("create", resource, key), std::move(stop));
}

Result<Json> Client::apply(const Resource& resource, const ObjectKey& key, const Json& object,
                           std::string_view field_manager, std::string_view subresource, std::stop_token stop) const {
  Json body = object;
  body["apiVersion"] = resource.api_version();
  body["kind"] = resource.kind;
  body["metadata"]["name"] = key.name;
  if (!key.namespace_.empty()) body["metadata"]["namespace"] = key.namespace_;
  Query query;
  query.add("fieldManager", field_manager).add("force", "true");
  http::Request request{"PATCH", object_path(resource, key, subresource) + query.text()};
  request.headers["Content-Type"] = "application/apply-patch+yaml";  // JSON is YAML
  request.body = body.dump();
  return exchange(std::move(request), describe("apply", resource, key, subresource), std::move(stop));
}

Result<Json> Client::merge_patch(const Resource& resource, const ObjectKey& key, const Json& patch,
                                 std::string_view field_manager, std::string_view subresource,
                                 std::stop_token stop) const {
  http::Request request{"PATCH",
                        object_path(resource, key, subresource) + Query().add("fieldManager", field_manager).text()};
  request.headers["Content-Type"] = "application/merge-patch+json";
  request.body = patch.dump();
  return exchange(std::move(request), describe("patch", resource, key, subresource), std::move(stop));
}

Result<void> Client::remove(const Resource& resource, const ObjectKey& key, const RemoveOptions& options,
                            std::stop_token stop) const {
  Json body{{"apiVersion", "v1"}, {"kind", "DeleteOptions"}, {"propagationPolicy", name_of(options.propagation)}};
  if (!options.uid.empty()) body["preconditions"]["uid"] = options.uid;
  if (!options.resource_version.empty()) body["preconditions"]["resourceVersion"] = options.resource_version;
  if (options.grace_period_seconds) body["gracePeriodSeconds"] = *options.grace_period_seconds;
  http::Request request{"DELETE", object_path(resource, key)};
  request.headers["Content-Type"] = "application/json";
  request.body = body.dump();
  const Result<Json> answer = exchange(std::move(request), describe("delete", resource, key), std::move(stop));
  return answer.ok() ? Result<void>() : answer.error();
}

Result<void> Client::watch(const Resource& resource, const WatchOptions& options, const WatchHandler& handler,
                           std::stop_token stop) const {
  const std::string what = describe("watch", resource, {options.namespace_, "*"});
  Query query;
  query.add("watch", "true").add("allowWatchBookmarks", "true");
  query.add("labelSelector", options.label_selector).add("fieldSelector", options.field_selector);
  query.add("resourceVersion", options.resource_version);
  query.add("timeoutSeconds", std::to_string(options.timeout.count()));
  http::Request request{"GET", collection_path(resource, options.namespace_) + query.text()};
  request.headers["Accept"] = "application/json";
  request.headers["User-Agent"] = options_.user_agent;

  LineFramer framer(kMaxWatchLineBytes, [&handler](std::string_view line) -> Result<void> {
    SLUICE_TRY(WatchEvent event, parse_watch_event(line));
    handler(std::move(event));
    return {};
  });
  const auto response = transport_->stream(request, framer, options.silence_limit, std::move(stop));
  if (!response.ok()) return response.error().with_context(what);
  if (!response->succeeded()) return error_of_response(what, response->status, response->body);
  if (framer.has_partial_line()) return unavailable(what + ": ended in the middle of an event");
  return {};
}

}  // namespace sluice::kube
