// Results of functions in memory, with the faults that a test says.
#pragma once

#include <map>
#include <utility>

#include "src/executor/kept_calls.h"

namespace sluice::testing {

// Thread safety: none.
class MemoryStore final : public executor::ResultStore {
 public:
  bool is_in_use() const override { return in_use; }
  std::optional<executor::FileStates> states_of(const transport::FunctionCall& call) const override {
    if (!has_files) return std::nullopt;
    return executor::FileStates(call.files.size(), pipeline::FileIdentity{.bytes = file_bytes});
  }
  bool find(const transport::FunctionCall& call, const executor::FileStates& files,
            std::vector<std::uint8_t>& value) override {
    ++asked;
    const auto known = values.find({call.arguments, files.empty() ? 0 : files[0].bytes});
    if (known == values.end()) return false;
    value = known->second;
    return true;
  }
  bool has_room_for(const transport::FunctionCall&, const executor::FileStates&, std::size_t) override {
    return has_room;
  }
  void keep(const transport::FunctionCall& call, const executor::FileStates& files,
            std::span<const std::uint8_t> value) override {
    values[{call.arguments, files.empty() ? 0 : files[0].bytes}] = {value.begin(), value.end()};
  }
  void count_errors(std::uint64_t damaged, std::uint64_t late) override { errors += damaged + late; }

  bool in_use = true, has_files = true, has_room = true;
  std::uint64_t file_bytes = 1;
  std::map<std::pair<std::string, std::uint64_t>, std::vector<std::uint8_t>> values;
  int asked = 0;
  std::uint64_t errors = 0;
};

}  // namespace sluice::testing
