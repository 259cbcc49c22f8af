#include "src/http/testing/server_script.h"

#include <thread>

#include "src/base/clock.h"
#include "src/http/bearer_token.h"
#include "src/http/cpprest_transport.h"
#include "src/http/faults.h"
#include "src/http/request_metrics.h"
#include "src/http/retry.h"
#include "src/http/write_limit.h"

namespace sluice::http::testing {
namespace {

using Kind = ServerStep::Kind;
using Scripts = std::vector<std::vector<ServerStep>>;

// False when the client is gone.
bool perform(Connection& connection, const ServerStep& step, ScriptProgress& progress) {
  switch (step.kind) {
    case Kind::kAnswer: {
      std::string headers;
      for (const auto& [name, value] : step.headers) headers += name + ": " + value + "\r\n";
      return connection.answer(step.status, step.bytes, headers);
    }
    case Kind::kBeginStream: return connection.start_chunked(step.status);
    case Kind::kPiece:
    case Kind::kRepeat:
      for (int i = 0; i < step.count; ++i) {
        if (!connection.write_chunk(step.bytes)) return false;
        ++progress.pieces_sent;
      }
      return true;
    case Kind::kPause: std::this_thread::sleep_for(std::chrono::seconds(31)); return true;
    case Kind::kGate:
      while (!progress.client_saw_bytes) std::this_thread::yield();
      return true;
    case Kind::kEnd: return connection.write("0\r\n\r\n");
    case Kind::kSilence:
      progress.server_waits = true;
      connection.wait_for_hang_up();
      progress.client_left = true;
      return false;
    case Kind::kHalfClose:
      connection.write("100\r\nhalf of a piece");
      connection.half_close();
      connection.wait_for_hang_up();
      return false;
    case Kind::kHangUp: connection.write("100\r\nhalf of a piece"); return false;
  }
  return false;
}

// A server on a socket, and cpprestsdk connected to it.
class SocketEndpoint final : public ScriptedEndpoint {
 public:
  SocketEndpoint(Scripts scripts, ScriptProgress& progress, LoopbackOptions options, std::string ca_pem)
      : scripts_(std::move(scripts)),
        progress_(progress),
        server_([this](Connection& c) { serve(c); }, std::move(options)) {
    auto made = make_cpprest_transport({server_.url(), std::move(ca_pem)});
    if (made.ok()) transport_ = *made;
  }
  std::shared_ptr<Transport> transport() override { return transport_; }

 private:
  void serve(Connection& connection) {
    while (connection.read_request()) {
      const std::size_t index = next_++;
      if (index >= scripts_.size()) return;
      for (const ServerStep& step : scripts_[index]) {
        if (!perform(connection, step, progress_)) return;
      }
    }
  }

  const Scripts scripts_;
  ScriptProgress& progress_;
  std::atomic<std::size_t> next_ = 0;
  std::shared_ptr<Transport> transport_;
  LoopbackServer server_;  // last: its threads use the rest
};

// An endpoint with something around its transport.
class WrappedEndpoint final : public ScriptedEndpoint {
 public:
  WrappedEndpoint(std::unique_ptr<ScriptedEndpoint> inner, std::shared_ptr<Transport> outer)
      : inner_(std::move(inner)), outer_(std::move(outer)) {}
  std::shared_ptr<Transport> transport() override { return outer_; }

 private:
  std::unique_ptr<ScriptedEndpoint> inner_;
  std::shared_ptr<Transport> outer_;
};

// The same scripts in the fake's terms.
ScriptedTransport::Answer in_fake_terms(const std::vector<ServerStep>& script) {
  ScriptedStream stream;
  stream.ending = ScriptedStream::Ending::kFail;
  for (const ServerStep& step : script) {
    if (step.kind == Kind::kAnswer) return Response{step.status, step.headers, step.bytes};
    if (step.kind == Kind::kPiece || step.kind == Kind::kRepeat)
      stream.chunks.insert(stream.chunks.end(), static_cast<std::size_t>(step.count), step.bytes);
    if (step.kind == Kind::kEnd) stream.ending = ScriptedStream::Ending::kClean;
    if (step.kind == Kind::kSilence) stream.ending = ScriptedStream::Ending::kSilence;
  }
  return stream;
}

class FakeEndpoint final : public ScriptedEndpoint {
 public:
  FakeEndpoint(const Scripts& scripts, ScriptProgress& progress) {
    for (const auto& script : scripts) transport_->answer(in_fake_terms(script));
    progress.server_waits = true;
  }
  std::shared_ptr<Transport> transport() override { return transport_; }

 private:
  std::shared_ptr<ScriptedTransport> transport_ = std::make_shared<ScriptedTransport>();
};

std::unique_ptr<ScriptedEndpoint> tcp(Scripts scripts, ScriptProgress& progress) {
  return std::make_unique<SocketEndpoint>(std::move(scripts), progress, LoopbackOptions{}, "");
}

std::unique_ptr<ScriptedEndpoint> ipv6(Scripts scripts, ScriptProgress& progress) {
  return std::make_unique<SocketEndpoint>(std::move(scripts), progress, LoopbackOptions{.address = "::1"}, "");
}

std::unique_ptr<ScriptedEndpoint> tls(Scripts scripts, ScriptProgress& progress) {
  static const CertificateAuthority authority("conformance");
  LoopbackOptions options;
  options.identity = authority.issue("server", "IP:127.0.0.1");
  return std::make_unique<SocketEndpoint>(std::move(scripts), progress, std::move(options),
                                          authority.certificate_pem());
}

class FixedToken final : public TokenSource {
 public:
  Result<std::string> token() override { return std::string("token"); }
  void rejected(const std::string&) override {}
};

std::unique_ptr<ScriptedEndpoint> with_all_policies(Scripts scripts, ScriptProgress& progress) {
  static const SystemClock clock;
  static RequestMetrics metrics;
  auto inner = tcp(std::move(scripts), progress);
  auto outer = with_faults(inner->transport(), clock, [](const Request&) { return Fault{}; });
  outer = with_write_limit(metrics.observe(std::move(outer), clock), 4);
  outer = with_retries(with_bearer_token(std::move(outer), std::make_shared<FixedToken>()), clock, {.max_retries = 0});
  return std::make_unique<WrappedEndpoint>(std::move(inner), std::move(outer));
}

}  // namespace

std::vector<Subject> all_subjects() {
  std::vector<Subject> subjects = {
      {"cpprestsdk over TCP", true, tcp},
      {"cpprestsdk over TLS", true, tls},
      {"the scripted fake", false,
       [](Scripts scripts, ScriptProgress& progress) { return std::make_unique<FakeEndpoint>(scripts, progress); }},
      {"all policies around cpprestsdk", true, with_all_policies},
  };
  if (has_ipv6()) subjects.push_back({"cpprestsdk over IPv6", true, ipv6});
  return subjects;
}

}  // namespace sluice::http::testing
