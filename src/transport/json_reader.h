// Reads typed fields out of a JSON object and remembers the first thing that was wrong, by its path.
//
// Usage: read every field, then look at error() once; fields read after an error have their defaults.
// Private to this folder's .cc files (it needs the JSON library's header). Thread safety: none.
#pragma once

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "src/base/result.h"

namespace sluice::transport {

class JsonReader {
 public:
  JsonReader(const nlohmann::json& object, std::string path) : object_(object), path_(std::move(path)) {
    if (!object_.is_object()) fail("", "must be an object");
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

  const nlohmann::json* find(const char* name) const {
    if (!object_.is_object()) return nullptr;
    const auto field = object_.find(name);
    return field == object_.end() ? nullptr : &*field;
  }

  void fail(const std::string& name, const std::string& what) {
    if (!error_) error_ = invalid_argument(path_ + (name.empty() ? "" : "." + name) + ": " + what);
  }

  // The error of a reader of a part of this object.
  void fail(const Error& error) {
    if (!error_) error_ = error;
  }

  const std::optional<Error>& error() const { return error_; }

 private:
  void read(const nlohmann::json& value, const std::string& name, std::string& out) {
    if (!value.is_string()) return fail(name, "must be a string");
    out = value.get_ref<const std::string&>();
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
  std::optional<Error> error_;
};

}  // namespace sluice::transport
