// The feeder's socket and clients that are slow, silent, many or wrong.
#include "worker-image/feeder/socket_server.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <atomic>
#include <cstring>
#include <optional>

#include "src/base/testing/catch.h"
#include "src/base/testing/temporary_directory.h"
#include "src/transport/sealed_memory.h"
#include "worker-image/testing/eventually.h"

namespace sluice::feeder {
namespace {

using testing::eventually;
using transport::Frame;
using transport::FrameSocket;
using transport::UniqueFd;

// Notes what the server tells; every frame is also echoed if the test says so.
class Notes final : public SocketHandler {
 public:
  void connected(std::shared_ptr<Connection> connection) override {
    std::lock_guard lock(mutex_);
    connections_.push_back(std::move(connection));
  }
  void received(std::uint64_t client, Frame frame) override {
    std::lock_guard lock(mutex_);
    if (echo) connections_.at(client - 1)->send(frame.json, frame.blob);
    if (frame.json == "pause") connections_.at(client - 1)->pause();
    frames_.push_back(std::move(frame));
  }
  void broken(std::uint64_t client, const Error& error) override {
    std::lock_guard lock(mutex_);
    connections_.at(client - 1)->send(error.message());
  }
  void disconnected(std::uint64_t) override { ++gone; }

  std::shared_ptr<Connection> connection(std::size_t number) {
    REQUIRE(eventually([&] {
      std::lock_guard lock(mutex_);
      return connections_.size() > number;
    }));
    std::lock_guard lock(mutex_);
    return connections_[number];
  }
  std::size_t frames() {
    std::lock_guard lock(mutex_);
    return frames_.size();
  }

  std::atomic<bool> echo = false;
  std::atomic<int> gone = 0;

 private:
  std::mutex mutex_;
  std::vector<std::shared_ptr<Connection>> connections_;  // clients are numbered from 1
  std::vector<Frame> frames_;
};

sockaddr_un address_at(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
  return address;
}

struct ServedSocket {
  ServedSocket() {
    auto started = SocketServer::start(path(), notes);
    REQUIRE(started.ok());
    server = std::move(started).value();
  }
  std::string path() const { return (directory.path / "test.sock").string(); }

  FrameSocket connect() const {
    UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_un address = address_at(path());
    REQUIRE(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0);
    return FrameSocket(std::move(fd));
  }

  testing::TemporaryDirectory directory;
  Notes notes;
  std::unique_ptr<SocketServer> server;
};

FrameSocket::Deadline soon() { return std::chrono::steady_clock::now() + std::chrono::seconds(60); }

TEST_CASE("frames of all sizes go both ways, in order") {
  ServedSocket f;
  f.notes.echo = true;
  FrameSocket client = f.connect();
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{300000}, std::size_t{5} << 20}) {
    const std::string blob(bytes, 'b');
    REQUIRE(client.send("{}", blob, soon()).ok());
    const auto echo = client.receive(soon());
    REQUIRE(echo.ok());
    CHECK((echo->blob == blob));
  }
  for (int i = 0; i < 500; ++i) REQUIRE(client.send(std::to_string(i), "", soon()).ok());
  for (int i = 0; i < 500; ++i) CHECK(client.receive(soon())->json == std::to_string(i));
}

TEST_CASE("a paused client's frames wait for its resumption, in order; others are served meanwhile") {
  ServedSocket f;
  f.notes.echo = true;
  FrameSocket paused = f.connect();
  const auto connection = f.notes.connection(0);
  FrameSocket other = f.connect();
  std::string together;  // read at once, so some frames wait in the server and not in the socket
  for (const char* text : {"pause", "second", "pause", "fourth"}) together += transport::encode_frame(text, "");
  REQUIRE(::send(paused.fd(), together.data(), together.size(), MSG_NOSIGNAL) == static_cast<long>(together.size()));
  CHECK(paused.receive(soon())->json == "pause");
  for (int i = 0; i < 100; ++i) REQUIRE(paused.send(std::to_string(i), "", soon()).ok());
  for (int i = 0; i < 100; ++i) {
    REQUIRE(other.send("other", "", soon()).ok());
    CHECK(other.receive(soon())->json == "other");
  }
  CHECK(f.notes.frames() == 101);
  connection->resume();
  CHECK(paused.receive(soon())->json == "second");
  CHECK(paused.receive(soon())->json == "pause");
  REQUIRE(other.send("other", "", soon()).ok());
  CHECK(other.receive(soon())->json == "other");
  CHECK(f.notes.frames() == 104);
  connection->resume();
  CHECK(paused.receive(soon())->json == "fourth");
  for (int i = 0; i < 100; ++i) CHECK(paused.receive(soon())->json == std::to_string(i));
}

TEST_CASE("a paused client is told of its broken frame after those before it, and may disconnect") {
  ServedSocket f;
  f.notes.echo = true;
  {
    FrameSocket client = f.connect();
    const std::string bytes =
        transport::encode_frame("pause", "") + transport::encode_frame("next", "") + std::string(8, '\xff');
    REQUIRE(::send(client.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<long>(bytes.size()));
    CHECK(client.receive(soon())->json == "pause");
    f.notes.connection(0)->resume();
    CHECK(client.receive(soon())->json == "next");
    CHECK(client.receive(soon()).ok());  // the error
    CHECK(client.receive(soon()).error().code() == ErrorCode::kUnavailable);
  }
  CHECK(eventually([&] { return f.notes.gone == 1; }));
  {
    FrameSocket client = f.connect();
    REQUIRE(client.send("pause", "", soon()).ok());
    CHECK(client.receive(soon())->json == "pause");
  }
  CHECK(eventually([&] { return f.notes.gone == 2; }));
  f.notes.connection(1)->resume();  // without effect
  f.server.reset();
  f.notes.connection(1)->resume();
}

TEST_CASE("a descriptor comes with its own frame, also when others are queued before it") {
  ServedSocket f;
  FrameSocket client = f.connect();
  const auto connection = f.notes.connection(0);
  UniqueFd memory(::memfd_create("socket_server_test", MFD_CLOEXEC));
  REQUIRE(::ftruncate(memory.get(), 4321) == 0);
  connection->send("first", std::string(std::size_t{3} << 20, 'x'));  // more than the kernel takes at once
  connection->send("second", "", memory.get());
  CHECK(client.receive(soon())->json == "first");
  CHECK(client.receive(soon())->json == "second");
  const UniqueFd passed = client.take_passed_fd();
  REQUIRE(passed.valid());
  CHECK(::lseek(passed.get(), 0, SEEK_END) == 4321);
}

TEST_CASE("descriptors that a client passes are taken in their order") {
  ServedSocket f;
  FrameSocket client = f.connect();
  const auto connection = f.notes.connection(0);
  const std::string texts[] = {"first", "second"};
  for (const std::string& text : texts) {
    const auto memory = transport::SealedMemory::copy_of(text);
    REQUIRE(client.send("{}", "", soon(), (*memory)->fd()).ok());
  }
  CHECK(eventually([&] { return f.notes.frames() == 2; }));
  for (const std::string& text : texts)
    CHECK((*transport::SealedMemory::adopt(connection->take_passed_fd(), 100))->bytes() == text);
  CHECK(!connection->take_passed_fd().valid());
}

TEST_CASE("a client that passes descriptors without end is disconnected, and no other") {
  ServedSocket f;
  std::optional<FrameSocket> greedy = f.connect();
  FrameSocket other = f.connect();
  const auto memory = transport::SealedMemory::copy_of("x");
  for (std::size_t passed = 0; passed <= Connection::kPassedMax; ++passed)
    REQUIRE(greedy->send("{}", "", soon(), (*memory)->fd()).ok());
  CHECK(greedy->receive(soon()).error().code() == ErrorCode::kUnavailable);
  greedy.reset();
  CHECK(eventually([&] { return f.notes.gone == 1; }));
  f.notes.echo = true;
  REQUIRE(other.send("still", "", soon()).ok());
  CHECK(other.receive(soon())->json == "still");
}

TEST_CASE("sending to a client that does not read never waits, and is bounded: its stream ends") {
  ServedSocket f;
  std::optional<FrameSocket> slow = f.connect();
  FrameSocket other = f.connect();
  const auto connection = f.notes.connection(0);
  const std::string blob(std::size_t{16} << 20, 'x');
  for (std::size_t sent = 0; sent <= Connection::kQueueBytesMax + blob.size(); sent += blob.size())
    connection->send("{}", blob);
  connection->send("{}", "no client is there");
  REQUIRE(slow->send("not listened to", "", soon()).ok());
  f.notes.echo = true;
  REQUIRE(other.send("still", "", soon()).ok());
  CHECK(other.receive(soon())->json == "still");
  CHECK(f.notes.frames() == 1);
  CHECK(f.notes.gone == 0);
  slow.reset();
  CHECK(eventually([&] { return f.notes.gone == 1; }));
}

TEST_CASE("a slow client that reads in the end gets everything") {
  ServedSocket f;
  FrameSocket client = f.connect();
  const auto connection = f.notes.connection(0);
  for (int i = 0; i < 40; ++i) connection->send(std::to_string(i), std::string(std::size_t{1} << 20, 'x'));
  for (int i = 0; i < 40; ++i) {
    const auto frame = client.receive(soon());
    REQUIRE(frame.ok());
    CHECK(frame->json == std::to_string(i));
    CHECK(frame->blob.size() == std::size_t{1} << 20);
  }
  CHECK(f.notes.gone == 0);
}

TEST_CASE("closing after sending lets the last words out; the client is gone when it closes its end") {
  ServedSocket f;
  std::optional<FrameSocket> client = f.connect();
  const auto connection = f.notes.connection(0);
  connection->send("last words", std::string(std::size_t{2} << 20, 'x'));
  connection->close_after_sending();
  connection->send("too late");
  CHECK(client->receive(soon())->json == "last words");
  CHECK(client->receive(soon()).error().code() == ErrorCode::kUnavailable);
  CHECK(f.notes.gone == 0);
  client.reset();
  CHECK(eventually([&] { return f.notes.gone == 1; }));
}

TEST_CASE("a client that breaks the limits is told why, and not listened to any more") {
  ServedSocket f;
  std::optional<FrameSocket> client = f.connect();
  REQUIRE(client->send("good", "", soon()).ok());
  const std::string bad(8, '\xff');
  REQUIRE(::send(client->fd(), bad.data(), bad.size(), MSG_NOSIGNAL) == 8);
  const auto last = client->receive(soon());
  REQUIRE(last.ok());
  CHECK_THAT(last->json, Catch::Contains("json_bytes"));
  CHECK(!client->receive(soon()).ok());
  CHECK(f.notes.gone == 0);
  client.reset();
  CHECK(eventually([&] { return f.notes.gone == 1; }));
  CHECK(f.notes.frames() == 1);
}

TEST_CASE("a client that goes in the middle of a frame is gone, and its half frame with it") {
  ServedSocket f;
  {
    FrameSocket client = f.connect();
    const std::string half = transport::encode_frame("{}", "blob").substr(0, 9);
    REQUIRE(::send(client.fd(), half.data(), half.size(), MSG_NOSIGNAL) == 9);
  }
  CHECK(eventually([&] { return f.notes.gone == 1; }));
  CHECK(f.notes.frames() == 0);
}

TEST_CASE("more clients than the bound are turned away; those that are there go on") {
  ServedSocket f;
  f.notes.echo = true;
  std::vector<FrameSocket> clients;
  for (std::size_t i = 0; i < SocketServer::kClientsMax; ++i) clients.push_back(f.connect());
  f.notes.connection(SocketServer::kClientsMax - 1);
  FrameSocket surplus = f.connect();
  CHECK(surplus.receive(soon()).error().code() == ErrorCode::kUnavailable);
  REQUIRE(clients.front().send("here", "", soon()).ok());
  CHECK(clients.front().receive(soon())->json == "here");
  clients.pop_back();
  REQUIRE(eventually([&] { return f.notes.gone == 1; }));
  FrameSocket next = f.connect();
  f.notes.connection(SocketServer::kClientsMax);
}

const std::string kFrame = transport::encode_frame("{}");
enum Access { kServed = 1, kTurnedAway = 2, kNotPermitted = 3, kNotTried = 4 };

// How a process of another user fares that sends a frame and waits for its echo. In a fork of a process with threads
// only system calls are safe: raw ones, as glibc's would change the user of every thread.
Access access_of_user(uid_t user, const std::string& path) {
  const sockaddr_un address = address_at(path);
  const pid_t pid = ::fork();
  if (pid == 0) {
    const bool changed = ::syscall(SYS_setgroups, 0, nullptr) == 0 && ::syscall(SYS_setresgid, user, user, user) == 0 &&
                         ::syscall(SYS_setresuid, user, user, user) == 0;
    const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (!changed || fd < 0) ::_exit(kNotTried);
    if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0)
      ::_exit(errno == EACCES ? kNotPermitted : kNotTried);
    char answer = 0;
    (void)!::send(fd, kFrame.data(), kFrame.size(), MSG_NOSIGNAL);
    ::_exit(::recv(fd, &answer, 1, 0) == 1 ? kServed : kTurnedAway);
  }
  int status = 0;
  REQUIRE(pid > 0);
  REQUIRE(::waitpid(pid, &status, 0) == pid);
  REQUIRE(WIFEXITED(status));
  return static_cast<Access>(WEXITSTATUS(status));
}

TEST_CASE("only the feeder's own user is served, even where the socket's file would let others in") {
  INFO("a process can become another user's only if the tests run as root");
  REQUIRE(::geteuid() == 0);
  constexpr uid_t kOther = 65534;
  struct Case {
    const char* who;
    uid_t user;
    mode_t mode;  // of the socket's file; 0: as the server made it
    Access want;
  };
  for (const Case& test : {Case{"its own user", 0, 0, kServed}, Case{"another user", kOther, 0, kNotPermitted},
                           Case{"another user, file open to all", kOther, 0666, kTurnedAway},
                           Case{"its own user, file open to all", 0, 0666, kServed}}) {
    INFO(test.who);
    ServedSocket f;
    f.notes.echo = true;
    struct stat made {};
    REQUIRE(::stat(f.path().c_str(), &made) == 0);
    CHECK((made.st_mode & 0777) == 0600);
    REQUIRE(::chmod(f.directory.path.c_str(), 0755) == 0);
    if (test.mode != 0) REQUIRE(::chmod(f.path().c_str(), test.mode) == 0);
    CHECK(access_of_user(test.user, f.path()) == test.want);
    CHECK(f.notes.frames() == (test.want == kServed ? 1 : 0));
  }
}

TEST_CASE("a client has gone when its process has, also if a fork of that keeps the socket") {
  ServedSocket f;
  f.notes.echo = true;
  const sockaddr_un address = address_at(f.path());
  const pid_t client = ::fork();
  if (client == 0) {
    char answer = 0;
    const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
    const bool served = ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 &&
                        ::send(fd, kFrame.data(), kFrame.size(), 0) > 0 && ::recv(fd, &answer, 1, 0) == 1;
    while (served && ::setpgid(0, 0) == 0 && ::fork() == 0) ::pause();
    ::_exit(0);
  }
  REQUIRE(::waitpid(client, nullptr, 0) == client);
  CHECK(eventually([&] { return f.notes.gone == 1; }));
  CHECK(::kill(-client, SIGKILL) == 0);  // the fork was there all the time
}

TEST_CASE("the end closes every connection and tells no handler, removes the file; connections may be used after it") {
  ServedSocket f;
  FrameSocket client = f.connect();
  const auto connection = f.notes.connection(0);
  f.server.reset();
  CHECK(f.notes.gone == 0);
  CHECK(!std::filesystem::exists(f.path()));
  CHECK(client.receive(soon()).error().code() == ErrorCode::kUnavailable);
  connection->send("into the void");
  connection->close_after_sending();
}

TEST_CASE("a path that cannot be bound is an error that names it") {
  Notes notes;
  struct Case {
    std::string path;
    const char* want;
  };
  const testing::TemporaryDirectory directory;
  for (const Case& test : {Case{(directory.path / "no/such/folder.sock").string(), "no/such/folder.sock"},
                           Case{"/" + std::string(200, 'x'), "longer than 107 bytes"}}) {
    const auto started = SocketServer::start(test.path, notes);
    REQUIRE(!started.ok());
    CHECK_THAT(std::string(started.error().message()), Catch::Contains(test.want));
  }
}

}  // namespace
}  // namespace sluice::feeder
