#include "src/cache/form_choice.h"

#include <algorithm>
#include <vector>

namespace sluice::cache {
namespace {

// A change by less is noise, and no reason to choose again.
constexpr double kChange = 1.5;
// A second form for less of the samples is not worth two.
constexpr double kLeastShare = 0.01;

// All samples in one form: those that have it already, or all.
struct Option {
  std::optional<Keep> form;
  double bytes = 0;
  double gain = 0;           // seconds, over the rest of the job
  double seconds_saved = 0;  // of an epoch
};

std::vector<Option> options_of(const FormTable& table) {
  std::vector<Option> options{Option{}};
  for (const Keep form : kForms) {
    const auto& cost = table.forms[static_cast<std::size_t>(form)];
    if (!cost) continue;
    const double saved = table.samples * (table.none_seconds - cost->seconds);
    const double missing = table.samples * (1 - cost->stored);
    options.push_back({form, 0, table.epochs * saved * cost->stored, saved * cost->stored});
    options.push_back({form, missing * cost->bytes * kRoomForErrors,
                       table.epochs * saved - kRepaid * missing * cost->making_seconds, saved});
  }
  return options;
}

// The next point of the hull: of all that gain more for more bytes, the one that gains most for each byte.
const Option* next_on_hull(const std::vector<Option>& options, const Option& from) {
  const Option* best = nullptr;
  const auto slope = [&](const Option& to) { return (to.gain - from.gain) / (to.bytes - from.bytes); };
  for (const Option& option : options) {
    if (option.bytes <= from.bytes || option.gain <= from.gain) continue;
    if (best == nullptr || slope(option) > slope(*best)) best = &option;
  }
  return best;
}

FormChoice choice_of(const Option& option) {
  if (!option.form) return {};
  return {*option.form, *option.form, 1, option.seconds_saved, option.bytes / kRoomForErrors};
}

FormChoice between(const Option& lower, const Option& upper, double share) {
  const bool are_two = lower.form && lower.form != upper.form;
  if (are_two && share < kLeastShare) return choice_of(lower);
  FormChoice choice = choice_of(upper);
  choice.seconds_saved = share * upper.seconds_saved + (1 - share) * lower.seconds_saved;
  choice.bytes = (share * upper.bytes + (1 - share) * lower.bytes) / kRoomForErrors;
  if (are_two) {
    choice.rest = *lower.form;
    choice.share = share;
  }
  return choice;
}

bool differs(double before, double now) {
  return before != now && (now >= kChange * before || before >= kChange * now);
}

}  // namespace

std::string_view name_of(Keep keep) {
  switch (keep) {
    case Keep::kSource: return "source";
    case Keep::kTranscoded: return "transcoded";
    case Keep::kOutput: return "prefix";
    case Keep::kAutomatic: return "auto";
    case Keep::kNothing: return "none";
  }
  return "";
}

FormChoice choose_form(const FormTable& table) {
  const std::vector<Option> options = options_of(table);
  // 1. The best of what needs no room.
  Option lower = options.front();
  for (const Option& option : options)
    if (option.bytes <= 0 && option.gain > lower.gain) lower = option;
  // 2. Along the hull, as long as the next point fits.
  const Option* upper = next_on_hull(options, lower);
  for (; upper != nullptr && upper->bytes <= table.room_bytes; upper = next_on_hull(options, lower)) lower = *upper;
  // 3. Of the one that does not fit, as much as does.
  if (upper == nullptr && !lower.form) return {.form = table.without_gain, .rest = table.without_gain};
  if (upper == nullptr) return choice_of(lower);
  return between(lower, *upper, std::max(0.0, (table.room_bytes - lower.bytes) / (upper->bytes - lower.bytes)));
}

bool has_changed(const FormTable& before, const FormTable& now) {
  if (differs(before.epochs, now.epochs) || differs(before.none_seconds, now.none_seconds)) return true;
  // What is kept takes room. That is no news, but that there is more of it is.
  if (now.room_bytes > kChange * before.room_bytes) return true;
  if (before.without_gain == Keep::kNothing && now.without_gain != Keep::kNothing) return true;
  for (const Keep form : kForms) {
    const auto& was = before.forms[static_cast<std::size_t>(form)];
    const auto& is = now.forms[static_cast<std::size_t>(form)];
    if (was.has_value() != is.has_value() || (was && differs(was->seconds, is->seconds))) return true;
  }
  return false;
}

}  // namespace sluice::cache
