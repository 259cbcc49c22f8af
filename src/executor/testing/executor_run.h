// A PythonExecutor with the children of testing/python/sluice/executor.py, which behave and misbehave as they are told.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <variant>

#include "src/base/testing/catch.h"
#include "src/executor/python_executor.h"

namespace sluice::executor {

inline constexpr std::size_t kTestMiB = std::size_t{1} << 20;

struct ExecutorRun {
  std::shared_ptr<transport::Arena> arena = *transport::Arena::create(4 * kTestMiB);
  const std::string python_path = std::filesystem::absolute("src/executor/testing/python").string();
  PythonExecutor executor{{.arena = arena, .python_path = python_path, .cancel_grace = std::chrono::seconds(0)}, 2};
  std::uint64_t next_pipeline = 1;

  BatchRequest request(const std::string& blob, const std::string& python = "/usr/bin/python3") {
    auto pipeline =
        make_pipeline(next_pipeline++, ExecutorKind::kPython, *transport::SealedMemory::copy_of(blob), python, 3);
    REQUIRE(pipeline.ok());
    BatchRequest request;
    request.pipeline = *pipeline;
    request.seq = 7;
    request.indices = {10, 20, 30};
    return request;
  }

  std::variant<Batch, BatchFailure> run(const BatchRequest& request) {
    return executor.run(request, {}, [] { return false; });
  }

  BatchFailure failure(const BatchRequest& request) {
    auto outcome = run(request);
    REQUIRE(std::holds_alternative<BatchFailure>(outcome));
    return std::get<BatchFailure>(outcome);
  }
};

inline std::string behaviour(const std::string& name) { return R"({"behaviour": ")" + name + R"("})"; }

}  // namespace sluice::executor
