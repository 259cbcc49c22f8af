// An object of a store: how it is asked for, and what people and caches call it (docs/designs/object-stores.md).
//
// Thread safety: pure functions and values.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace sluice::pipeline {

// The client's variables that say whom to ask and by whose credentials. They hold secrets: nothing of them is for logs.
using ObjectEnvironment = std::map<std::string, std::string>;

struct ObjectAccess {
  std::string etag;  // or its time of modification, where the store has no ETag
  std::shared_ptr<const ObjectEnvironment> environment;

  // "" where it is not set.
  std::string variable(const std::string& name) const;
};

// s3://BUCKET/KEY, https://HOST/PATH or http://HOST/PATH.
bool is_object_url(std::string_view path);

// For people and logs: without its query, which may hold a signature, and without a user and a password.
std::string shown_url(std::string_view url);

// What stays of a URL when it is presigned anew.
std::string lasting_url(std::string_view url);

// What tells the object from all others, for every reader: its lasting URL, and the store that is asked for a bucket.
std::string place_of_object(std::string_view url, const ObjectAccess& access);

// Whether two contents of an object never have this name: a strong ETag.
bool names_content(std::string_view etag);

}  // namespace sluice::pipeline
