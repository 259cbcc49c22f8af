#include "scheduler/name_index.h"

#include <bit>
#include <functional>

namespace sluice::scheduler {

NameIndex::NameIndex(std::size_t most_names) : slots_(std::bit_ceil(2 * most_names + 1)) {}

std::size_t NameIndex::slot_of(std::string_view name) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = std::hash<std::string_view>()(name) & mask;
  while (slots_[at].position != kNowhere && slots_[at].name != name) at = (at + 1) & mask;
  return at;
}

void NameIndex::add(std::string_view name, int position) { slots_[slot_of(name)] = {name, position}; }

int NameIndex::position_of(std::string_view name) const { return slots_[slot_of(name)].position; }

}  // namespace sluice::scheduler
