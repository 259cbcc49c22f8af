// An answer of the fake API server: an object, or a Status that says why not.
//
// Thread safety: values and pure functions.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "src/kube/fake/kind.h"
#include "src/kube/resource.h"

namespace sluice::kube::fake {

struct Reply {
  int status = 200;
  ObjectPointer body;  // a stored object is not copied

  bool ok() const { return status < 300; }
};

Reply refuse(int status, const std::string& reason, const std::string& message,
             const std::vector<Violation>& causes = {});

// The usual refusals, in the server's words.
Reply no_such_object(const Kind& kind, const std::string& name);
Reply name_is_taken(const Kind& kind, const std::string& name);
Reply out_of_date(const Kind& kind, const std::string& name, const std::string& why);
Reply invalid_object(const Kind& kind, const std::string& name, const std::vector<Violation>& causes);
Reply history_expired(const std::string& message);

}  // namespace sluice::kube::fake
