// Reading a JSON object strictly: every field is asked for by name and type, whatever was not asked for is an error.
//
// Thread safety: none. Errors: InvalidArgument, "<path>.<field>: must be ...".
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.h"

namespace sluice::pipeline {

class JsonObject {
 public:
  // `where` is the object's path for messages, "ops[2]"; empty for the document itself. `value` must outlive this.
  static Result<JsonObject> of(const nlohmann::json& value, std::string where);

  bool has(std::string_view field) const;

  // Each of these marks the field as known. `must` completes "must be ..." in the message.
  Result<const nlohmann::json*> field(std::string_view name);
  Result<std::string> string(std::string_view name);
  Result<std::int64_t> integer(std::string_view name, std::int64_t smallest, std::int64_t largest);
  Result<double> number(std::string_view name, double smallest, double largest);
  Result<std::vector<double>> numbers(std::string_view name, std::size_t count);
  Result<const nlohmann::json*> array(std::string_view name);

  // Call last.
  Result<void> refuse_unknown_fields() const;

  Error error(std::string_view field, std::string_view message) const;

 private:
  JsonObject(const nlohmann::json& value, std::string where) : value_(&value), where_(std::move(where)) {}

  const nlohmann::json* value_;
  std::string where_;
  std::set<std::string, std::less<>> known_;
};

}  // namespace sluice::pipeline
