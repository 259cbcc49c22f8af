#include "src/kube/fake/api_server.h"

#include <algorithm>
#include <charconv>
#include <cstdio>

#include "src/kube/fake/pod_resize.h"
#include "src/kube/fake/watch_session.h"
#include "src/kube/json_member.h"
#include "src/kube/json_text.h"
#include "src/kube/timestamp.h"

namespace sluice::kube::fake {
namespace {

std::uint64_t number_of(const std::string& text) {
  std::uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

Reply scale_of(const Kind& kind, const Json& object) {
  const auto value = [&](const std::string& pointer, const Json& fallback) {
    const Json& found = value_at(object, pointer);
    return found.is_null() ? fallback : found;
  };
  Json scale = {{"apiVersion", "autoscaling/v1"},
                {"kind", "Scale"},
                {"metadata", object.at("metadata")},
                {"spec", Json::object()},
                {"status", {{"replicas", value(kind.scale->status_replicas, 0)}}}};
  if (const Json replicas = value(kind.scale->spec_replicas, 0); replicas != 0) scale["spec"]["replicas"] = replicas;
  if (const Json selector = value(kind.scale->selector, ""); selector != "") scale["status"]["selector"] = selector;
  return {200, std::make_shared<const Json>(std::move(scale))};
}

RemoveOptions removal_of(const Json& body) {
  RemoveOptions options;
  options.uid = text_at(body, "preconditions", "uid");
  options.resource_version = text_at(body, "preconditions", "resourceVersion");
  const std::string policy = text_at(body, "propagationPolicy");
  if (policy == "Foreground") options.propagation = Propagation::kForeground;
  if (policy == "Orphan") options.propagation = Propagation::kOrphan;
  if (body.contains("gracePeriodSeconds")) options.grace_period_seconds = body.at("gracePeriodSeconds");
  return options;
}

}  // namespace

ApiServer::ApiServer(const Clock& clock) : clock_(clock), kinds_(builtin_kinds()) {
  create_object(kind_of(kNamespaces), {{"metadata", {{"name", "default"}}}}, std::nullopt);
}

ApiServer::~ApiServer() = default;

void ApiServer::serve(Crd crd) { kinds_.push_back(custom_kind(std::move(crd))); }

const Kind& ApiServer::kind_of(const Resource& resource) const {
  const auto found = std::find_if(kinds_.begin(), kinds_.end(), [&](const auto& kind) {
    return kind->group == resource.group && kind->plural == resource.plural;
  });
  return **found;
}

http::Response ApiServer::answer(const http::Request& request, const CacheView* view) {
  std::lock_guard lock(mutex_);
  const Result<Call> call = understand(request, kinds_);
  Reply reply;
  if (request.method == "GET" && request.target == "/api/v1")
    reply = core_resources();
  else if (call.ok())
    reply = dispatch(*call, view);
  else
    reply = refuse(404, "NotFound", "the server could not find the requested resource");
  // What was written is told to the watches, too.
  const StoredChange& last = storage_.history().back();
  return {reply.status,
          {{"Content-Type", "application/json"}},
          last.after == reply.body ? last.after_text() : text_of(*reply.body)};
}

// Discovery of the core group, without the verbs that no client here asks about.
Reply ApiServer::core_resources() const {
  Json resources = Json::array();
  const auto add = [&](const Kind& kind, const std::string& subresource) {
    resources.push_back({{"name", kind.plural + subresource},
                         {"kind", kind.name},
                         {"namespaced", kind.namespaced},
                         {"verbs", {"get", "patch"}}});
  };
  for (const auto& kind : kinds_) {
    if (!kind->group.empty()) continue;
    add(*kind, "");
    if (kind->has_status) add(*kind, "/status");
    if (kind->name == kPods.kind && resizes_pods_) add(*kind, "/resize");
  }
  const Json list = {{"kind", "APIResourceList"}, {"groupVersion", "v1"}, {"resources", std::move(resources)}};
  return {200, std::make_shared<const Json>(list)};
}

Reply ApiServer::dispatch(const Call& call, const CacheView* view) {
  const bool known = call.subresource.empty() || (call.subresource == "status" && call.kind->has_status) ||
                     (call.subresource == "scale" && call.kind->scale) ||
                     (call.subresource == "resize" && resizes_pods_ && call.kind->name == kPods.kind);
  if (!known) return refuse(404, "NotFound", "the server could not find the requested resource");
  if (call.method == "GET") return call.key.name.empty() ? list(call, view) : read(call, view);
  if (call.method == "POST" && call.key.name.empty()) return post(call);
  if (call.method == "PATCH" && !call.key.name.empty()) return patch(call);
  if (call.method == "DELETE" && !call.key.name.empty()) return delete_call(call);
  return refuse(405, "MethodNotAllowed", "the server does not allow this method on the requested resource");
}

Reply ApiServer::read(const Call& call, const CacheView*) {
  const Storage::Stored* stored = storage_.find(*call.kind, call.key);
  if (stored == nullptr) return no_such_object(*call.kind, call.key.name);
  if (call.subresource == "scale") return scale_of(*call.kind, *stored->object);
  return {200, stored->object};
}

Reply ApiServer::list(const Call& call, const CacheView* view) {
  if (!call.option("continue").empty()) return next_page(call);
  const Result<Selector> selector = Selector::parse(call.option("labelSelector"), call.option("fieldSelector"));
  if (!selector.ok()) return refuse(400, "BadRequest", selector.error().message());
  // "": the most recent state; a number: at least that; only "0" is content with whatever the cache has.
  const std::string wanted = call.option("resourceVersion");
  std::uint64_t revision = storage_.revision();
  if (view != nullptr && view->frozen_at && (!wanted.empty() || view->lies))
    revision = std::min(revision, *view->frozen_at);
  if (number_of(wanted) > revision)
    return refuse(504, "Timeout", "Too large resource version: " + wanted + ", current: " + std::to_string(revision),
                  {{"", "ResourceVersionTooLarge", "Too large resource version"}});
  std::vector<ObjectPointer> items;
  const auto add = [&](const ObjectKey& key, const ObjectPointer& object) {
    const bool inside = call.key.namespace_.empty() || key.namespace_ == call.key.namespace_;
    if (inside && selector->matches(*object)) items.push_back(object);
  };
  if (revision == storage_.revision()) {
    for (const auto& [key, stored] : storage_.objects(*call.kind)) add(key, stored.object);
  } else {
    for (const auto& [key, object] : storage_.state_at(*call.kind, revision)) add(key, object);
  }
  Call first = call;
  const std::string token = "page-" + std::to_string(++names_);
  pages_[token] = {revision, {items.rbegin(), items.rend()}};
  first.query["continue"] = token;
  return next_page(first);
}

Reply ApiServer::next_page(const Call& call) {
  const auto found = pages_.find(call.option("continue"));
  if (found == pages_.end())
    return history_expired("The provided continue parameter is too old to display a consistent list result.");
  Pages pages = std::move(found->second);
  pages_.erase(found);
  const std::uint64_t limit = number_of(call.option("limit"));
  Json items = Json::array();
  while (!pages.left.empty() && (limit == 0 || items.size() < limit)) {
    Json item = *pages.left.back();
    item.erase("kind");
    item.erase("apiVersion");
    items.push_back(std::move(item));
    pages.left.pop_back();
  }
  Json metadata = {{"resourceVersion", std::to_string(pages.revision)}};
  if (!pages.left.empty()) {
    const std::string token = "page-" + std::to_string(++names_);
    metadata["continue"] = token;
    metadata["remainingItemCount"] = pages.left.size();
    pages_[token] = std::move(pages);
  }
  Json page = {
      {"kind", call.kind->name + "List"}, {"apiVersion", call.kind->api_version()}, {"metadata", std::move(metadata)}};
  page["items"] = std::move(items);
  return {200, std::make_shared<const Json>(std::move(page))};
}

// The reason why the server's decoder refuses a body; none where it takes it.
std::optional<Reply> ApiServer::undecodable(const Call& call, const Json& object) {
  const Kind& kind = *call.kind;
  const auto cannot = [&](const std::string& why) {
    return refuse(400, "BadRequest",
                  kind.name + " in version \"" + kind.version + "\" cannot be handled as a " + kind.name + ": " + why);
  };
  if (kind.fields != nullptr)
    for (const Violation& violation : kind.fields->validate(object, nullptr))
      if (violation.reason == "FieldValueTypeInvalid") return cannot("json: cannot unmarshal " + violation.message);
  const Schema* schema = kind.schema != nullptr ? kind.schema.get() : kind.fields.get();
  if (schema == nullptr || call.option("fieldValidation") != "Strict") return std::nullopt;
  std::string unknown;
  for (const std::string& field : schema->unknown_fields(object))
    unknown += (unknown.empty() ? "" : ", ") + ("unknown field \"" + field + "\"");
  if (unknown.empty()) return std::nullopt;
  return cannot("strict decoding error: " + unknown);
}

Reply ApiServer::post(const Call& call) {
  std::optional<Json> body = parse_json(call.body);
  if (!body || !body->is_object()) return refuse(400, "BadRequest", "the request is no JSON object");
  Json& object = *body;
  if (call.kind->schema != nullptr && text_at(object, "kind").empty())
    return refuse(400, "BadRequest", "the object provided is unrecognized: Object 'Kind' is missing");
  if (auto refusal = undecodable(call, object)) return *refusal;
  const std::string stated = text_at(object, "metadata", "namespace");
  if (!stated.empty() && stated != call.key.namespace_)
    return refuse(400, "BadRequest",
                  "the namespace of the provided object does not match the namespace sent on the request");
  if (call.kind->namespaced) object["metadata"]["namespace"] = call.key.namespace_;
  return create_object(*call.kind, std::move(object), std::nullopt);
}

Reply ApiServer::patch(const Call& call) {
  const std::optional<Json> parsed = parse_json(call.body);
  if (!parsed || !parsed->is_object()) return refuse(400, "BadRequest", "the request is no JSON object");
  const Json& body = *parsed;
  if (const std::string name = text_at(body, "metadata", "name"); !name.empty() && name != call.key.name)
    return refuse(400, "BadRequest",
                  "the name of the object (" + name + ") does not match the name on the URL (" + call.key.name + ")");
  if (call.content_type == "application/apply-patch+yaml") {
    const auto refusal = undecodable(call, body);
    return refusal ? *refusal : apply(call, body);
  }
  if (call.content_type != "application/merge-patch+json")
    return refuse(415, "UnsupportedMediaType", "the body of the request was in an unknown format");
  return call.subresource == "scale" ? patch_scale(call, body) : merge_patch(call, body);
}

Reply ApiServer::merge_patch(const Call& call, const Json& change) {
  Storage::Stored* stored = storage_.find(*call.kind, call.key);
  if (stored == nullptr) return no_such_object(*call.kind, call.key.name);
  const ObjectPointer before = stored->object;
  Json after = *before;
  after.merge_patch(change);
  return update_object({*call.kind, call.key, before.get(), std::move(after), call.subresource});
}

Reply ApiServer::patch_scale(const Call& call, const Json& change) {
  Storage::Stored* stored = storage_.find(*call.kind, call.key);
  if (stored == nullptr) return no_such_object(*call.kind, call.key.name);
  Json scale = *scale_of(*call.kind, *stored->object).body;
  scale.merge_patch(change);
  const ObjectPointer before = stored->object;
  Json after = *before;
  after["metadata"] = scale["metadata"];
  after[Json::json_pointer(call.kind->scale->spec_replicas)] = scale["spec"].value("replicas", Json(0));
  const Reply reply = update_object({*call.kind, call.key, before.get(), std::move(after), ""});
  return reply.ok() ? scale_of(*call.kind, *reply.body) : reply;
}

Reply ApiServer::apply(const Call& call, const Json& configuration) {
  const std::string manager = call.option("fieldManager");
  if (manager.empty())
    return refuse(422, "Invalid", "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value",
                  {{"fieldManager", "FieldValueRequired", "Required value: is required for apply patch"}});
  Storage::Stored* stored = storage_.find(*call.kind, call.key);
  if (stored == nullptr && !call.subresource.empty()) return no_such_object(*call.kind, call.key.name);
  const std::string uid = text_at(configuration, "metadata", "uid");
  if (stored == nullptr && !uid.empty())
    return out_of_date(*call.kind, call.key.name,
                       "uid mismatch: the provided object specified uid " + uid + ", and no existing object was found");

  // Each endpoint sees only its own part.
  Json wanted = configuration;
  if (call.subresource == "status") {
    wanted = Json::object();
    if (configuration.contains("status")) wanted["status"] = configuration["status"];
  } else if (call.subresource == "resize") {
    wanted = resizable_part(configuration);
  } else if (call.kind->has_status) {
    wanted.erase("status");
  }
  FieldOwnership fields = stored == nullptr ? FieldOwnership() : stored->fields;
  const ObjectPointer before = stored == nullptr ? nullptr : stored->object;
  FieldOwnership::Outcome outcome = fields.apply(before.get(), std::move(wanted), {manager, call.subresource},
                                                 call.option("force") == "true", call.kind->shape());
  if (!outcome.conflicts.empty()) {
    std::vector<Violation> causes;
    for (const std::string& field : outcome.conflicts)
      causes.push_back({field, "FieldManagerConflict", "conflict with another field manager"});
    return refuse(409, "Conflict",
                  "Apply failed with " + std::to_string(causes.size()) + " conflict" + (causes.size() > 1 ? "s" : ""),
                  causes);
  }
  if (before == nullptr) {
    Json& metadata = outcome.object["metadata"];
    metadata["name"] = call.key.name;
    if (call.kind->namespaced) metadata["namespace"] = call.key.namespace_;
    return create_object(*call.kind, std::move(outcome.object), std::move(fields));
  }
  for (const char* precondition : {"uid", "resourceVersion"})
    if (const std::string stated = text_at(configuration, "metadata", precondition); !stated.empty())
      outcome.object["metadata"][precondition] = stated;
  return update_object(
      {*call.kind, call.key, before.get(), std::move(outcome.object), call.subresource, std::move(fields)});
}

Reply ApiServer::delete_call(const Call& call) {
  const std::optional<Json> body = call.body.empty() ? Json::object() : parse_json(call.body);
  if (!body || !body->is_object()) return refuse(400, "BadRequest", "the request is no JSON object");
  RemoveOptions options = removal_of(*body);
  if (!call.option("gracePeriodSeconds").empty())
    options.grace_period_seconds = static_cast<std::int64_t>(number_of(call.option("gracePeriodSeconds")));
  return remove_object(*call.kind, call.key, options);
}

Reply ApiServer::create(const Resource& resource, Json object) {
  std::lock_guard lock(mutex_);
  return create_object(kind_of(resource), std::move(object), std::nullopt);
}

Reply ApiServer::modify(const Resource& resource, const ObjectKey& key, const std::function<void(Json&)>& change,
                        const std::string& subresource) {
  std::lock_guard lock(mutex_);
  const Kind& kind = kind_of(resource);
  Storage::Stored* stored = storage_.find(kind, key);
  if (stored == nullptr) return no_such_object(kind, key.name);
  const ObjectPointer before = stored->object;
  Json after = *before;
  change(after);
  return update_object({kind, key, before.get(), std::move(after), subresource});
}

Reply ApiServer::remove(const Resource& resource, const ObjectKey& key, const RemoveOptions& options) {
  std::lock_guard lock(mutex_);
  return remove_object(kind_of(resource), key, options);
}

ObjectPointer ApiServer::get(const Resource& resource, const ObjectKey& key) {
  std::lock_guard lock(mutex_);
  const Storage::Stored* stored = storage_.find(kind_of(resource), key);
  return stored == nullptr ? nullptr : stored->object;
}

Store::Objects ApiServer::all(const Resource& resource) {
  std::lock_guard lock(mutex_);
  Store::Objects objects;
  for (const auto& [key, stored] : storage_.objects(kind_of(resource))) objects[key] = stored.object;
  return objects;
}

std::uint64_t ApiServer::revision() const {
  std::lock_guard lock(mutex_);
  return storage_.revision();
}

std::vector<StoredChange> ApiServer::changes_since(std::uint64_t revision) const {
  std::lock_guard lock(mutex_);
  const auto& history = storage_.history();
  const auto first =
      std::upper_bound(history.begin(), history.end(), revision,
                       [](std::uint64_t wanted, const StoredChange& change) { return wanted < change.revision; });
  return {first, history.end()};
}

void ApiServer::compact(std::uint64_t revision) {
  std::lock_guard lock(mutex_);
  storage_.compact(revision);
  std::erase_if(pages_, [&](const auto& entry) { return entry.second.revision <= revision; });
  changed();
}

void ApiServer::changed() {
  ++changes_;
  changed_.notify_all();
}

void ApiServer::wait_for_change(std::uint64_t seen_changes, std::stop_token stop) const {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, stop, [&] { return changes_ != seen_changes; });
}

std::uint64_t ApiServer::changes() const {
  std::lock_guard lock(mutex_);
  return changes_;
}

}  // namespace sluice::kube::fake
