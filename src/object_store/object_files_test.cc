// Objects through the whole client: the reader, its requests, Beast's network, and a store that errs.
#include "src/object_store/object_files.h"

#include <fstream>
#include <future>
#include <random>
#include <thread>

#include "src/base/testing/catch.h"
#include "src/base/testing/temporary_directory.h"
#include "src/object_store/beast_network.h"
#include "src/object_store/testing/loopback_store.h"

namespace sluice::object_store {
namespace {

using pipeline::FilePart;
using testing::Fault;
using testing::LoopbackStore;

std::string some_bytes(std::size_t count) {
  std::mt19937 random(7);
  std::string bytes(count, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

struct Site {
  explicit Site(LoopbackStore::FaultOf fault = nullptr, http::testing::LoopbackOptions options = {},
                Environment variables = {}, Clock::Duration silence = std::chrono::milliseconds(100))
      : patience(silence),
        environment(std::make_shared<const Environment>(std::move(variables))),
        store(object, std::move(fault), std::move(options)) {}

  FilePart part(std::uint64_t offset, std::uint64_t bytes, const char* etag = "\"e\"") const {
    return {store.url(), {offset, bytes, object.size(), 1}, {etag, environment}};
  }
  std::string read(const FilePart& wanted) const {
    std::vector<std::uint8_t> bytes{1, 2, 3};
    const auto done = files.read(wanted, bytes);
    return done.ok() ? std::string(bytes.begin(), bytes.end()) : "error: " + done.error().message();
  }
  std::shared_ptr<pipeline::ReadAhead> read_ahead(const std::vector<FilePart>& parts) const {
    return files.read_ahead([&](std::size_t i) { return parts[i]; }, parts.size(), {});
  }
  static void wait_for(const std::shared_ptr<pipeline::ReadAhead>& ahead) {
    std::promise<void> come;
    if (ahead->when_come([&] { come.set_value(); })) come.get_future().wait();
  }

  const std::string object = some_bytes(3'000'000);
  const Clock::Duration patience;
  std::shared_ptr<const Environment> environment;
  LoopbackStore store;
  SystemClock clock;
  ObjectFiles files{pipeline::make_system_file_reader(),
                    std::make_unique<RangeClient>(
                        make_beast_network({.silence = patience}), clock, [] { return 0.01; }, read_text_of_disk())};
};

TEST_CASE("a part of an object is read, over one connection") {
  Site site;
  CHECK(site.read(site.part(100, 50)) == site.object.substr(100, 50));
  CHECK(site.read(site.part(0, 3'000'000)) == site.object);
  CHECK(site.read(site.part(7, 0)).empty());
  CHECK(site.store.requests() == 2);
  CHECK(site.store.connections() == 1);
}

TEST_CASE("whatever a store and its network do once, the bytes are right") {
  const Fault fault = GENERATE(Fault::kBusy, Fault::kCutOff, Fault::kOtherRange, Fault::kWhole, Fault::kReset,
                               Fault::kSilent, Fault::kStalls, Fault::kGarbage, Fault::kTooLong, Fault::kClosesQuietly,
                               Fault::kChunked, Fault::kWithoutLength);
  CAPTURE(static_cast<int>(fault));
  Site site([fault](int request) { return request % 3 == 1 ? fault : Fault::kNone; });
  for (std::uint64_t offset = 0; offset < 5; ++offset)
    REQUIRE(site.read(site.part(offset, 100'000)) == site.object.substr(offset, 100'000));
  if (fault == Fault::kChunked || fault == Fault::kWithoutLength) CHECK(site.store.requests() == 5);
}

TEST_CASE("a request that hangs or whose body stalls is sent once more over another connection, and hung up on") {
  const Fault fault = GENERATE(Fault::kSilent, Fault::kStalls);
  constexpr int kAnsweredBefore = 64;
  Site site([fault](int request) { return request == kAnsweredBefore ? fault : Fault::kNone; }, {}, {},
            /*silence=*/std::chrono::minutes(5));
  for (std::uint64_t offset = 0; offset <= kAnsweredBefore; ++offset)
    REQUIRE(site.read(site.part(offset, 10'000)) == site.object.substr(offset, 10'000));
  CHECK(site.files.counters().hedges_useful >= 1);
  CHECK(site.store.connections() >= 2);
  while (site.store.hang_ups() == 0) std::this_thread::yield();
  CHECK(site.read(site.part(7, 10'000)) == site.object.substr(7, 10'000));
}

TEST_CASE("memory of a sample before is no part of another one's bytes") {
  Site site([](int request) { return request % 2 == 1 ? Fault::kBusy : Fault::kNone; });
  for (const std::uint64_t bytes : {90'000, 100'000, 50'000, 120'000, 1, 80'000}) {
    std::vector<std::uint8_t> held(200'000, 0xAA);
    REQUIRE(site.files.read(site.part(3, bytes), held).ok());
    CHECK(std::string(held.begin(), held.end()) == site.object.substr(3, bytes));
  }
}

TEST_CASE("a fault that stays is an error after ten attempts") {
  const std::pair<Fault, const char*> cases[] = {
      {Fault::kBusy, "503 "}, {Fault::kCutOff, "a body that is cut off"}, {Fault::kWhole, "the whole object"}};
  const auto& [fault, words] = GENERATE_COPY(from_range(std::begin(cases), std::end(cases)));
  Site site([fault = fault](int) { return fault; });
  const std::string told = site.read(site.part(512, 100));
  CHECK_THAT(told,
             Catch::Contains("/bucket/a.tar, bytes 512 to 612: not read in 10 attempts: ") && Catch::Contains(words));
  CHECK(site.store.requests() == kAttemptsMost);
}

TEST_CASE("an object in another state than the part's is an error, and nothing listens") {
  Site site;
  CHECK_THAT(site.read(site.part(0, 10, "\"f\"")), Catch::Contains("has changed since its index was made"));
  FilePart closed = site.part(0, 10);
  closed.path = "http://127.0.0.1:" + std::to_string(http::testing::unused_port()) + "/k?X-Amz-Signature=secret";
  CHECK_THAT(site.read(closed), Catch::Contains("no connection") && !Catch::Contains("secret"));
}

TEST_CASE("what is read ahead is asked for at once, neighbours together, and handed out once") {
  Site site;
  std::vector<FilePart> parts{site.part(2'000'000, 100), site.part(0, 1000), site.part(1100, 500), site.part(0, 1000),
                              site.part(5, 0)};
  auto ahead = site.read_ahead(parts);
  REQUIRE(ahead != nullptr);
  Site::wait_for(ahead);
  CHECK(site.store.requests() == 2);
  for (const FilePart& part : parts)
    CHECK(site.read(part) == site.object.substr(part.range->offset, part.range->bytes));
  CHECK(site.store.requests() == 2);
  CHECK(site.read(parts[1]) == site.object.substr(0, 1000));
  CHECK(site.store.requests() == 3);
  CHECK_FALSE(ahead->when_come([] {}));
}

TEST_CASE("what a batch gives up is asked for again") {
  Site site;
  const std::vector<FilePart> parts{site.part(0, 1000), site.part(2000, 1000)};
  auto first = site.read_ahead(parts);
  auto second = site.read_ahead(parts);
  Site::wait_for(first);
  Site::wait_for(second);
  CHECK(site.store.requests() == 2);
  CHECK(site.read(parts[0]) == site.object.substr(0, 1000));
  first.reset();
  second.reset();
  CHECK(site.read(parts[0]) == site.object.substr(0, 1000));
  CHECK(site.store.requests() == 3);
}

TEST_CASE("an error of what was read ahead is told by the read") {
  Site site;
  const std::vector<FilePart> parts{site.part(0, 10, "\"f\""), site.part(100'000'000, 10)};
  const auto ahead = site.read_ahead({parts[0]});
  Site::wait_for(ahead);
  CHECK_THAT(site.read(parts[0]), Catch::Contains("has changed"));
}

TEST_CASE("files are read as before, and nothing of them is read ahead") {
  Site site;
  CHECK_THAT(site.read(FilePart("/nowhere/a.jpg")), Catch::Contains("open /nowhere/a.jpg"));
  CHECK(site.read_ahead({FilePart("/nowhere/a.jpg")}) == nullptr);
  CHECK_FALSE(site.files.identify("/nowhere/a.jpg").ok());
}

TEST_CASE("the end of a reader ends all that wait for it") {
  Site site([](int) { return Fault::kBusy; });
  const auto ahead = site.read_ahead({site.part(0, 10)});
  std::string told;
  std::thread reader([&] { told = site.read(site.part(20, 10)); });
  while (site.store.requests() < 2) std::this_thread::yield();
  site.files.end();
  reader.join();
  CHECK_THAT(told, Catch::Contains("has ended"));
  CHECK_THAT(site.read(site.part(40, 10)), Catch::Contains("has ended"));
}

TEST_CASE("a store behind TLS must be who it says, by an authority that is trusted") {
  const http::testing::CertificateAuthority authority("stores");
  sluice::testing::TemporaryDirectory directory;
  const std::string file = directory.path / "authorities.pem";
  std::ofstream(file) << authority.certificate_pem();
  const auto site_of = [&](const std::string& names, const std::string& trusted) {
    return std::make_unique<Site>(nullptr, http::testing::LoopbackOptions{.identity = authority.issue("store", names)},
                                  Environment{{"SSL_CERT_FILE", trusted}});
  };
  CHECK(site_of("IP:127.0.0.1", file)->read(site_of("IP:127.0.0.1", file)->part(0, 0)).empty());
  const auto good = site_of("IP:127.0.0.1", file);
  CHECK(good->read(good->part(0, 50)) == good->object.substr(0, 50));
  const auto other = site_of("DNS:other.example", file);
  CHECK_THAT(other->read(other->part(0, 50)), Catch::Contains("no TLS"));
  const auto unknown = site_of("IP:127.0.0.1", "/nowhere");
  CHECK_THAT(unknown->read(unknown->part(0, 50)), Catch::Contains("no TLS"));
}

}  // namespace
}  // namespace sluice::object_store
