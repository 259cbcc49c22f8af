// The part of CEL (Common Expression Language) that the validation rules in crds/ are written in.
//
// Values are JSON, plus quantities: literals (integer, text, bool, list), self and oldSelf, member and index access,
// ! && || == != < <= > >= and in, has(), size(), string(), quantity(), and the methods matches, startsWith, exists,
// compareTo and add. parse() refuses everything else: a rule that this cannot decide is noticed.
// As in CEL, && and || are commutative about errors: a side that decides makes an error of the other one irrelevant.
//
// Thread safety: a parsed expression is immutable and may be evaluated from any thread.
#pragma once

#include <memory>
#include <string_view>

#include "src/base/result.h"
#include "src/kube/resource.h"

namespace sluice::kube::fake {

class CelExpression {
 public:
  struct Node;

  // Errors: InvalidArgument with the position and the expected token.
  static Result<CelExpression> parse(std::string_view text);

  // Whether the rule holds. `old_self` may be null; then the expression must not name oldSelf.
  // Errors: InvalidArgument for a rule that has no value here (no such member, operands of different kinds).
  Result<bool> holds(const Json& self, const Json* old_self) const;

  // A transition rule: it constrains updates only.
  bool mentions_old_self() const { return mentions_old_self_; }

 private:
  std::shared_ptr<const Node> root_;
  bool mentions_old_self_ = false;
};

}  // namespace sluice::kube::fake
