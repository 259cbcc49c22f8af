// The way to the node's cache over its Unix socket, or over the network.
#pragma once

#include <memory>
#include <string>

#include "src/cache/node_cache_line.h"
#include "src/transport/unary_client.h"

namespace sluice::cache {

inline constexpr const char* kFindMethod = "/sluice.v1.NodeCache/Find";
inline constexpr const char* kKeepMethod = "/sluice.v1.NodeCache/Keep";
inline constexpr const char* kAnnounceMethod = "/sluice.v1.NodeCache/Announce";
// The same from a daemon, which speaks to the record's home for one of its own pods: they go no further.
inline constexpr const char* kFindAtHomeMethod = "/sluice.v1.NodeCache/FindAtHome";
inline constexpr const char* kKeepAtHomeMethod = "/sluice.v1.NodeCache/KeepAtHome";
inline constexpr const char* kAnnounceAtHomeMethod = "/sluice.v1.NodeCache/AnnounceAtHome";
// What the certificates of daemons are issued for; their addresses say nothing.
inline constexpr const char* kNodeCacheServerName = "cache.sluice.internal";

std::unique_ptr<NodeCacheLine> line_over(std::unique_ptr<transport::UnaryClient> client);
std::unique_ptr<NodeCacheLine> line_to(const std::string& socket);

// The same over the network, to the daemon that the node's own Service leads to. `files`: a folder with ca.crt, which
// the daemon's certificate is checked by, and token, which says whose this process is.
std::unique_ptr<NodeCacheLine> line_to(const std::string& address, const std::string& files);

}  // namespace sluice::cache
