// Label and field selectors of lists and watches.
#pragma once

#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/kube/resource.h"

namespace sluice::kube::fake {

// Thread safety: a value.
class Selector {
 public:
  // Label selectors: a=b, a==b, a!=b, a in (b,c), a notin (b,c), a, !a. Field selectors: = and != on metadata.name,
  // metadata.namespace, spec.nodeName and status.phase. Errors: InvalidArgument for anything else.
  static Result<Selector> parse(const std::string& labels, const std::string& fields);

  bool matches(const Json& object) const;

 private:
  struct Term {
    bool is_label = true;
    std::string name;                 // of a field: a JSON pointer
    bool exists = true;               // whether the name must be there at all (labels)
    bool negated = false;             // of `values`
    std::vector<std::string> values;  // empty: existence alone decides
  };
  std::vector<Term> terms_;
};

}  // namespace sluice::kube::fake
