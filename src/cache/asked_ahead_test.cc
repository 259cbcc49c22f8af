#include "src/cache/asked_ahead.h"

#include <atomic>
#include <future>
#include <map>

#include "src/base/testing/catch.h"
#include "src/base/testing/manual_clock.h"

namespace sluice::cache {
namespace {

using pipeline::FilePart;
using pipeline::ReadAhead;

constexpr std::chrono::seconds kDeadline{20};

Key key_of(const std::string& name, const std::string& form = "") { return {form + " of " + name, "version"}; }

// What another process keeps. It answers when it is open.
class OtherProcess final : public RecordStore {
 public:
  bool find(const Key& key, std::vector<std::uint8_t>& value) override {
    std::unique_lock lock(mutex_);
    opened_.wait(lock, [this] { return is_open_; });
    asked.push_back(key.place);
    const auto found = kept.find(key.place);
    if (found == kept.end()) return false;
    value = found->second;
    return true;
  }
  bool has_room_for(const Key&, std::size_t) override { return false; }
  bool is_paused() override { return false; }
  void add(const Key&, std::span<const std::uint8_t>) override {}
  std::uint64_t free_bytes() const override { return 0; }

  void set_open(bool is_open) {
    std::lock_guard lock(mutex_);
    is_open_ = is_open;
    opened_.notify_all();
  }

  std::map<std::string, std::vector<std::uint8_t>> kept;
  std::vector<std::string> asked;

 private:
  std::mutex mutex_;
  std::condition_variable opened_;
  bool is_open_ = true;
};

// What it reads ahead comes when it is told to.
class Source final : public pipeline::FileReader {
 public:
  Result<void> read(const FilePart& part, std::vector<std::uint8_t>&) const override { return not_found(part.path); }
  Result<pipeline::FileIdentity> identify(const std::string& path) const override { return not_found(path); }
  std::shared_ptr<ReadAhead> read_ahead(const PartOf& part, std::size_t parts, const pipeline::Prefix&) const override {
    std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < parts; ++i) ahead_.push_back(part(i).path);
    return parts == 0 ? nullptr : std::make_shared<Coming>(*this);
  }

  std::vector<std::string> ahead() const {
    std::lock_guard lock(mutex_);
    return ahead_;
  }
  // False: nothing is waited for.
  bool arrive() const {
    std::unique_lock lock(mutex_);
    const auto come = std::exchange(come_, nullptr);
    lock.unlock();
    if (come) come();
    return come != nullptr;
  }

 private:
  struct Coming final : ReadAhead {
    explicit Coming(const Source& of) : source(of) {}
    bool when_come(std::function<void()> come) override {
      std::lock_guard lock(source.mutex_);
      source.come_ = std::move(come);
      return true;
    }
    const Source& source;
  };

  mutable std::mutex mutex_;
  mutable std::vector<std::string> ahead_;
  mutable std::function<void()> come_;
};

struct AskingFiles {
  std::shared_ptr<ReadAhead> ask(const std::vector<std::string>& names) {
    std::vector<AskedAhead::Part> parts;
    for (const std::string& name : names) parts.push_back({FilePart(name), {key_of(name)}});
    return asked->ask(std::move(parts), {});
  }
  static std::future<void> begin_wait(const std::shared_ptr<ReadAhead>& batch) {
    const auto come = std::make_shared<std::promise<void>>();
    if (!batch->when_come([come, batch] { come->set_value(); })) come->set_value();
    return come->get_future();
  }
  // Until the batch could begin, or needs the source for it.
  void wait(std::future<void>& begun) const {
    const auto ends = std::chrono::steady_clock::now() + kDeadline;
    while (begun.wait_for(std::chrono::milliseconds(1)) != std::future_status::ready) {
      REQUIRE(std::chrono::steady_clock::now() < ends);
      source->arrive();
    }
  }
  void come(const std::shared_ptr<ReadAhead>& batch) const {
    auto begun = begin_wait(batch);
    wait(begun);
  }

  sluice::testing::ManualClock clock;
  OtherProcess store;
  std::shared_ptr<Source> source = std::make_shared<Source>();
  std::unique_ptr<AskedAhead> asked = std::make_unique<AskedAhead>(store, source, clock);
};

TEST_CASE("what another process keeps is there when its batch begins, and what it does not keep is read ahead") {
  AskingFiles fixture;
  fixture.store.kept[key_of("kept").place] = {1, 2, 3};
  const auto batch = fixture.ask({"kept", "missing"});
  fixture.come(batch);
  CHECK(fixture.source->ahead() == std::vector<std::string>{"missing"});
  const auto found = fixture.asked->take(key_of("kept"));
  REQUIRE(found);
  CHECK(found->is_found);
  CHECK(found->value == std::vector<std::uint8_t>{1, 2, 3});
  const auto missing = fixture.asked->take(key_of("missing"));
  REQUIRE(missing);
  CHECK_FALSE(missing->is_found);
  CHECK_FALSE(fixture.asked->take(key_of("kept")));  // once
  CHECK(fixture.store.asked.size() == 2);
}

TEST_CASE("what has gone since the last epoch is read ahead, and what came since is not") {
  AskingFiles fixture;
  fixture.store.kept[key_of("a").place] = {1};
  fixture.come(fixture.ask({"a", "b"}));
  CHECK(fixture.source->ahead() == std::vector<std::string>{"b"});
  fixture.store.kept = {{key_of("b").place, {2}}};
  fixture.come(fixture.ask({"a", "b"}));
  CHECK(fixture.source->ahead() == std::vector<std::string>{"b", "a"});
}

TEST_CASE("a batch waits for the answers, and then for the source") {
  AskingFiles fixture;
  fixture.store.set_open(false);
  const auto batch = fixture.ask({"missing"});
  auto begun = AskingFiles::begin_wait(batch);
  CHECK_FALSE(fixture.source->arrive());
  CHECK(begun.wait_for(std::chrono::seconds(0)) == std::future_status::timeout);
  fixture.store.set_open(true);
  fixture.wait(begun);
  CHECK(fixture.source->ahead() == std::vector<std::string>{"missing"});
}

TEST_CASE("forms are asked for in their order, until there is one that is not empty") {
  AskingFiles fixture;
  const std::vector<Key> keys{key_of("a", "output"), key_of("a", "coefficients"), key_of("a", "bytes")};
  struct Case {
    std::vector<std::string> kept;
    std::size_t asked;
  };
  const auto [kept, asked] = GENERATE(
      values<Case>({{{"output", "bytes"}, 1}, {{"coefficients"}, 2}, {{"bytes"}, 3}, {{}, 3}, {{"none", "bytes"}, 3}}));
  for (const std::string& form : kept)
    if (form == "none")
      fixture.store.kept[keys[1].place] = {};  // there are no coefficients of it
    else
      fixture.store.kept[key_of("a", form).place] = {1};
  const auto batch = fixture.asked->ask({{FilePart("a"), keys}}, {});
  fixture.come(batch);
  CHECK(fixture.store.asked.size() == asked);
  CHECK(fixture.source->ahead().size() == (kept.empty() ? 1 : 0));
  for (std::size_t i = 0; i < keys.size(); ++i) CHECK(fixture.asked->take(keys[i]).has_value() == (i < asked));
}

TEST_CASE("two batches with the same sample have an answer each, and one that is given up takes its own away") {
  AskingFiles fixture;
  fixture.store.kept[key_of("a").place] = {1};
  auto first = fixture.ask({"a"}), second = fixture.ask({"a"});
  fixture.come(first);
  fixture.come(second);
  const std::weak_ptr<ReadAhead> given_up = std::exchange(first, nullptr);
  const auto ends = std::chrono::steady_clock::now() + kDeadline;
  while (!given_up.expired()) {  // the thread that told the batch may still hold it
    REQUIRE(std::chrono::steady_clock::now() < ends);
    std::this_thread::yield();
  }
  CHECK(fixture.asked->take(key_of("a")));
  CHECK_FALSE(fixture.asked->take(key_of("a")));
  CHECK(fixture.store.asked.size() == 2);
}

TEST_CASE("a batch that is given up before it is asked for asks for nothing") {
  AskingFiles fixture;
  fixture.store.set_open(false);
  std::vector<std::shared_ptr<ReadAhead>> busy;
  for (std::size_t i = 0; i < AskedAhead::kThreads; ++i) busy.push_back(fixture.ask({"busy"}));
  fixture.ask({"given up"}).reset();
  fixture.store.set_open(true);
  for (const auto& batch : busy) fixture.come(batch);
  fixture.come(fixture.ask({"last"}));
  CHECK(std::count(fixture.store.asked.begin(), fixture.store.asked.end(), key_of("given up").place) == 0);
}

TEST_CASE("more batches than may wait are read ahead whole, and none is lost at the end") {
  AskingFiles fixture;
  fixture.store.set_open(false);
  std::vector<std::shared_ptr<ReadAhead>> waiting;
  std::vector<std::future<void>> begun;
  for (std::size_t i = 0; i < AskedAhead::kBatchesMost + AskedAhead::kThreads + 1; ++i) {
    waiting.push_back(fixture.ask({"a"}));
    begun.push_back(AskingFiles::begin_wait(waiting.back()));
  }
  CHECK_FALSE(fixture.source->ahead().empty());
  fixture.store.set_open(true);
  fixture.asked.reset();  // batches that wait for answers hold themselves; the sanitizer sees what stays
}

}  // namespace
}  // namespace sluice::cache
