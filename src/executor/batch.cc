#include "src/executor/batch.h"

#include <openssl/evp.h>

#include <array>

#include "src/pipeline/native_pipeline.h"

namespace sluice::executor {
namespace {

std::string sha256_hex(std::string_view first, std::string_view second) {
  struct Free {
    void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
  };
  const std::unique_ptr<EVP_MD_CTX, Free> context(EVP_MD_CTX_new());
  std::array<unsigned char, 32> digest{};
  EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr);
  EVP_DigestUpdate(context.get(), first.data(), first.size());
  EVP_DigestUpdate(context.get(), second.data(), second.size());
  EVP_DigestFinal_ex(context.get(), digest.data(), nullptr);
  std::string hex;
  for (const unsigned char byte : digest) {
    hex += "0123456789abcdef"[byte >> 4];
    hex += "0123456789abcdef"[byte & 15];
  }
  return hex;
}

}  // namespace

std::string pipeline_fingerprint(ExecutorKind kind, std::string_view blob) { return sha256_hex(to_string(kind), blob); }

Result<PipelineHandle> make_pipeline(std::uint64_t number, ExecutorKind kind, transport::SealedMemoryHandle blob,
                                     std::string python, std::uint32_t num_workers,
                                     std::shared_ptr<const pipeline::FileReader> files) {
  std::string fingerprint = pipeline_fingerprint(kind, blob->bytes());
  return make_pipeline(number, kind, std::move(blob), std::move(python), num_workers, std::move(fingerprint),
                       std::move(files), 0);
}

Result<PipelineHandle> make_pipeline(std::uint64_t number, ExecutorKind kind, transport::SealedMemoryHandle blob,
                                     std::string python, std::uint32_t num_workers, std::string fingerprint,
                                     std::shared_ptr<const pipeline::FileReader> files, std::uint64_t owner) {
  auto made = std::make_shared<Pipeline>();
  made->number = number;
  made->fingerprint = std::move(fingerprint);
  made->kind = kind;
  made->python = std::move(python);
  made->num_workers = num_workers;
  made->owner = owner;
  made->waits->set_jobs_max(num_workers);
  if (kind == ExecutorKind::kNative) {
    SLUICE_TRY(made->native, pipeline::NativePipeline::parse(blob->bytes(), std::move(files), blob));
  }
  made->blob = std::move(blob);
  return PipelineHandle(std::move(made));
}

Error no_longer_wanted() { return {ErrorCode::kCancelled, "the batch is no longer wanted"}; }

BatchFailure to_failure(const Error& error) {
  BatchFailure result;
  result.failure.message = error.message();
  switch (error.code()) {
    case ErrorCode::kNotFound: result.failure.exception_type = "FileNotFoundError"; break;
    case ErrorCode::kPermissionDenied: result.failure.exception_type = "PermissionError"; break;
    case ErrorCode::kDataLoss: result.failure.exception_type = "OSError"; break;
    case ErrorCode::kInvalidArgument: result.failure.exception_type = "ValueError"; break;
    case ErrorCode::kResourceExhausted: result.failure.exception_type = "MemoryError"; break;
    default: result.failure.exception_type = "RuntimeError"; break;
  }
  result.executor_fault = error.code() == ErrorCode::kResourceExhausted || error.code() == ErrorCode::kUnavailable ||
                          error.code() == ErrorCode::kCancelled || error.code() == ErrorCode::kDeadlineExceeded;
  return result;
}

}  // namespace sluice::executor
