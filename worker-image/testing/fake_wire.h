// Connections to workers without a network: messages to each address are noted, and the test gives the answers.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "src/transport/remote_client.h"

namespace sluice::testing {

// Thread safety: all methods may be called from any thread; it outlives the clients it made.
class FakeWire {
 public:
  struct Message {
    v1::Header header;
    std::string payload;
  };

  transport::RemoteClient::Connect connect() {
    return [this](const std::string& address, transport::RemoteClientHandler& handler) {
      std::lock_guard lock(mutex_);
      Line& line = lines_[address];
      ++line.connections;
      line.handler = &handler;
      return std::make_unique<Client>(*this, address);
    };
  }

  std::vector<Message> sent(const std::string& address) {
    std::lock_guard lock(mutex_);
    return lines_[address].sent;
  }
  // How often a client connected to it.
  int connections(const std::string& address) {
    std::lock_guard lock(mutex_);
    return lines_[address].connections;
  }

  // As the worker behind the latest connection to `address`.
  void say(const std::string& address, const v1::Header& header) { handler(address)->received(header, {}, nullptr); }
  void close(const std::string& address) { handler(address)->closed("for the test"); }

 private:
  struct Line {
    transport::RemoteClientHandler* handler = nullptr;
    int connections = 0;
    std::vector<Message> sent;
  };

  class Client final : public transport::RemoteClient {
   public:
    Client(FakeWire& wire, std::string address) : wire_(wire), address_(std::move(address)) {}
    void start() override {}
    void send(const v1::Header& header, std::span<const std::byte> payload, std::shared_ptr<const void>) override {
      std::lock_guard lock(wire_.mutex_);
      wire_.lines_[address_].sent.push_back({header, {reinterpret_cast<const char*>(payload.data()), payload.size()}});
    }

   private:
    FakeWire& wire_;
    const std::string address_;
  };

  transport::RemoteClientHandler* handler(const std::string& address) {
    std::lock_guard lock(mutex_);
    return lines_[address].handler;
  }

  std::mutex mutex_;
  std::map<std::string, Line> lines_;
};

}  // namespace sluice::testing
