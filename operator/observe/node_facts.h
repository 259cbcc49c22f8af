// A node's price and network link, by its labels and the configuration.
//
// Thread safety: pure functions.
#pragma once

#include <optional>

#include "operator/api/node.h"
#include "operator/config.h"

namespace sluice::observe {

// Of the whole node: by its own label, else by its instance type; 0 where neither says. A label that is no number
// counts as none.
double price_per_hour(const api::Node& node, const control::NodeFacts& facts);

// Of its link, each way; nullopt: no limit is known.
std::optional<double> network_bytes_per_second(const api::Node& node, const control::NodeFacts& facts);

}  // namespace sluice::observe
