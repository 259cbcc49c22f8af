// A server's answer to one request, as data: so that one test runs over every implementation of Transport.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "src/http/testing/loopback_server.h"
#include "src/http/testing/scripted_transport.h"
#include "src/http/transport.h"

namespace sluice::http::testing {

struct ServerStep {
  enum class Kind {
    kAnswer,       // status, headers and body; nothing follows
    kBeginStream,  // 200 and a chunked body
    kPiece,        // of the body
    kRepeat,       // the piece again and again, `count` times
    kPause,        // 31 seconds, longer than the usual limits of client libraries
    kGate,         // waits until the client's sink has seen a byte
    kEnd,          // of the body, as it should be
    kSilence,      // until the client leaves
    kHalfClose,    // in the middle of a piece; then still listens
    kHangUp,       // in the middle of a piece
  } kind;
  std::string bytes = "";
  int status = 200;
  Headers headers = {};
  int count = 1;
};

// The state that the two sides of a script share. Thread safety: atomics.
struct ScriptProgress {
  std::atomic<bool> client_saw_bytes = false;
  std::atomic<bool> server_waits = false;  // is in kSilence
  std::atomic<bool> client_left = false;   // after kSilence
  std::atomic<int> pieces_sent = 0;
};

// What tests ask for.
inline const Request kScriptedRequest{"GET", "/things"};

// Where requests go to be treated as a script says.
class ScriptedEndpoint {
 public:
  virtual ~ScriptedEndpoint() = default;
  // The transport under test. The n-th request gets the n-th script.
  virtual std::shared_ptr<Transport> transport() = 0;
};

// One implementation of Transport, under test.
struct Subject {
  std::string name;
  bool has_socket = true;  // a connection that can be cut, can block, can be full
  std::function<std::unique_ptr<ScriptedEndpoint>(std::vector<std::vector<ServerStep>>, ScriptProgress&)> open;
};

// cpprestsdk over TCP, TLS and IPv6; the scripted fake; all policies at once around cpprestsdk. Without IPv6 on this
// machine that subject is left out.
std::vector<Subject> all_subjects();

}  // namespace sluice::http::testing
