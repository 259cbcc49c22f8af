// Requests to the Kubernetes API: one method per thing that can be done, one way to do it.
//
//   create       POST, for names that must be new
//   apply        server-side apply (PATCH application/apply-patch+yaml), for what we own
//   merge_patch  JSON merge patch; with metadata.resourceVersion in the patch it is a compare-and-swap
//   remove       DELETE with preconditions
// There is no PUT: apply and merge_patch say which fields are the caller's.
//
// Errors, by code (the message holds "verb Kind key: " and the server's own text):
//   NotFound            404
//   AlreadyExists       409 for a create whose name is taken, if need be by ourselves: an answer may have been lost
//   Conflict            409 otherwise; a uid in the request that is not the object's
//   Gone                410; a resourceVersion too large to serve: list again
//   InvalidArgument     400, 405, 413, 415, 422 (with each cause's field)
//   Unauthenticated     401
//   PermissionDenied    403
//   ResourceExhausted   429
//   Unavailable         502, 503, every transport failure
//   DeadlineExceeded    504, time-outs: the outcome is unknown
//   DataLoss            an answer that is no JSON
//   Internal            otherwise (500)
// Retries: only what the server asks for, 429 or 5xx with Retry-After, at most ClientOptions::max_retries times and
// never longer than max_retry_wait each. Everything else is the caller's decision.
//
// Thread safety: all methods may be called from any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/base/clock.h"
#include "src/base/result.h"
#include "src/http/transport.h"
#include "src/kube/json_text.h"
#include "src/kube/resource.h"

namespace sluice::kube {

struct ClientOptions {
  std::chrono::milliseconds timeout = std::chrono::seconds(30);  // of one try
  int max_retries = 5;
  std::chrono::seconds max_retry_wait{30};
  std::string user_agent = "sluice";
};

struct ListOptions {
  std::string namespace_;  // empty: all namespaces
  std::string label_selector;
  std::string field_selector;
  std::string resource_version;  // "0": from the server's cache; empty: the most recent
  int page_size = 500;           // objects per request; 0: one request. A list from the cache comes in one anyway.
  std::string continuation;      // list_page() only: where the page before ended
};

struct ObjectList {
  std::vector<Json> items;       // each with apiVersion and kind, and without metadata.managedFields
  std::string resource_version;  // of the list, to watch from
  std::string continuation;      // list_page() only; empty: this was the last page
};

enum class Propagation { kBackground, kForeground, kOrphan };

struct RemoveOptions {
  std::string uid;               // not empty: only this incarnation
  std::string resource_version;  // not empty: only if unchanged since
  Propagation propagation = Propagation::kBackground;
  std::optional<std::int64_t> grace_period_seconds;  // absent: the object's own
};

enum class WatchEventType { kAdded, kModified, kDeleted, kBookmark };

struct WatchEvent;  // watch.h
// An error ends the watch.
using WatchHandler = std::function<Result<void>(WatchEvent&&)>;

struct WatchOptions {
  std::string namespace_;  // empty: all namespaces
  std::string label_selector;
  std::string field_selector;
  std::string resource_version;       // REQUIRES: of a list or an earlier event; with initial_events empty
  std::chrono::seconds timeout{300};  // the server ends the watch cleanly after this long
  // A connection is given up as dead after this long without an event. Servers send a bookmark every minute (1.34 was
  // seen to, also when nothing changed). One that does not costs a new watch now and then.
  std::chrono::seconds silence_limit{150};
  bool initial_events = false;  // begin with the whole collection, then a bookmark that says so (KEP-3157)
};

class Client {
 public:
  // REQUIRES: `clock` outlives the client.
  Client(std::shared_ptr<http::Transport> transport, const Clock& clock, ClientOptions options = {});

  // A client of the same server with other options.
  Client with_options(ClientOptions options) const { return {transport_, clock_, std::move(options)}; }

  // One page of the collection. Gone when the continuation has expired: start again.
  Result<ObjectList> list_page(const Resource& resource, const ListOptions& options, std::stop_token stop = {}) const;

  // All pages of the collection. Gone as above.
  Result<ObjectList> list(const Resource& resource, const ListOptions& options, std::stop_token stop = {}) const;

  Result<Json> get(const Resource& resource, const ObjectKey& key, std::stop_token stop = {}) const;

  // Whether the server has this subresource of the kind, by API discovery.
  Result<bool> serves(const Resource& resource, std::string_view subresource, std::stop_token stop = {}) const;

  // The JSON page that a pod serves on `port` at `target` ("/plan?nodes=2x32"), through the API server: for who reaches
  // nothing else. The pod's own errors come with its status and text, as above. The server keeps the caller's own
  // credentials to itself: what the pod asks for goes into `headers`.
  Result<Json> get_from_pod(const ObjectKey& pod, int port, std::string_view target, http::Headers headers = {},
                            std::stop_token stop = {}) const;

  // The same for a page that is text, such as /metrics.
  Result<std::string> get_text_from_pod(const ObjectKey& pod, int port, std::string_view target,
                                        std::stop_token stop = {}) const;

  // The last lines of a container's log, at most `bytes` of them; of the run before its last restart where `previous`.
  Result<std::string> read_log(const ObjectKey& pod, std::string_view container, bool previous, int lines,
                               std::int64_t bytes, std::stop_token stop = {}) const;

  // A token of the service account that is good for `audience` alone, for ten minutes (TokenRequest).
  Result<std::string> request_token(const ObjectKey& service_account, std::string_view audience,
                                    std::stop_token stop = {}) const;

  // The user that a token for `audience` stands for (TokenReview). Errors: Unauthenticated for any other token.
  Result<std::string> review_token(std::string_view token, std::string_view audience, std::stop_token stop = {}) const;

  // Returns the object as stored. The namespace is the argument's, the name (or generateName) the object's own.
  Result<Json> create(const Resource& resource, std::string_view namespace_, const Json& object,
                      std::string_view field_manager, std::stop_token stop = {}) const;

  // Server-side apply with force: `object` holds exactly the fields that `field_manager` wants to own. Fields that it
  // no longer has are dropped. The call fills in apiVersion, kind and metadata name. `subresource`: empty, "status" or,
  // of pods, "resize". As with create, a field that the kind does not have is InvalidArgument: nothing is dropped
  // silently. With metadata.uid in the object, another uid is a Conflict, and nothing is created.
  Result<Json> apply(const Resource& resource, const ObjectKey& key, const Json& object, std::string_view field_manager,
                     std::string_view subresource = "", std::stop_token stop = {}) const;

  // JSON merge patch (RFC 7396). metadata.resourceVersion or metadata.uid in the patch are preconditions.
  Result<Json> merge_patch(const Resource& resource, const ObjectKey& key, const Json& patch,
                           std::string_view field_manager, std::string_view subresource = "",
                           std::stop_token stop = {}) const;

  // Ok when the server accepted the deletion (a finalizer or grace period may keep the object for a while).
  Result<void> remove(const Resource& resource, const ObjectKey& key, const RemoveOptions& options = {},
                      std::stop_token stop = {}) const;

  // Blocks and calls `handler` for every event, on this thread, until the watch ends: ok when the server ended it, else
  // the error. An ERROR event of the server is an error here (Gone for 410). Never retried.
  Result<void> watch(const Resource& resource, const WatchOptions& options, const WatchHandler& handler,
                     std::stop_token stop) const;

  // The request of watch(), for callers with a stream of their own; see WatchDecoder.
  http::Request watch_request(const Resource& resource, const WatchOptions& options) const;

 private:
  Result<http::Response> send(http::Request request, std::stop_token stop) const;
  Result<std::string> exchange_text(http::Request request, std::string_view what, std::stop_token stop) const;
  Result<Json> exchange(http::Request request, std::string_view what, std::stop_token stop,
                        MemberPath left_out = {}) const;
  // An answer of another kind is an error (kDataLoss): a proxy's page with status 200 must not count as done.
  Result<Json> exchange_object(http::Request request, std::string_view what, std::string_view kind,
                               std::stop_token stop) const;

  std::shared_ptr<http::Transport> transport_;
  std::shared_ptr<http::Transport> retrying_;  // around transport_, for unary requests
  const Clock& clock_;
  ClientOptions options_;
};

}  // namespace sluice::kube
