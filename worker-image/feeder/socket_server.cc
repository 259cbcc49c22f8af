#include "worker-image/feeder/socket_server.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <iterator>
#include <utility>

#include "src/base/logging.h"
#include "src/transport/local_socket.h"

namespace sluice::feeder {
namespace {

using transport::listen_on;
using transport::process_of_own_user;
using transport::UniqueFd;

constexpr std::uint64_t kListenerKey = 0;
constexpr std::uint64_t kWakeKey = ~std::uint64_t{0};
constexpr std::uint64_t kProcessBit = std::uint64_t{1} << 63;  // the client's process, not its socket
constexpr std::size_t kReadBytes = 256 << 10;

bool watch(int epoll, int operation, int fd, std::uint32_t events, std::uint64_t key) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = key;
  return ::epoll_ctl(epoll, operation, fd, &event) == 0;
}

void ring(int eventfd) {
  const std::uint64_t one = 1;
  (void)!::write(eventfd, &one, sizeof(one));
}

}  // namespace

Connection::Connection(std::uint64_t id, int epoll, int wake, UniqueFd fd)
    : id_(id), epoll_(epoll), wake_(wake), fd_(std::move(fd)) {}

void Connection::send(std::string_view json, std::string_view blob, int passed_fd) {
  std::lock_guard lock(mutex_);
  if (!fd_.valid() || closing_ || aborted_) return;
  queue_.push_back({transport::encode_frame(json, blob), passed_fd});
  queued_bytes_ += queue_.back().bytes.size();
  flush_locked();
  if (queued_bytes_ > kQueueBytesMax) {
    log_warning("feeder", "client does not read its socket; disconnected", {{"client", id_}});
    abort_locked();
  }
}

UniqueFd Connection::take_passed_fd() {
  std::lock_guard lock(mutex_);
  if (passed_fds_.empty()) return {};
  UniqueFd first = std::move(passed_fds_.front());
  passed_fds_.pop_front();
  return first;
}

Result<std::size_t> Connection::receive(std::span<char> bytes) {
  std::lock_guard lock(mutex_);
  UniqueFd passed;
  SLUICE_TRY(const std::size_t count, transport::receive_some(fd(), bytes, passed));
  if (passed.valid() && !aborted_) passed_fds_.push_back(std::move(passed));
  if (passed_fds_.size() > kPassedMax) {
    log_warning("feeder", "client passes descriptors without messages; disconnected", {{"client", id_}});
    abort_locked();
  }
  return count;
}

void Connection::pause() {
  std::lock_guard lock(mutex_);
  paused_ = true;
  if (fd_.valid()) watch_locked();
}

void Connection::resume() {
  std::lock_guard lock(mutex_);
  paused_ = false;
  if (!fd_.valid()) return;  // the server may be gone, too
  watch_locked();
  ring(wake_);  // frames may be waiting that were read before
}

bool Connection::paused() {
  std::lock_guard lock(mutex_);
  return paused_;
}

void Connection::close_after_sending() {
  std::lock_guard lock(mutex_);
  closing_ = true;
  if (fd_.valid()) flush_locked();
}

void Connection::flush() {
  std::lock_guard lock(mutex_);
  if (fd_.valid()) flush_locked();
}

void Connection::flush_locked() {
  while (!queue_.empty() && !aborted_) {
    const Piece& front = queue_.front();
    const auto sent = transport::send_some(fd(), std::span(front.bytes).subspan(front_sent_),
                                           front_sent_ == 0 ? front.passed_fd : -1);
    if (!sent.ok()) return abort_locked();
    if (*sent == 0) break;
    front_sent_ += *sent;
    if (front_sent_ < front.bytes.size()) continue;
    queued_bytes_ -= front.bytes.size();
    queue_.pop_front();
    front_sent_ = 0;
  }
  if (queue_.empty() && closing_) return abort_locked();
  const bool wants_writable = !queue_.empty();
  if (wants_writable == waits_writable_) return;
  waits_writable_ = wants_writable;
  watch_locked();
}

void Connection::watch_locked() {
  const std::uint32_t readable = paused_ ? 0u : EPOLLIN | EPOLLRDHUP;
  watch(epoll_, EPOLL_CTL_MOD, fd(), readable | (waits_writable_ ? EPOLLOUT : 0u), id_);
}

void Connection::abort_locked() {
  aborted_ = true;
  queue_.clear();
  queued_bytes_ = 0;
  passed_fds_.clear();
  // Only the client knows when it has done with the memory that it was lent: the server waits for its end of the
  // stream.
  ::shutdown(fd(), SHUT_WR);
}

bool Connection::aborted() {
  std::lock_guard lock(mutex_);
  return aborted_;
}

void Connection::close() {
  std::lock_guard lock(mutex_);
  fd_.reset();
  queue_.clear();
  passed_fds_.clear();
}

Result<std::unique_ptr<SocketServer>> SocketServer::start(const std::string& path, SocketHandler& handler) {
  SLUICE_TRY(UniqueFd listener, listen_on(path));
  UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.valid()) return errno_error("epoll_create1");
  UniqueFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.valid()) return errno_error("eventfd");
  if (!watch(epoll.get(), EPOLL_CTL_ADD, listener.get(), EPOLLIN, kListenerKey) ||
      !watch(epoll.get(), EPOLL_CTL_ADD, wake.get(), EPOLLIN, kWakeKey)) {
    return errno_error("epoll_ctl");
  }
  return std::unique_ptr<SocketServer>(
      new SocketServer(path, std::move(listener), std::move(epoll), std::move(wake), handler));
}

SocketServer::SocketServer(std::string path, UniqueFd listener, UniqueFd epoll, UniqueFd wake, SocketHandler& handler)
    : path_(std::move(path)),
      listener_(std::move(listener)),
      epoll_(std::move(epoll)),
      wake_(std::move(wake)),
      handler_(handler),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

SocketServer::~SocketServer() {
  thread_.request_stop();
  ring(wake_.get());
  thread_.join();
  ::unlink(path_.c_str());
}

void SocketServer::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    epoll_event events[64];
    const int count = ::epoll_wait(epoll_.get(), events, 64, -1);
    for (int i = 0; i < count && !stop.stop_requested(); ++i) {
      const std::uint64_t key = events[i].data.u64;
      if (key == kListenerKey) {
        accept_clients();
      } else if (key == kWakeKey) {
        continue_resumed();
      } else if ((key & kProcessBit) != 0) {
        process_ended(key & ~kProcessBit);
      } else if (const auto client = clients_.find(key); client != clients_.end()) {
        if ((events[i].events & EPOLLOUT) != 0) client->second.connection->flush();
        const bool gone = (events[i].events & (EPOLLHUP | EPOLLERR)) != 0;
        if (gone && client->second.connection->paused()) {
          drop(key);
        } else if ((events[i].events & ~std::uint32_t{EPOLLOUT}) != 0) {
          read_client(key);
        }
      }
    }
  }
  // The handler is not told: clients still read the memory that they were lent, and executors may be at work.
  for (const auto& [id, client] : clients_) client.connection->close();
}

void SocketServer::accept_clients() {
  while (true) {
    UniqueFd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd.valid()) return;
    if (clients_.size() >= kClientsMax) {
      log_warning("feeder", "too many clients; one was turned away", {{"limit", kClientsMax}});
      continue;
    }
    // Batches are pickles, which run code: no other user may exchange them.
    const auto process = process_of_own_user(fd.get());
    if (!process) {
      log_warning("feeder", "a client of another user was turned away");
      continue;
    }
    // Without one, from an old kernel or for a process that we cannot see, the end of the stream has to do.
    UniqueFd pidfd(*process > 0 ? static_cast<int>(::syscall(SYS_pidfd_open, *process, 0)) : -1);
    if (*process > 0 && !pidfd.valid() && errno == ESRCH) continue;  // it has ended since
    const std::uint64_t id = next_client_++;
    const int raw = fd.get();
    auto connection = std::make_shared<Connection>(id, epoll_.get(), wake_.get(), std::move(fd));
    Client& client = clients_[id];
    client.connection = connection;
    client.process = std::move(pidfd);
    handler_.connected(connection);
    watch(epoll_.get(), EPOLL_CTL_ADD, raw, EPOLLIN | EPOLLRDHUP, id);
    if (client.process.valid()) watch(epoll_.get(), EPOLL_CTL_ADD, client.process.get(), EPOLLIN, id | kProcessBit);
  }
}

void SocketServer::read_client(std::uint64_t id) {
  Client& client = clients_.at(id);
  static thread_local std::string buffer(kReadBytes, '\0');
  bool more = true;
  while (deliver(id, client) && more) {
    const auto received = client.connection->receive(buffer);
    if (!received.ok()) return drop(id);
    if (*received == 0) return;
    more = *received == buffer.size() || !client.reading;
    if (!client.reading) continue;  // its last message is on the way; the rest of its bytes means nothing
    std::vector<transport::Frame> frames;
    const auto fed = client.decoder.feed(std::span(buffer.data(), *received), frames);
    std::move(frames.begin(), frames.end(), std::back_inserter(client.frames));
    if (!fed.ok()) client.broken = fed.error();
  }
}

bool SocketServer::deliver(std::uint64_t id, Client& client) {
  if (client.connection->aborted()) {
    client.reading = false;
    client.frames.clear();
    return true;
  }
  while (!client.connection->paused()) {
    if (!client.frames.empty()) {
      transport::Frame frame = std::move(client.frames.front());
      client.frames.pop_front();
      handler_.received(id, std::move(frame));
    } else {
      if (client.broken && std::exchange(client.reading, false)) {
        handler_.broken(id, *client.broken);
        client.connection->close_after_sending();
      }
      return true;
    }
  }
  return false;
}

void SocketServer::continue_resumed() {
  std::uint64_t rings = 0;
  (void)!::read(wake_.get(), &rings, sizeof(rings));
  std::vector<std::uint64_t> waiting;
  for (const auto& [id, client] : clients_) {
    if (!client.frames.empty() || client.broken) waiting.push_back(id);
  }
  for (const std::uint64_t id : waiting) read_client(id);
}

void SocketServer::process_ended(std::uint64_t id) {
  if (!clients_.contains(id)) return;
  read_client(id);  // what it has said before
  if (clients_.contains(id)) drop(id);
}

void SocketServer::drop(std::uint64_t id) {
  const auto client = clients_.find(id);
  const std::shared_ptr<Connection> connection = client->second.connection;
  clients_.erase(client);
  handler_.disconnected(id);
  connection->close();
}

}  // namespace sluice::feeder
