// The order of an epoch on its way from a client to the files of its pipeline.
#include <filesystem>
#include <future>

#include "src/base/testing/catch.h"
#include "src/pipeline/file_reader.h"
#include "worker-image/testing/local_feeder.h"
#include "worker-image/testing/picture_folder.h"
#include "worker-image/testing/test_client.h"

namespace sluice::feeder {
namespace {

// Files of a cache that is shared with other jobs.
class SharedFiles final : public pipeline::FileReader {
 public:
  Result<void> read(const pipeline::FilePart& part, std::vector<std::uint8_t>& bytes) const override {
    return files_->read(part, bytes);
  }
  Result<pipeline::FileIdentity> identify(const std::string& path) const override { return files_->identify(path); }
  bool takes_orders() const override { return takes; }
  void announce(const PartOf& part, const pipeline::Prefix&, const EpochOrder& order) const override {
    announced.set_value({order, part(order.length - 1).path});
  }

  bool takes = true;
  mutable std::promise<std::pair<EpochOrder, std::string>> announced;

 private:
  const std::shared_ptr<const pipeline::FileReader> files_ = pipeline::make_system_file_reader();
};

TEST_CASE("the order of an epoch goes to files that take orders, and to no others") {
  const testing::PictureFolder pictures(24);
  const auto files = std::make_shared<SharedFiles>();
  files->takes = GENERATE(true, false);
  testing::LocalFeeder feeder({.files = files});
  testing::TestClient client(feeder.socket());
  CHECK(client.welcome().value("takes_orders", false) == files->takes);
  client.open("native", pictures.specification(), 1);
  auto announced = files->announced.get_future();
  const auto opens = [&](std::uint64_t stream, std::uint64_t length) {
    client.send({{"type", "open"},
                 {"stream", stream},
                 {"pipeline", 1},
                 {"base_seed", 1},
                 {"epoch", 0},
                 {"order", {{"seed", 9}, {"length", length}}}});
  };
  opens(2, 23);  // of another data set
  opens(3, 24);
  CHECK(client.run(3, 8, 24).size() == 3);
  if (!files->takes) {
    CHECK(announced.wait_for(std::chrono::seconds(0)) == std::future_status::timeout);
    return;
  }
  REQUIRE(announced.wait_for(std::chrono::minutes(1)) == std::future_status::ready);
  const auto [order, last_path] = announced.get();
  CHECK(order == EpochOrder{.seed = 9, .length = 24});
  CHECK(std::filesystem::exists(last_path));
}

}  // namespace
}  // namespace sluice::feeder
