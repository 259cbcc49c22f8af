// Whom to ask for an object, and how: s3://BUCKET/KEY is signed, https://HOST/PATH and http://HOST/PATH are asked for
// as they are, presigned or not (docs/designs/object-stores.md). As python/sluice/stores/object_urls.py has it.
//
// Thread safety: pure functions and values.
#pragma once

#include <string>
#include <string_view>

#include "src/base/result.h"
#include "src/pipeline/object_place.h"

namespace sluice::object_store {

using Environment = pipeline::ObjectEnvironment;

struct Target {
  bool is_tls = true;
  std::string authority;  // HOST or HOST:PORT, as the header Host has it
  std::string path;       // with its query, as it goes over the wire; begins with '/'
  std::string region;     // that the request is signed for; "": it is not signed

  std::string host() const;  // without brackets
  std::string port() const;
};

// InvalidArgument for what names no object. No message holds a secret of the URL.
Result<Target> target_of(const std::string& url, const Environment& environment);

// Of a service, which may be asked at its root. InvalidArgument for what is no http(s)://HOST[:PORT][/PATH].
Result<Target> target_of_service(const std::string& url);

// An answer's Location, which may be relative. InvalidArgument for one that no object has, and for one without TLS
// where `from` has it.
Result<Target> redirected(const Target& from, std::string_view location);

// Everything percent-encoded but '/' and RFC 3986's unreserved characters, as the signature has it.
std::string encoded_path(std::string_view path);

// Of the first of these variables that is set and not empty; "" if none is.
std::string first_of(const Environment& environment, std::initializer_list<const char*> names);

// The region that requests are signed for.
std::string region_of(const Environment& environment);

}  // namespace sluice::object_store
