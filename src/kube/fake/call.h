// An HTTP request, understood: which kind, which object, which options.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "src/http/transport.h"
#include "src/kube/fake/kind.h"

namespace sluice::kube::fake {

// Thread safety: a value; `kind` points into the server's table.
struct Call {
  std::string method;
  const Kind* kind = nullptr;
  ObjectKey key;  // an empty name: the collection
  std::string subresource;
  std::map<std::string, std::string> query;  // decoded
  std::string content_type;
  std::string body;

  std::string option(const std::string& name) const {
    const auto found = query.find(name);
    return found == query.end() ? "" : found->second;
  }
  bool is_watch() const { return option("watch") == "true" || option("watch") == "1"; }
};

// Errors: NotFound for a path that leads nowhere.
Result<Call> understand(const http::Request& request, const std::vector<std::unique_ptr<Kind>>& kinds);

}  // namespace sluice::kube::fake
