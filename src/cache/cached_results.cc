// Results of functions, as CachedFiles keeps them beside the files that they are made of.
#include <algorithm>

#include "src/cache/cached_files.h"

namespace sluice::cache {
namespace {

using pipeline::FileIdentity;
using transport::FunctionCall;

// What is cached, and the version of its making: python/sluice/cache/kept_values.py.
constexpr std::string_view kCallResult = "call result 1";

// Told apart by their lengths: arguments may hold any byte.
void append(std::string& text, std::string_view part) {
  const auto bytes = static_cast<std::uint32_t>(part.size());
  text.append(reinterpret_cast<const char*>(&bytes), sizeof(bytes));
  text.append(part);
}

}  // namespace

std::optional<std::vector<FileIdentity>> CachedFiles::states_of(const FunctionCall& call) const {
  std::vector<FileIdentity> states;
  for (const std::string& path : call.files) {
    auto state = source_->identify(path);
    if (!state.ok()) return std::nullopt;
    states.push_back(*std::move(state));
  }
  return states;
}

bool CachedFiles::find_result(const FunctionCall& call, const std::vector<FileIdentity>& files,
                              std::vector<std::uint8_t>& value) const {
  if (find(*store_.load(), key_of(call, files), value)) {
    ++counters_.results.hits;
    counters_.results.hit_bytes += value.size();
    return true;
  }
  ++counters_.misses;
  return false;
}

bool CachedFiles::has_room_for_result(const FunctionCall& call, const std::vector<FileIdentity>& files,
                                      std::size_t bytes) const {
  if (opened_->has_room_for(key_of(call, files), bytes)) return true;
  ++(opened_->is_paused() ? counters_.not_stored_failed : counters_.not_stored_full);
  return false;
}

void CachedFiles::keep_result(const FunctionCall& call, const std::vector<FileIdentity>& files,
                              std::span<const std::uint8_t> value) const {
  const auto after = states_of(call);
  const auto has_settled = [this](const FileIdentity& state) { return this->has_settled(state); };
  if (after == files && std::all_of(files.begin(), files.end(), has_settled)) {
    opened_->add(key_of(call, files), value);
  } else {
    ++counters_.not_stored_changing;
  }
}

void CachedFiles::count_result_errors(std::uint64_t damaged, std::uint64_t late) const {
  counters_.damaged += damaged;
  counters_.node_late += late;
}

Key CachedFiles::key_of(const FunctionCall& call, const std::vector<FileIdentity>& files) const {
  const auto is_shared = [](const FileIdentity& file) { return !file.volume_place.empty(); };
  std::string place(kCallResult);
  append(place, name_space_);
  // Arguments may name what only this machine has: a folder, a file within it. So a result is for all machines only
  // where it is of a file that they all have.
  append(place, !files.empty() && std::all_of(files.begin(), files.end(), is_shared) ? "" : own_name_);
  append(place, call.function);
  append(place, call.arguments);
  std::string version;
  append(version, call.version);
  for (std::size_t i = 0; i < files.size(); ++i) {
    append(place, is_shared(files[i]) ? '\0' + files[i].volume_place : call.files[i]);
    version += version_of(files[i]);
  }
  return {std::move(place), std::move(version)};
}

}  // namespace sluice::cache
