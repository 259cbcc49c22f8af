#include "src/base/job_number.h"

#include <array>
#include <string>

#include "src/base/checksum.h"

namespace sluice {
namespace {

std::uint64_t hash_of(std::string_view text) {
  return checksum({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
}

}  // namespace

std::uint64_t job_number(std::string_view job_namespace, std::string_view job) {
  std::string name;
  for (const std::string_view part : {job_namespace, job}) (name += part) += '\0';
  return hash_of(name);
}

std::uint64_t number_of(std::string_view owner, std::uint64_t number) {
  const std::array<std::uint64_t, 2> both{hash_of(owner), number};
  return checksum({reinterpret_cast<const std::uint8_t*>(both.data()), sizeof(both)});
}

}  // namespace sluice
