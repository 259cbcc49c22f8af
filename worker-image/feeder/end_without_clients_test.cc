#include "worker-image/feeder/end_without_clients.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "src/base/testing/catch.h"
#include "src/base/testing/manual_clock.h"
#include "src/base/testing/temporary_directory.h"

namespace sluice::feeder {
namespace {

using std::chrono::seconds;

struct LockedEnd {
  LockedEnd() {
    std::filesystem::create_directory(folder);
    std::ofstream(folder / "lock");
    std::ofstream(folder / "feeder.log") << "ready";
    end.emplace(
        folder / "lock", [this] { return clients; }, clock);
  }

  testing::TemporaryDirectory directory;
  const std::filesystem::path folder = directory.path / "name";
  testing::ManualClock clock;
  std::size_t clients = 0;
  std::optional<EndWithoutClients> end;
};

// Another process that has the lock, until it is told to die: locks of one process do not keep itself out.
class Holder {
 public:
  explicit Holder(const std::filesystem::path& lock) {
    int ready[2];
    REQUIRE(::pipe(ready) == 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      const int file = ::open(lock.c_str(), O_RDWR);
      struct flock all {};
      all.l_type = F_WRLCK;
      const char result = ::fcntl(file, F_SETLK, &all) == 0 ? 'y' : 'n';
      (void)!::write(ready[1], &result, 1);
      while (true) ::pause();
    }
    char result = 'n';
    REQUIRE(::read(ready[0], &result, 1) == 1);
    REQUIRE(result == 'y');
    ::close(ready[0]);
    ::close(ready[1]);
  }
  ~Holder() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

 private:
  pid_t pid_;
};

TEST_CASE("a shared feeder ends as soon as its last client has gone, and its folder with it") {
  LockedEnd f;
  f.clients = 2;
  CHECK_FALSE(f.end->is_due());
  f.clients = 0;
  CHECK(f.end->is_due());
  CHECK(std::filesystem::exists(f.folder));  // its socket is still there
  f.end.reset();
  CHECK_FALSE(std::filesystem::exists(f.folder));
}

TEST_CASE("it waits for its first client, but not for ever") {
  LockedEnd f;
  f.clock.advance(EndWithoutClients::kFirstClientMax - seconds(1));
  CHECK_FALSE(f.end->is_due());
  f.clock.advance(seconds(1));
  CHECK(f.end->is_due());
}

TEST_CASE("it stays while a rank has the lock, also one that has died meanwhile") {
  LockedEnd f;
  f.clock.advance(EndWithoutClients::kFirstClientMax);
  {
    const Holder holder(f.folder / "lock");
    CHECK_FALSE(f.end->is_due());
  }
  CHECK(f.end->is_due());
}

TEST_CASE("a client that came while it took the lock is served, and the lock is free again") {
  LockedEnd f;
  std::size_t asked = 0;
  f.end.emplace(
      f.folder / "lock", [&] { return asked++ == 0 ? 0 : 1; }, f.clock);
  f.clock.advance(EndWithoutClients::kFirstClientMax);
  CHECK_FALSE(f.end->is_due());
  { const Holder holder(f.folder / "lock"); }
  f.end.reset();
  CHECK(std::filesystem::exists(f.folder / "feeder.log"));
}

TEST_CASE("it ends, too, where the folder is gone; what is in it beside its own files is not touched") {
  LockedEnd f;
  f.clock.advance(EndWithoutClients::kFirstClientMax);
  SECTION("gone") {
    std::filesystem::remove_all(f.folder);
    CHECK(f.end->is_due());
  }
  SECTION("with a file of another owner") {
    std::ofstream(f.folder / "mine");
    CHECK(f.end->is_due());
    f.end.reset();
    CHECK(std::filesystem::exists(f.folder / "mine"));
    CHECK_FALSE(std::filesystem::exists(f.folder / "lock"));
  }
}

}  // namespace
}  // namespace sluice::feeder
