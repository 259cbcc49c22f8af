#include "src/kube/fake/call.h"

namespace sluice::kube::fake {
namespace {

// Our own client sends nothing that cannot be decoded.
std::string decode(std::string_view text) { return http::percent_decode(text).value_or(std::string(text)); }

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t end = text.find(separator);
    if (end != 0) parts.emplace_back(text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  }
  return parts;
}

}  // namespace

Result<Call> understand(const http::Request& request, const std::vector<std::unique_ptr<Kind>>& kinds) {
  Call call;
  call.method = request.method;
  call.body = request.body;
  if (const auto type = request.headers.find("Content-Type"); type != request.headers.end())
    call.content_type = type->second;
  const std::size_t question = request.target.find('?');
  if (question != std::string::npos) {
    for (const std::string& pair : split(std::string_view(request.target).substr(question + 1), '&')) {
      const std::size_t equals = pair.find('=');
      call.query[pair.substr(0, equals)] = equals == std::string::npos ? "" : decode(pair.substr(equals + 1));
    }
  }
  // /api/v1/... or /apis/GROUP/VERSION/..., then [namespaces/NAME/]PLURAL[/NAME[/SUBRESOURCE]]
  std::vector<std::string> parts = split(std::string_view(request.target).substr(0, question), '/');
  for (std::string& part : parts) part = decode(part);
  const bool is_core = !parts.empty() && parts[0] == "api";
  std::size_t at = is_core ? 2 : 3;
  if (parts.size() <= at) return not_found(request.target);
  const std::string group = is_core ? "" : parts[1];
  const std::string& version = parts[at - 1];
  if (parts[at] == "namespaces" && parts.size() > at + 2) {
    call.key.namespace_ = parts[at + 1];
    at += 2;
  }
  for (const auto& kind : kinds)
    if (kind->group == group && kind->version == version && kind->plural == parts[at]) call.kind = kind.get();
  const bool has_name = parts.size() > at + 1;
  const bool has_namespace = !call.key.namespace_.empty();
  if (call.kind == nullptr || (call.kind->namespaced ? has_name && !has_namespace : has_namespace))
    return not_found(request.target);
  if (parts.size() > at + 1) call.key.name = parts[at + 1];
  if (parts.size() > at + 2) call.subresource = parts[at + 2];
  return call;
}

}  // namespace sluice::kube::fake
