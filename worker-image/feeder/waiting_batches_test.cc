// Batches that wait, for a disk, a network or a clock: more of them are in the making than there are threads.
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <thread>

#include "src/base/testing/catch.h"
#include "src/executor/process_times.h"
#include "worker-image/testing/local_feeder.h"
#include "worker-image/testing/picture_folder.h"
#include "worker-image/testing/test_client.h"

namespace sluice::feeder {
namespace {

using testing::LocalFeeder;
using testing::TestClient;

TEST_CASE("batches that wait are in the making together on one thread, before the first of them has come") {
  const testing::TemporaryDirectory folder;
  LocalFeeder feeder({.threads = 1, .python_path = std::filesystem::absolute("src/executor/testing/python").string()});
  TestClient client(feeder.socket());
  // None of them ends before all of them run: as many as the loader has workers.
  const nlohmann::json meet = {
      {"behaviour", "meet"}, {"folder", folder.path.string()}, {"children", TestClient::kNumWorkers}};
  client.open("python", meet.dump());
  CHECK(client.run(6, 2, 10).size() == 6);
}

// A slow file system: each read takes a while, until some have taken long enough to be noticed. Then none ends before
// so many are there at once.
class SlowFiles final : public pipeline::FileReader {
 public:
  Result<void> read(const pipeline::FilePart& part, std::vector<std::uint8_t>& bytes) const override {
    wait();
    return files_->read(part, bytes);
  }
  Result<pipeline::FileIdentity> identify(const std::string& path) const override { return files_->identify(path); }

  std::size_t most() const {
    std::lock_guard lock(mutex_);
    return most_;
  }

 private:
  static constexpr int kSlowReads = 40;
  static constexpr std::size_t kTogether = TestClient::kNumWorkers;

  void wait() const {
    std::unique_lock lock(mutex_);
    most_ = std::max(most_, ++here_);
    if (++reads_ > kSlowReads) {
      changed_.notify_all();
      changed_.wait_for(lock, std::chrono::seconds(20), [&] { return most_ >= kTogether; });
    } else {
      lock.unlock();
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      lock.lock();
    }
    --here_;
  }

  const std::shared_ptr<const pipeline::FileReader> files_ = pipeline::make_system_file_reader();
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  mutable std::size_t here_ = 0, most_ = 0;
  mutable int reads_ = 0;
};

TEST_CASE("files of a slow file system are read together, as many as a loader has workers") {
  if (!executor::own_queued_seconds()) return;  // a kernel that does not count
  const testing::PictureFolder pictures(10);
  const auto files = std::make_shared<const SlowFiles>();
  LocalFeeder feeder({.threads = 1, .files = files});
  TestClient client(feeder.socket());
  client.open("native", pictures.specification(8));
  CHECK(client.run(40, 8, 10).size() == 40);
  CHECK(files->most() == TestClient::kNumWorkers);
}

}  // namespace
}  // namespace sluice::feeder
