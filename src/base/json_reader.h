// Reads typed fields out of a JSON object and remembers the first thing that was wrong, by its path.
//
// Usage: read every field, then look at error() once; a field that is missing or wrong keeps its default. A strict
// reader ends with refuse_unknown_fields(). Included by .cc files only: it needs the JSON library's header.
// Errors: InvalidArgument "PATH.FIELD: must be ...". Thread safety: none.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "src/base/result.h"

namespace sluice {

class JsonReader {
 public:
  JsonReader(const nlohmann::json& object, std::string path) : object_(object), path_(std::move(path)) {
    if (!object_.is_object()) fail("", "must be an object");
  }

  // Bounds are part of a field's type.
  template <typename T>
  void required(const char* name, T& out, T smallest, T largest) {
    T value{};
    const auto* found = find(name);
    if (found == nullptr) return fail(name, "is missing");
    constexpr bool kWhole = std::is_integral_v<T>;
    // A value that is no number of this kind lies outside every bound.
    const bool is_number = kWhole ? found->is_number_integer() : found->is_number();
    if (is_number) value = found->get<T>();
    if (is_number && value >= smallest && value <= largest) {
      out = value;
    } else {
      fail(name, std::string("must be a ") + (kWhole ? "whole " : "") + "number from " +
                     nlohmann::json(smallest).dump() + " to " + nlohmann::json(largest).dump());
    }
  }

  // A list of exactly so many numbers.
  template <std::size_t kCount>
  void required(const char* name, std::array<double, kCount>& out) {
    const auto* found = find(name);
    if (found == nullptr) return fail(name, "is missing");
    const auto is_number = [](const nlohmann::json& element) { return element.is_number(); };
    if (!found->is_array() || found->size() != kCount || !std::all_of(found->begin(), found->end(), is_number))
      return fail(name, "must be " + std::to_string(kCount) + " numbers");
    for (std::size_t i = 0; i < kCount; ++i) out[i] = (*found)[i].template get<double>();
  }

  template <typename T>
  void required(const char* name, T& out) {
    if (const auto* value = find(name)) {
      read(*value, name, out);
    } else {
      fail(name, "is missing");
    }
  }

  template <typename T>
  void optional(const char* name, T& out) {
    if (const auto* value = find(name); value != nullptr && !value->is_null()) read(*value, name, out);
  }

  template <typename T>
  void optional(const char* name, std::optional<T>& out) {
    if (const auto* value = find(name); value != nullptr && !value->is_null()) read(*value, name, out.emplace());
  }

  // nullptr: there is no such field.
  const nlohmann::json* find(const char* name) {
    known_.emplace_back(name);
    if (!object_.is_object()) return nullptr;
    const auto field = object_.find(name);
    return field == object_.end() ? nullptr : &*field;
  }

  void fail(const std::string& name, const std::string& what) {
    if (!error_) error_ = invalid_argument(path_ + (name.empty() || path_.empty() ? "" : ".") + name + ": " + what);
  }

  // The error of a reader of a part of this object.
  void fail(const Error& error) {
    if (!error_) error_ = error;
  }

  // Call last. `why` completes "FIELD: is ...": "is not known to native pipelines".
  void refuse_unknown_fields(const std::string& why) {
    if (error_) return;
    for (const auto& [name, value] : object_.items())
      if (std::find(known_.begin(), known_.end(), name) == known_.end()) return fail(name, why);
  }

  const std::optional<Error>& error() const { return error_; }

 private:
  void read(const nlohmann::json& value, const std::string& name, std::string& out) {
    if (!value.is_string()) return fail(name, "must be a string");
    out = value.get_ref<const std::string&>();
  }
  void read(const nlohmann::json& value, const std::string& name, bool& out) {
    if (!value.is_boolean()) return fail(name, "must be true or false");
    out = value.get<bool>();
  }
  void read(const nlohmann::json& value, const std::string& name, std::uint64_t& out) {
    if (!value.is_number_unsigned()) return fail(name, "must be a whole number, not negative");
    out = value.get<std::uint64_t>();
  }
  void read(const nlohmann::json& value, const std::string& name, std::uint32_t& out) {
    std::uint64_t wide = 0;
    read(value, name, wide);
    if (wide > 0xFFFFFFFF) return fail(name, "is too large");
    out = static_cast<std::uint32_t>(wide);
  }
  void read(const nlohmann::json& value, const std::string& name, int& out) {
    std::uint32_t wide = 0;
    read(value, name, wide);
    if (wide > 0x7FFFFFFF) return fail(name, "is too large");
    out = static_cast<int>(wide);
  }
  void read(const nlohmann::json& value, const std::string& name, std::int64_t& out) {
    // An unsigned number above 2^63-1 would wrap silently.
    const bool in_range =
        value.is_number_unsigned() ? value.get<std::uint64_t>() <= 0x7FFFFFFFFFFFFFFFULL : value.is_number_integer();
    if (!in_range) return fail(name, "must be a whole number of 64 bits");
    out = value.get<std::int64_t>();
  }
  void read(const nlohmann::json& value, const std::string& name, double& out) {
    if (!value.is_number() || !std::isfinite(value.get<double>())) return fail(name, "must be a number");
    out = value.get<double>();
  }
  template <typename T>
  void read(const nlohmann::json& value, const std::string& name, std::vector<T>& out) {
    if (!value.is_array()) return fail(name, "must be a list");
    out.resize(value.size());
    for (std::size_t i = 0; i < value.size() && !error_; ++i)
      read(value[i], name + "[" + std::to_string(i) + "]", out[i]);
  }

  const nlohmann::json& object_;
  const std::string path_;
  std::vector<std::string_view> known_;  // fields that were asked for
  std::optional<Error> error_;
};

}  // namespace sluice
