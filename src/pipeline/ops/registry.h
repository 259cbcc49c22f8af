// The operations that native pipelines know, by the names of the specification.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "src/base/result.h"
#include "src/pipeline/ops/op.h"

namespace sluice::pipeline {

struct NamedOp {
  std::string_view name;  // static storage
  std::unique_ptr<const Op> op;
  bool keeps_position = false;  // nothing waits behind it, and it waits behind nothing
};

// Reads the operation `fields`, which gets a value of type `value` and makes it the type of its result. InvalidArgument
// begins with `path`, where the fields are in the specification.
Result<NamedOp> read_op(const nlohmann::json& fields, const std::string& path, ValueType& value);

}  // namespace sluice::pipeline
