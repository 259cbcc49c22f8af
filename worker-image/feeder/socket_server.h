// The feeder's Unix socket: accepts clients, reads frames, writes frames, all on one thread.
//
// Sending never blocks: bytes that the kernel does not take at once are queued. Where a client's queue exceeds its
// bound (it does not read), the stream to it ends. Nothing a client sends can do more than close its own connection.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "src/base/result.h"
#include "src/transport/frame.h"

namespace sluice::feeder {

// One client. Thread safety: all methods may be called from any thread.
class Connection {
 public:
  // `wake` is an eventfd that wakes the server's thread.
  Connection(std::uint64_t id, int epoll, int wake, transport::UniqueFd fd);

  std::uint64_t id() const { return id_; }

  // Queues the frame, in order with all others. `passed_fd` must stay open until the connection ends.
  void send(std::string_view json, std::string_view blob = {}, int passed_fd = -1);
  // The first descriptor that the client has passed and that was not taken; none: an invalid one.
  transport::UniqueFd take_passed_fd();
  // The handler gets no further frame of this client, and its socket is not read, until resume(). In received(): from
  // the next frame on. A client that disconnects meanwhile is gone; what it has sent is dropped.
  void pause();
  void resume();
  // Ends the stream to the client once everything queued has been written, or at once if the client does not read. The
  // client is not listened to any more. It is disconnected when it has closed its end, or has died.
  void close_after_sending();

  static constexpr std::size_t kQueueBytesMax = std::size_t{256} << 20;
  static constexpr std::size_t kPassedMax = 64;  // descriptors that wait for the message which they belong to

 private:
  friend class SocketServer;
  struct Piece {
    std::string bytes;
    int passed_fd = -1;
  };

  int fd() const { return fd_.get(); }
  // The server's thread: as receive_some(). Beyond kPassedMax descriptors the stream ends.
  Result<std::size_t> receive(std::span<char> bytes);
  void flush();  // the server's thread: the socket is writable
  bool paused();
  bool aborted();
  void flush_locked();
  void watch_locked();
  void abort_locked();
  void close();  // the server's thread: no method touches the descriptor afterwards

  const std::uint64_t id_;
  const int epoll_;
  const int wake_;
  std::mutex mutex_;
  transport::UniqueFd fd_;
  std::deque<Piece> queue_;
  std::deque<transport::UniqueFd> passed_fds_;
  std::size_t front_sent_ = 0;  // bytes of queue_.front() that are gone
  std::size_t queued_bytes_ = 0;
  bool closing_ = false;  // close_after_sending() was called
  bool aborted_ = false;
  bool waits_writable_ = false;
  bool paused_ = false;
};

// Called on the server's thread, one call at a time.
class SocketHandler {
 public:
  virtual ~SocketHandler() = default;
  virtual void connected(std::shared_ptr<Connection> connection) = 0;
  virtual void received(std::uint64_t client, transport::Frame frame) = 0;
  // The stream cannot be read any further. The handler may send a last message; disconnected() follows.
  virtual void broken(std::uint64_t client, const Error& error) = 0;
  // The client has closed its end, or has ended: it uses no memory that it was lent.
  virtual void disconnected(std::uint64_t client) = 0;
};

class SocketServer {
 public:
  static constexpr std::size_t kClientsMax = 256;

  // Binds `path` (replacing a socket without a listener) for the user that this process runs as; clients of other
  // users, except root, are turned away. Errors: AlreadyExists if another feeder listens there.
  static Result<std::unique_ptr<SocketServer>> start(const std::string& path, SocketHandler& handler);

  // Closes every connection without a word to the handler, removes the socket file and joins the thread.
  ~SocketServer();

 private:
  struct Client {
    std::shared_ptr<Connection> connection;
    transport::UniqueFd process;  // its pidfd; invalid: not known
    transport::FrameDecoder decoder;
    std::deque<transport::Frame> frames;  // read, but not given to the handler: it has paused the client
    std::optional<Error> broken;          // what comes after them
    bool reading = true;
  };

  SocketServer(std::string path, transport::UniqueFd listener, transport::UniqueFd epoll, transport::UniqueFd wake,
               SocketHandler& handler);
  void run(const std::stop_token& stop);
  void accept_clients();
  void read_client(std::uint64_t id);
  // Gives the handler what was read. False: the client is paused.
  bool deliver(std::uint64_t id, Client& client);
  void continue_resumed();
  // Its socket may live on in a process that it has forked; that one's memory is no client's.
  void process_ended(std::uint64_t id);
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
