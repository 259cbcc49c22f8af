#include "src/kube/config.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>
#include <utility>

#include <openssl/evp.h>
#include <yaml-cpp/yaml.h>

#include "src/kube/exec_plugin.h"

namespace sluice::kube {
namespace {

constexpr auto kTokenLifetime = std::chrono::seconds(60);

Result<std::string> read_file(const std::string& path) {
  std::error_code failed;
  // A kubeconfig may name anything, /dev/zero included.
  if (!std::filesystem::is_regular_file(path, failed)) return not_found("no file '" + path + "'");
  std::ifstream file(path, std::ios::binary);
  if (!file) return not_found("cannot open '" + path + "'");
  return std::string(std::istreambuf_iterator<char>(file), {});
}

Result<void> require_readable(const std::string& path) {
  const auto contents = read_file(path);
  return contents.ok() ? Result<void>() : contents.error();
}

std::string trimmed(std::string text) {
  constexpr const char* kSpace = " \t\r\n";
  text.erase(text.find_last_not_of(kSpace) + 1);
  text.erase(0, text.find_first_not_of(kSpace));
  return text;
}

Result<std::string> decode_base64(const std::string& encoded, std::string_view field) {
  const std::string text = trimmed(encoded);
  std::string decoded(text.size() / 4 * 3 + 3, '\0');
  const int size = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(decoded.data()),
                                   reinterpret_cast<const unsigned char*>(text.data()), static_cast<int>(text.size()));
  if (size < 0 || text.size() % 4 != 0) return invalid_argument(std::string(field) + " is not base64");
  std::size_t padding = 0;
  while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=') ++padding;
  decoded.resize(static_cast<std::size_t>(size) - padding);
  return decoded;
}

class FixedToken final : public http::TokenSource {
 public:
  explicit FixedToken(std::string token) : token_(std::move(token)) {}
  Result<std::string> token() override { return token_; }
  void rejected(const std::string&) override {}

 private:
  const std::string token_;
};

class TokenFile final : public http::TokenSource {
 public:
  TokenFile(std::string path, const Clock& clock) : path_(std::move(path)), clock_(clock) {}

  Result<std::string> token() override {
    std::lock_guard lock(mutex_);
    if (!token_.empty() && !must_read_ && clock_.now() - read_at_ < kTokenLifetime) return token_;
    Result<std::string> text = read_file(path_);
    const std::string fresh = text.ok() ? trimmed(*text) : "";
    if (!fresh.empty()) {
      token_ = fresh;
      read_at_ = clock_.now();
      must_read_ = false;
    }
    if (token_.empty()) return Error(ErrorCode::kUnauthenticated, "no token in '" + path_ + "'");
    return token_;
  }

  void rejected(const std::string& token) override {
    std::lock_guard lock(mutex_);
    if (token == token_) must_read_ = true;  // else another thread has read a newer one already
  }

 private:
  const std::string path_;
  const Clock& clock_;
  std::mutex mutex_;
  std::string token_;
  Clock::TimePoint read_at_;
  bool must_read_ = true;
};

// A kubeconfig's lists of {name, <kind>: {...}}. Only const nodes are asked: operator[] of others inserts.
class KubeconfigReader {
 public:
  KubeconfigReader(std::string path, const YAML::Node& root) : path_(std::move(path)), root_(root) {}

  Result<Connection> read(std::string context_name, const Clock& clock) const {
    if (context_name.empty()) context_name = text(root_, "current-context");
    if (context_name.empty()) {
      return invalid_argument(path_ + ": no current-context; choose one with: kubectl config use-context NAME");
    }
    SLUICE_TRY(const YAML::Node context, find("contexts", "context", context_name));
    SLUICE_TRY(const YAML::Node cluster, find("clusters", "cluster", text(context, "cluster")));
    Connection connection;
    if (const std::string chosen = text(context, "namespace"); !chosen.empty()) connection.default_namespace = chosen;
    SLUICE_TRY_VOID(read_cluster(cluster, text(context, "cluster"), connection));
    if (const std::string user = text(context, "user"); !user.empty()) {
      SLUICE_TRY(const YAML::Node node, find("users", "user", user));
      SLUICE_TRY_VOID(read_user(node, user, clock, connection));
    }
    return connection;
  }

 private:
  static std::string text(const YAML::Node& node, const char* field) {
    if (!node.IsMap()) return {};
    const YAML::Node value = node[field];
    return value && value.IsScalar() ? value.Scalar() : std::string();
  }

  Result<YAML::Node> find(const char* list_name, const char* kind, const std::string& name) const {
    const YAML::Node list = root_[list_name];
    if (list && list.IsSequence()) {
      for (const YAML::Node& entry : list) {
        if (text(entry, "name") == name && entry[kind]) return YAML::Node(entry[kind]);
      }
    }
    return not_found(path_ + ": no " + kind + " named '" + name + "'");
  }

  // `name`-data holds it as base64, `name` the file; data wins, as in kubectl.
  Result<std::string> data_or_file(const YAML::Node& node, const std::string& name) const {
    const std::string data_field = name + "-data";
    if (const std::string data = text(node, data_field.c_str()); !data.empty()) {
      return decode_base64(data, path_ + ": " + data_field);
    }
    const std::string file = text(node, name.c_str());
    if (file.empty()) return std::string();
    return read_file(beside_kubeconfig(file));
  }

  std::string beside_kubeconfig(const std::string& file) const {
    return (std::filesystem::path(path_).parent_path() / file).string();  // an absolute `file` stays as it is
  }

  Result<void> refuse(const YAML::Node& node, const std::string& owner, const char* field, const char* way_out) const {
    if (!node[field] || text(node, field) == "false") return {};
    return invalid_argument(path_ + ": " + owner + " has " + field + ", which Sluice does not support: " + way_out);
  }

  Result<void> read_cluster(const YAML::Node& node, const std::string& name, Connection& connection) const {
    const std::string owner = "cluster '" + name + "'";
    SLUICE_TRY_VOID(refuse(node, owner, "insecure-skip-tls-verify", "give its certificate-authority instead"));
    connection.endpoint.base_url = text(node, "server");
    if (connection.endpoint.base_url.empty()) return invalid_argument(path_ + ": " + owner + " has no server");
    connection.endpoint.server_name = text(node, "tls-server-name");
    connection.endpoint.proxy_url = text(node, "proxy-url");
    SLUICE_TRY(connection.endpoint.ca_pem, data_or_file(node, "certificate-authority"));
    return {};
  }

  Result<void> read_user(const YAML::Node& node, const std::string& name, const Clock& clock,
                         Connection& connection) const {
    const std::string owner = "user '" + name + "'";
    const char* way_out = "use a client certificate or a token (kubectl create token SERVICE_ACCOUNT)";
    for (const char* field : {"auth-provider", "username", "password"}) {
      SLUICE_TRY_VOID(refuse(node, owner, field, way_out));
    }
    SLUICE_TRY(connection.endpoint.client_certificate_pem, data_or_file(node, "client-certificate"));
    SLUICE_TRY(connection.endpoint.client_key_pem, data_or_file(node, "client-key"));
    if (const std::string token = text(node, "token"); !token.empty()) {
      connection.token = std::make_shared<FixedToken>(token);
    }
    // The file wins over the token, as in kubectl.
    if (const std::string file = text(node, "tokenFile"); !file.empty()) {
      connection.token = token_from_file(beside_kubeconfig(file), clock);
    }
    if (node["exec"] && !connection.token) {
      SLUICE_TRY(ExecPlugin plugin, read_plugin(node["exec"], owner));
      connection.token = token_from_plugin(
          std::move(plugin), clock, [](const ExecPlugin& p, const std::string& info) { return run_program(p, info); });
    }
    return {};
  }

  Result<ExecPlugin> read_plugin(const YAML::Node& node, const std::string& owner) const {
    ExecPlugin plugin;
    plugin.api_version = text(node, "apiVersion");
    plugin.command = text(node, "command");
    plugin.install_hint = text(node, "installHint");
    if (plugin.command.empty()) return invalid_argument(path_ + ": " + owner + " has an exec without a command");
    if (plugin.api_version != "client.authentication.k8s.io/v1" &&
        plugin.api_version != "client.authentication.k8s.io/v1beta1") {
      return invalid_argument(path_ + ": " + owner + " has an exec of apiVersion '" + plugin.api_version +
                              "'; v1 and v1beta1 of client.authentication.k8s.io are supported");
    }
    if (text(node, "interactiveMode") == "Always") {
      return invalid_argument(path_ + ": " + owner + " has an exec that wants a terminal (interactiveMode: Always)");
    }
    if (plugin.command.find('/') != std::string::npos) plugin.command = beside_kubeconfig(plugin.command);
    if (const YAML::Node list = node["args"]; list && list.IsSequence()) {
      for (const YAML::Node& entry : list) plugin.arguments.push_back(entry.IsScalar() ? entry.Scalar() : "");
    }
    if (const YAML::Node list = node["env"]; list && list.IsSequence()) {
      for (const YAML::Node& entry : list) plugin.environment.emplace_back(text(entry, "name"), text(entry, "value"));
    }
    return plugin;
  }

  const std::string path_;
  const YAML::Node root_;
};

std::string environment_variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

std::string default_kubeconfig() {
  std::string list = environment_variable("KUBECONFIG");
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(':'), list.size());
    const std::string file = list.substr(0, end);
    std::error_code ignored;
    if (!file.empty() && std::filesystem::exists(file, ignored)) return file;
    list.erase(0, end + 1);
  }
  return environment_variable("HOME") + "/.kube/config";
}

Result<Connection> read_kubeconfig(const std::string& path, const Clock& clock, const std::string& context) {
  SLUICE_TRY(const std::string contents, read_file(path));
  return parse_kubeconfig(contents, path, clock, context);
}

Result<Connection> parse_kubeconfig(const std::string& yaml, const std::string& path, const Clock& clock,
                                    const std::string& context) {
  try {
    const YAML::Node root = YAML::Load(yaml);
    if (!root.IsMap()) return invalid_argument(path + ": this is no kubeconfig");
    return KubeconfigReader(path, root).read(context, clock);
  } catch (const YAML::Exception& exception) {
    return invalid_argument(path + ": " + exception.what());
  }
}

PodEnvironment PodEnvironment::current() {
  PodEnvironment environment;
  environment.host = environment_variable("KUBERNETES_SERVICE_HOST");
  environment.port = environment_variable("KUBERNETES_SERVICE_PORT");
  return environment;
}

Result<Connection> read_in_cluster(const Clock& clock, const PodEnvironment& environment) {
  if (environment.host.empty() || environment.port.empty()) {
    return not_found("not in a pod: KUBERNETES_SERVICE_HOST or KUBERNETES_SERVICE_PORT is not set");
  }
  const bool is_v6 = environment.host.find(':') != std::string::npos;
  Connection connection;
  connection.endpoint.base_url =
      "https://" + (is_v6 ? "[" + environment.host + "]" : environment.host) + ":" + environment.port;
  SLUICE_TRY(connection.endpoint.ca_pem, read_file(environment.directory + "/ca.crt"));
  const std::string token_path = environment.directory + "/token";
  SLUICE_TRY_VOID(require_readable(token_path));
  connection.token = token_from_file(token_path, clock);
  if (const auto own = read_file(environment.directory + "/namespace"); own.ok() && !own->empty()) {
    connection.default_namespace = trimmed(*own);
  }
  return connection;
}

std::shared_ptr<http::TokenSource> token_from_file(std::string path, const Clock& clock) {
  return std::make_shared<TokenFile>(std::move(path), clock);
}

}  // namespace sluice::kube
