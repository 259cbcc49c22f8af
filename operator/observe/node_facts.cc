#include "operator/observe/node_facts.h"

#include <charconv>
#include <cmath>
#include <string>

namespace sluice::observe {
namespace {

constexpr double kBytesPerGigabit = 1e9 / 8;

std::optional<double> number_in(const api::Node& node, const std::string& label) {
  if (label.empty()) return std::nullopt;
  const std::string text = node.label(label);
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  constexpr double kMost = 1e12;
  if (!whole || !std::isfinite(number) || number < 0 || number > kMost) return std::nullopt;
  return number;
}

}  // namespace

double price_per_hour(const api::Node& node, const control::NodeFacts& facts) {
  if (const auto price = number_in(node, facts.price_label)) return *price;
  const auto known = facts.prices.find(node.instance_type());
  return known == facts.prices.end() ? 0 : known->second;
}

std::optional<double> network_bytes_per_second(const api::Node& node, const control::NodeFacts& facts) {
  const double gigabits = number_in(node, facts.network_label).value_or(facts.network_gigabits);
  if (gigabits <= 0) return std::nullopt;
  return gigabits * kBytesPerGigabit;
}

}  // namespace sluice::observe
