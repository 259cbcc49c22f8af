// The feeder's Unix socket: accepts clients, reads frames, writes frames, all on one thread.
//
// Sending never blocks: what the kernel does not take at once is queued, and a client whose queue exceeds its bound
// (it does not read) is disconnected. Nothing a client sends can do more than close its own connection.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "src/base/result.h"
#include "src/transport/frame.h"

namespace sluice::feeder {

// One client. Thread safety: all methods may be called from any thread.
class Connection {
 public:
  explicit Connection(std::uint64_t id, int epoll, transport::UniqueFd fd);

  std::uint64_t id() const { return id_; }

  // Queues the frame, in order with all others. `passed_fd` must stay open until the connection ends.
  void send(std::string_view json, std::string_view blob = {}, int passed_fd = -1);
  // Disconnects once everything queued has been written, or at once if the client does not read.
  void close_after_sending();

  static constexpr std::size_t kQueueBytesMax = std::size_t{256} << 20;

 private:
  friend class SocketServer;
  struct Piece {
    std::string bytes;
    int passed_fd = -1;
  };

  int fd() const { return fd_.get(); }
  void flush();  // the server's thread: the socket is writable
  void flush_locked();
  void abort_locked();
  void close();  // the server's thread: no method touches the descriptor afterwards

  const std::uint64_t id_;
  const int epoll_;
  std::mutex mutex_;
  transport::UniqueFd fd_;
  std::deque<Piece> queue_;
  std::size_t front_sent_ = 0;  // bytes of queue_.front() that are gone
  std::size_t queued_bytes_ = 0;
  bool closing_ = false;  // close_after_sending() was called
  bool aborted_ = false;
  bool waits_writable_ = false;
};

// Called on the server's thread, one call at a time.
class SocketHandler {
 public:
  virtual ~SocketHandler() = default;
  virtual void connected(std::shared_ptr<Connection> connection) = 0;
  virtual void received(std::uint64_t client, transport::Frame frame) = 0;
  // The stream cannot be read any further. The handler may send a last message; disconnected() follows.
  virtual void broken(std::uint64_t client, const Error& error) = 0;
  virtual void disconnected(std::uint64_t client) = 0;
};

class SocketServer {
 public:
  static constexpr std::size_t kClientsMax = 256;

  // Binds `path` (replacing a socket that nobody listens on), readable and writable for every user: who may use it is
  // decided by who sees the directory. Errors: AlreadyExists if somebody listens there.
  static Result<std::unique_ptr<SocketServer>> start(const std::string& path, SocketHandler& handler);

  // Disconnects everybody, removes the socket file and joins the thread.
  ~SocketServer();

 private:
  struct Client {
    std::shared_ptr<Connection> connection;
    transport::FrameDecoder decoder;
    bool reading = true;
  };

  SocketServer(std::string path, transport::UniqueFd listener, transport::UniqueFd epoll, transport::UniqueFd wake,
               SocketHandler& handler);
  void run(const std::stop_token& stop);
  void accept_clients();
  void read_client(std::uint64_t id);
  void drop(std::uint64_t id);

  const std::string path_;
  const transport::UniqueFd listener_;
  const transport::UniqueFd epoll_;
  const transport::UniqueFd wake_;
  SocketHandler& handler_;
  std::map<std::uint64_t, Client> clients_;
  std::uint64_t next_client_ = 1;
  std::jthread thread_;
};

}  // namespace sluice::feeder
