// A Kubernetes API server in memory: for tests of what talks to one, and for simulations.
//
// Its rules are those of the real one as far as Sluice meets them; conformance_test.cc runs the same requests against
// both. They are (in the terms of Anvil's model of the API server):
//   create       name or generateName; uid, creationTimestamp, resourceVersion and generation are given; a taken name
//                is AlreadyExists; status is dropped where it is a subresource; the namespace must exist
//   patch        RFC 7396; metadata.resourceVersion and uid are preconditions (Conflict, Invalid); identity cannot
//   change apply        server-side apply with field managers (field_ownership.h); creates what is absent, unless a uid
//   is given no-op        a write that changes nothing makes no new resourceVersion and no event status       a write
//   to /status changes status only, any other write everything but status scale        GET and merge patch of /scale
//   resize       of pods: only the containers' resources change, and not the QoS class (pod_resize.h)
//   delete       preconditions; finalizers keep the object, marked; pods on a node wait for the kubelet (grace period);
//                propagation becomes a finalizer (foregroundDeletion, orphan) that the garbage collector resolves
//   schema       custom resources: pruning, defaults, validation, CEL rules (schema.h); built-in kinds: kind.cc
//   watch        history from any revision that is not compacted (else an in-stream 410), bookmarks, initial events
//                (WatchList), selectors with the ADDED/DELETED of objects that begin or cease to match
//   list         most recent, from the (possibly stale) cache, in pages with a snapshot that expires by compaction
//   discovery    of the core group: which kinds and subresources there are
// Not modelled: PUT, JSON patch, strategic merge, dry run, admission, authentication, quotas.
//
// Everything is deterministic: uids and generated names count upwards; time is the clock's.
// Thread safety: all methods may be called from any thread.
#pragma once

#include <condition_variable>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>

#include "src/base/clock.h"
#include "src/http/transport.h"
#include "src/kube/client.h"
#include "src/kube/fake/call.h"
#include "src/kube/fake/reply.h"
#include "src/kube/fake/selector.h"
#include "src/kube/fake/storage.h"

namespace sluice::kube::fake {

class WatchSession;

// What one replica of the API server has seen: lists from the cache and watches see no later revision. Reads of single
// objects go to the storage. Frozen and resumed by tests.
struct CacheView {
  std::optional<std::uint64_t> frozen_at;
  // A replica must not answer a list of the most recent state from a cache that is behind (KEP-2340). This one does,
  // as some did before 1.31 and as a restored etcd makes them do.
  bool lies = false;
};

class ApiServer {
 public:
  // REQUIRES: the clock outlives the server. Knows the built-in kinds of kind.h and the namespace "default".
  explicit ApiServer(const Clock& clock);
  ~ApiServer();

  // REQUIRES: before the first request.
  void serve(Crd crd);
  // Whether pods have the subresource "resize", as from Kubernetes 1.33. REQUIRES: before the first request.
  void set_resizes_pods(bool resizes) { resizes_pods_ = resizes; }

  // Whether written custom resources must be as their schemas want them; false: as if an earlier schema, which wanted
  // less, had let them in.
  void set_checks_custom_kinds(bool checks) { checks_custom_kinds_ = checks; }

  // Any request but a watch. `view` may be null: a replica that is up to date.
  http::Response answer(const http::Request& request, const CacheView* view = nullptr);

  // A watch, or the answer that refuses it. REQUIRES: server and view outlive the session.
  std::unique_ptr<WatchSession> watch(const http::Request& request, const CacheView* view, http::Response& refusal);

  // The same verbs without HTTP, for the models of the rest of a cluster.
  Reply create(const Resource& resource, Json object);
  // Reads, lets `change` edit, writes; `subresource` "" or "status". 404 if there is none.
  Reply modify(const Resource& resource, const ObjectKey& key, const std::function<void(Json&)>& change,
               const std::string& subresource = "");
  Reply remove(const Resource& resource, const ObjectKey& key, const RemoveOptions& options = {});
  ObjectPointer get(const Resource& resource, const ObjectKey& key);
  Store::Objects all(const Resource& resource);

  std::uint64_t revision() const;
  std::vector<StoredChange> changes_since(std::uint64_t revision) const;
  // Watches from revisions up to this one, and unfinished lists, are answered 410 from now on.
  void compact(std::uint64_t revision);
  // Every open watch that asked for bookmarks gets one.
  void send_bookmarks();

  // Resolves owner references and the finalizers of propagation until nothing is left to do: the garbage collector of
  // kube-controller-manager. Returns how many objects it changed.
  int collect_garbage();

  // Blocks until the next change, bookmark, or `stop`. For transports with threads.
  void wait_for_change(std::uint64_t seen_changes, std::stop_token stop) const;
  std::uint64_t changes() const;

 private:
  friend class WatchSession;

  struct Write {
    const Kind& kind;
    ObjectKey key;
    const Json* before;  // null: creation
    Json after;
    std::string subresource;
    // Who owns what after this write. Absent: note_update.
    std::optional<FieldOwnership> fields;
  };

  const Kind& kind_of(const Resource& resource) const;
  Reply core_resources() const;
  Reply dispatch(const Call& call, const CacheView* view);
  Reply read(const Call& call, const CacheView* view);
  Reply list(const Call& call, const CacheView* view);
  Reply next_page(const Call& call);
  static std::optional<Reply> undecodable(const Call& call, const Json& object);
  Reply post(const Call& call);
  Reply patch(const Call& call);
  Reply merge_patch(const Call& call, const Json& change);
  Reply apply(const Call& call, const Json& configuration);
  Reply patch_scale(const Call& call, const Json& change);
  Reply delete_call(const Call& call);

  Reply create_object(const Kind& kind, Json object, std::optional<FieldOwnership> fields);
  Reply update_object(Write write);
  std::vector<Violation> admit(const Kind& kind, Json& after, const Json* before) const;
  Reply remove_object(const Kind& kind, const ObjectKey& key, const RemoveOptions& options);
  Reply finish_removal(const Kind& kind, const ObjectKey& key);
  void remove_namespace_contents(const std::string& name);
  bool collect_one();
  void changed();

  const Clock& clock_;
  mutable std::mutex mutex_;
  mutable std::condition_variable_any changed_;
  std::uint64_t changes_ = 0;  // counts what waiters wait for
  std::vector<std::unique_ptr<Kind>> kinds_;
  bool resizes_pods_ = true;
  bool checks_custom_kinds_ = true;
  Storage storage_;
  std::uint64_t names_ = 0;
  struct Pages {
    std::uint64_t revision = 0;
    std::vector<ObjectPointer> left;
  };
  std::map<std::string, Pages> pages_;  // unfinished lists, by continue token
  std::list<WatchSession*> sessions_;
};

}  // namespace sluice::kube::fake
