// The objects of the fake API server, and their history: etcd's role.
//
// Invariants: revisions grow by one per change. An object's metadata.resourceVersion is the revision of its last
// change. The history holds every change after compacted_revision() (older ones are kept, too, to answer state_at()).
// Thread safety: none; the server's lock.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "src/kube/fake/field_ownership.h"
#include "src/kube/fake/kind.h"
#include "src/kube/store.h"

namespace sluice::kube::fake {

struct StoredChange {
  std::uint64_t revision = 0;
  const Kind* kind = nullptr;
  ObjectKey key;
  ObjectPointer before;  // null: it was created
  ObjectPointer after;   // of a deletion: the last state, with the deletion's revision
  bool deleted = false;

  // `after` on one line, written once for all watches.
  const std::string& after_text() const;
  mutable std::shared_ptr<const std::string> known_text = nullptr;
};

class Storage {
 public:
  struct Stored {
    ObjectPointer object;
    FieldOwnership fields;
  };
  using Objects = std::map<ObjectKey, Stored>;

  std::uint64_t revision() const { return revision_; }
  std::uint64_t compacted_revision() const { return compacted_revision_; }

  // nullptr: there is none.
  Stored* find(const Kind& kind, const ObjectKey& key);
  const Objects& objects(const Kind& kind) { return objects_[&kind]; }

  // Stores the object, new or changed, and stamps its resourceVersion.
  ObjectPointer put(const Kind& kind, const ObjectKey& key, Json object);
  void erase(const Kind& kind, const ObjectKey& key);

  // The collection as it was after the change with this revision.
  Store::Objects state_at(const Kind& kind, std::uint64_t revision) const;

  // Changes up to `revision` can no longer be watched.
  void compact(std::uint64_t revision);

  const std::vector<StoredChange>& history() const { return history_; }

 private:
  std::uint64_t revision_ = 1;
  std::uint64_t compacted_revision_ = 0;
  std::map<const Kind*, Objects> objects_;
  std::vector<StoredChange> history_;
};

}  // namespace sluice::kube::fake
