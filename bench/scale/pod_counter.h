// How many pods there are, from moment to moment: the neutral witness of a scale run.
#pragma once

#include <string>

#include "src/base/result.h"
#include "src/kube/client.h"

namespace sluice::bench {

// Follows the pods of a namespace by label. Whenever something has changed, at most ten times a second, prints a line
// of JSON: {"seconds": since the epoch, "pods": there now, "ready": of those, "created": ever, "deleted": ever}.
// Returns when standard input ends.
Result<void> count_pods(const kube::Client& client, const Clock& clock, const std::string& name_space,
                        const std::string& label_selector);

}  // namespace sluice::bench
