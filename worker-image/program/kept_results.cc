#include "worker-image/program/kept_results.h"

namespace sluice::program {
namespace {

using executor::FileStates;
using transport::FunctionCall;

class ResultsBesideFiles final : public executor::ResultStore {
 public:
  explicit ResultsBesideFiles(std::shared_ptr<const cache::CachedFiles> files) : files_(std::move(files)) {}

  bool is_in_use() const override { return files_->is_in_use(); }
  std::optional<FileStates> states_of(const FunctionCall& call) const override { return files_->states_of(call); }
  bool find(const FunctionCall& call, const FileStates& files, std::vector<std::uint8_t>& value) override {
    return files_->find_result(call, files, value);
  }
  bool has_room_for(const FunctionCall& call, const FileStates& files, std::size_t value_bytes) override {
    return files_->has_room_for_result(call, files, value_bytes);
  }
  void keep(const FunctionCall& call, const FileStates& files, std::span<const std::uint8_t> value) override {
    files_->keep_result(call, files, value);
  }
  void count_errors(std::uint64_t damaged, std::uint64_t late) override { files_->count_result_errors(damaged, late); }

 private:
  const std::shared_ptr<const cache::CachedFiles> files_;
};

}  // namespace

std::shared_ptr<executor::KeptCalls> kept_results(std::shared_ptr<const cache::CachedFiles> files, const Clock& clock) {
  return std::make_shared<executor::KeptCalls>(std::make_shared<ResultsBesideFiles>(std::move(files)), clock);
}

}  // namespace sluice::program
