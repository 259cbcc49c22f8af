// What a cache has done so far, for metrics and tests.
//
// Thread safety: each number may be read and changed by any thread; together they are no snapshot.
#pragma once

#include <atomic>
#include <cstdint>

#include "src/base/result.h"

namespace sluice::cache {

using Count = std::atomic<std::uint64_t>;

struct FormCounters {
  Count hits = 0;
  Count hit_bytes = 0;
  Count pipelines = 0;  // that have chosen this form for their files, and run now
};

struct Counters {
  FormCounters source;        // bytes of files as their source gives them
  FormCounters coefficients;  // of JPEG files
  FormCounters outputs;       // of the first operations of pipelines
  FormCounters results;       // of the user's functions
  Count misses = 0;           // files that it had in no form, and results that it had not
  std::uint64_t hits() const { return source.hits + coefficients.hits + outputs.hits + results.hits; }
  std::uint64_t hit_bytes() const {
    return source.hit_bytes + coefficients.hit_bytes + outputs.hit_bytes + results.hit_bytes;
  }

  Count undecided_pipelines = 0;  // that are still to choose a form
  Count uncached_pipelines = 0;   // whose files are as well read from their source
  Count trials = 0;               // samples that were made from each form to choose one

  Count transcoded = 0;  // files whose coefficients were made to be stored

  // What was read from the source and not stored, by reason.
  Count not_stored_fast = 0;      // the source is as fast as a cache
  Count not_stored_changing = 0;  // it has changed lately, or just now
  Count not_stored_full = 0;      // the bound on bytes or records is reached
  Count not_stored_failed = 0;    // the disk refused it, or did so within the last minute

  Count damaged = 0;         // records or ends of segments that were not as written; also those that came wrong
  Count read_errors = 0;     // the disk did not give what it holds
  Count write_errors = 0;    // the disk did not take it
  Count other_versions = 0;  // segments of another version of the format, removed

  // Of the node's cache, where it is used in place of an own disk.
  Count node_gone = 0;     // there is no daemon
  Count node_late = 0;     // it, or the process that asks it for others, did not answer in time
  Count node_busy = 0;     // it has too much to do
  Count node_wrong = 0;    // what it said is no answer of this version
  Count node_refused = 0;  // it does not take this process's token

  // Where several jobs share the disk.
  Count evicted = 0;  // records that went for others, as these are used sooner
  Count evicted_bytes = 0;
  Count stored_bytes = 0;
  Count rewritten_bytes = 0;  // copied from segments of which much was evicted

  Count bytes_on_disk = 0;  // of all segment files, whole
  Count records = 0;        // that can be read now
};

// Of the node's cache: which one counts an error that came in place of an answer.
inline Count& node_counter_of(ErrorCode code, Counters& counters) {
  switch (code) {
    case ErrorCode::kDeadlineExceeded: return counters.node_late;
    case ErrorCode::kResourceExhausted: return counters.node_busy;
    case ErrorCode::kDataLoss:
    case ErrorCode::kInvalidArgument: return counters.node_wrong;
    case ErrorCode::kUnauthenticated: return counters.node_refused;
    default: return counters.node_gone;
  }
}

}  // namespace sluice::cache
