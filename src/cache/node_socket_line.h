// The way to the node's cache over its Unix socket.
#pragma once

#include <memory>
#include <string>

#include "src/cache/node_cache_line.h"

namespace sluice::cache {

inline constexpr const char* kFindMethod = "/sluice.v1.NodeCache/Find";
inline constexpr const char* kKeepMethod = "/sluice.v1.NodeCache/Keep";
inline constexpr const char* kAnnounceMethod = "/sluice.v1.NodeCache/Announce";

std::unique_ptr<NodeCacheLine> line_to(const std::string& socket);

}  // namespace sluice::cache
