// The headers that most files include and that take a second to parse, parsed once per build tree. The build includes
// it before every file; no file relies on it, because each of them must compile alone (`make check`).
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <set>
#include <sstream>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

// Clang instantiates in the precompiled header what its functions use (-fpch-instantiate-templates), and no file does
// so again. nlohmann::json is a third of the time of a test otherwise: each length of a text is a type of its own.
#ifdef SLUICE_INSTANTIATED_WITH_HEADER
#include <array>
#include <cstdint>
#include <utility>

namespace sluice::precompiled {

template <std::size_t kLength>
inline constexpr char kText[kLength] = {};

template <std::size_t... kLengths>
nlohmann::json texts_of(std::index_sequence<kLengths...>) {
  return {kText<kLengths + 1>...};
}

inline nlohmann::json used_by_most_files(nlohmann::json object, const std::string& text, std::int64_t number) {
  nlohmann::json other = {{"text", text}, {"object", object}, {"number", number}, {"one", 1},
                          {"real", 0.5},  {"flag", true},     {"none", nullptr},  {"texts", {}}};
  other["texts"] = texts_of(std::make_index_sequence<48>());
  other["a"]["b"] = object.at("a");
  other[text] = text;
  other.push_back(object.value("a", text));
  other.erase("a");
  for (auto& [key, value] : object.items()) value = key;
  for (auto& value : object) value = value.is_string() ? value.get<std::string>() : other.dump();
  if (object.contains("a") && object.find("a") != object.end() && object == other) return nlohmann::json::array();
  object["a"] =
      object.value("b", 1) + object.value("c", false) + object.at(text).get<int>() + object["d"].get<double>();
  return nlohmann::json::parse(text);
}

}  // namespace sluice::precompiled
#endif
