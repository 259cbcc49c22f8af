// On which nodes kube-scheduler lets a pod run: its node selector, its required node affinity, its tolerations.
//
// Source: kube-scheduler's filters NodeAffinity and TaintToleration. Preferences (preferredDuringScheduling,
// PreferNoSchedule) keep no pod off a node. Of the rules about other pods,
// spread_term.h has those about pods of the same template. Not looked at: ports, volumes.
//
// Thread safety: values.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "operator/api/node.h"
#include "operator/api/requirement.h"

namespace sluice::api {

class NodeRules {
 public:
  // Of a pod spec; a missing or wrongly typed field is no rule.
  explicit NodeRules(const nlohmann::json& pod_spec);

  bool admit(const Node& node) const;     // both of these
  bool select(const Node& node) const;    // by node selector and affinity
  bool tolerate(const Node& node) const;  // its taints

  // The same for rules that are written alike.
  const std::string& text() const { return text_; }

 private:
  // All of them; a term without any is met by no node.
  struct Term {
    std::vector<Requirement> labels;
    std::vector<Requirement> fields;
  };
  struct Toleration {
    std::string key;         // empty: every taint's
    std::string comparison;  // Equal, Exists; empty: Equal
    std::string value;
    std::string effect;  // empty: every effect

    bool covers(const Taint& taint) const;
  };

  static bool meets(const Term& term, const Node& node);
  bool tolerates(const Taint& taint) const;

  std::string text_;
  std::map<std::string, std::string> selector_;
  std::optional<std::vector<Term>> terms_;  // one of them; none: there is no required affinity
  std::vector<Toleration> tolerations_;
};

}  // namespace sluice::api
