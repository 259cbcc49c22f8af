// A store of objects on the loopback that errs as networks do.
#pragma once

#include <atomic>
#include <charconv>
#include <functional>
#include <mutex>
#include <string>

#include "src/http/testing/loopback_server.h"

namespace sluice::object_store::testing {

enum class Fault {
  kNone,
  kBusy,
  kCutOff,
  kOtherRange,
  kWhole,
  kReset,
  kSilent,
  kStalls,  // within the body
  kGarbage,
  kTooLong,
  kClosesQuietly,
  kChunked,        // in the form of HTTP that names no length; no fault
  kWithoutLength,  // the same by the end of the connection
};

// Thread safety: all methods may be called from any thread.
class LoopbackStore {
 public:
  using FaultOf = std::function<Fault(int request)>;

  // Every path is the same object.
  explicit LoopbackStore(std::string object, FaultOf fault = nullptr, http::testing::LoopbackOptions options = {})
      : object_(std::move(object)),
        fault_(std::move(fault)),
        server_([this](http::testing::Connection& connection) { serve(connection); }, std::move(options)) {}

  std::string url(const std::string& path = "/bucket/a.tar") const { return server_.url() + path; }
  int requests() const { return requests_; }
  int connections() const { return server_.connections(); }
  int hang_ups() const { return hang_ups_; }  // on silent connections

 private:
  void serve(http::testing::Connection& connection) {
    while (const auto request = connection.read_request()) {
      const int number = requests_++;
      if (!answer(connection, *request, fault_ == nullptr ? Fault::kNone : fault_(number))) return;
    }
  }

  // Whether the connection goes on.
  bool answer(http::testing::Connection& connection, const std::string& request, Fault fault) {
    const auto [first, last] = range_of(request);
    const std::string body = object_.substr(first, last - first + 1);
    switch (fault) {
      case Fault::kBusy: return connection.answer(503, "<Error/>");
      case Fault::kReset: return false;
      case Fault::kStalls:
        connection.write(head(first, last, body.size()) + body.substr(0, body.size() / 2));
        [[fallthrough]];
      case Fault::kSilent:
        connection.wait_for_hang_up();
        ++hang_ups_;
        return false;
      case Fault::kGarbage: connection.write("SSH-2.0\r\n\r\n"); return false;
      case Fault::kWhole: return connection.answer(200, object_, "ETag: \"e\"\r\n");
      case Fault::kOtherRange: return connection.write(head(first + 1, last + 1, body.size()) + body);
      case Fault::kCutOff:
        connection.write(head(first, last, body.size()) + body.substr(0, body.size() / 2));
        return false;
      case Fault::kTooLong:
        return connection.write(head(first, last, body.size() + 100'000) + body + std::string(100'000, 'x'));
      case Fault::kClosesQuietly: connection.write(head(first, last, body.size()) + body); return false;
      case Fault::kChunked:
        connection.write(head(first, last, "Transfer-Encoding: chunked"));
        connection.write_chunk(body.substr(0, 1));
        connection.write_chunk(body.substr(1));
        return connection.write_chunk("");
      case Fault::kWithoutLength:
        connection.write(head(first, last, "Connection: close") + body);
        connection.half_close();
        return false;
      case Fault::kNone: break;
    }
    return connection.write(head(first, last, body.size()) + body);
  }

  static std::pair<std::size_t, std::size_t> range_of(const std::string& request) {
    std::size_t first = 0, last = 0;
    const char* text = request.c_str() + request.find("bytes=") + 6;
    const auto [dash, error] = std::from_chars(text, request.c_str() + request.size(), first);
    std::from_chars(dash + 1, request.c_str() + request.size(), last);
    return {first, last};
  }

  std::string head(std::size_t first, std::size_t last, std::size_t bytes) const {
    return head(first, last, "Content-Length: " + std::to_string(bytes));
  }
  std::string head(std::size_t first, std::size_t last, const std::string& length) const {
    return "HTTP/1.1 206 Partial Content\r\nETag: \"e\"\r\nContent-Range: bytes " + std::to_string(first) + "-" +
           std::to_string(last) + "/" + std::to_string(object_.size()) + "\r\n" + length + "\r\n\r\n";
  }

  const std::string object_;
  const FaultOf fault_;
  std::atomic<int> requests_ = 0;
  std::atomic<int> hang_ups_ = 0;
  http::testing::LoopbackServer server_;  // last: its threads use the rest
};

}  // namespace sluice::object_store::testing
