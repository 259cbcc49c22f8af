// How to reach an API server, and as whom: from a kubeconfig file or from inside a pod.
#pragma once

#include <memory>
#include <string>

#include "src/base/clock.h"
#include "src/base/result.h"
#include "src/http/bearer_token.h"
#include "src/http/transport.h"

namespace sluice::kube {

struct Connection {
  http::Endpoint endpoint;
  std::shared_ptr<http::TokenSource> token;  // nullptr: by client certificate, or anonymous
  std::string default_namespace = "default";
};

// Where kubectl would look: the first existing file of $KUBECONFIG's list, else ~/.kube/config. Unlike kubectl, files
// of the list are not merged.
std::string default_kubeconfig();

// Reads the context `context` (empty: current-context) of the file. Understands certificates and keys as base64 data or
// as files (relative ones lie beside the kubeconfig), tls-server-name, proxy-url, token and tokenFile. Exec plugins
// work if they need no terminal. Refused, with a message that names the user or cluster and the way out: auth-provider
// plugins, user and password, insecure-skip-tls-verify.
Result<Connection> read_kubeconfig(const std::string& path, const Clock& clock, const std::string& context = "");

// The same from the file's text; files that it names are sought beside `path`.
Result<Connection> parse_kubeconfig(const std::string& yaml, const std::string& path, const Clock& clock,
                                    const std::string& context = "");

// A pod's own way to its API server. Fields are replaced in tests only.
struct PodEnvironment {
  std::string directory = "/var/run/secrets/kubernetes.io/serviceaccount";  // token, ca.crt, namespace
  std::string host;                                                         // KUBERNETES_SERVICE_HOST
  std::string port;                                                         // KUBERNETES_SERVICE_PORT

  static PodEnvironment current();
};

// Errors: NotFound when this is no pod (no host, or no token file).
Result<Connection> read_in_cluster(const Clock& clock, const PodEnvironment& environment = PodEnvironment::current());

// A token in a file that others rotate: read again after 60 s, and after the server rejected it. While the file cannot
// be read the last token stays in use (the kubelet replaces the file; a moment without it is normal).
// REQUIRES: `clock` outlives the source.
std::shared_ptr<http::TokenSource> token_from_file(std::string path, const Clock& clock);

// A transport to the connection's endpoint that carries its token. Errors: InvalidArgument for unusable certificates.
Result<std::shared_ptr<http::Transport>> open_transport(const Connection& connection);

}  // namespace sluice::kube
