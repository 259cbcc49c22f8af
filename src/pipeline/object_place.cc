#include "src/pipeline/object_place.h"

#include <algorithm>
#include <array>

namespace sluice::pipeline {
namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return result;
}

std::string_view query_of(std::string_view url) {
  const std::string_view text = url.substr(0, url.find('#'));
  const std::size_t mark = text.find('?');
  return mark == std::string_view::npos ? std::string_view() : text.substr(mark + 1);
}

// Parameters of S3's and GCS's presigned URLs, of both versions.
bool is_of_signature(std::string_view parameter) {
  const std::string name = lower(parameter.substr(0, parameter.find('=')));
  constexpr std::array<std::string_view, 4> kNames{"expires", "awsaccesskeyid", "googleaccessid", "signature"};
  return name.starts_with("x-amz-") || name.starts_with("x-goog-") ||
         std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

bool is_bucket(std::string_view url) { return lower(url.substr(0, 5)) == "s3://"; }

}  // namespace

std::string ObjectAccess::variable(const std::string& name) const {
  if (environment == nullptr) return "";
  const auto found = environment->find(name);
  return found == environment->end() ? "" : found->second;
}

bool is_object_url(std::string_view path) {
  const std::string scheme = lower(path.substr(0, path.find("://")));
  return scheme.size() < path.size() && (scheme == "s3" || scheme == "http" || scheme == "https");
}

std::string shown_url(std::string_view url) {
  const std::size_t scheme = url.find("://");
  if (scheme == std::string_view::npos) return std::string(url);
  const std::size_t begin = scheme + 3;
  const std::string_view rest = url.substr(begin, url.find_first_of("?#", begin) - begin);
  const std::string_view authority = rest.substr(0, rest.find('/'));
  const std::size_t user = authority.rfind('@');
  return std::string(url.substr(0, begin)).append(rest.substr(user == std::string_view::npos ? 0 : user + 1));
}

std::string lasting_url(std::string_view url) {
  // A key of a bucket may hold any character.
  if (is_bucket(url)) return std::string(url);
  std::string result = shown_url(url);
  char mark = '?';
  for (std::string_view query = query_of(url); !query.empty();) {
    const std::string_view parameter = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), parameter.size() + 1));
    if (parameter.empty() || is_of_signature(parameter)) continue;
    result += mark;
    result += parameter;
    mark = '&';
  }
  return result;
}

std::string place_of_object(std::string_view url, const ObjectAccess& access) {
  std::string place = lasting_url(url);
  if (!is_bucket(url)) return place;
  const std::string own = access.variable("AWS_ENDPOINT_URL_S3");
  // No URL has a blank.
  return place + " of " + (own.empty() ? access.variable("AWS_ENDPOINT_URL") : own);
}

bool names_content(std::string_view etag) { return etag.size() > 2 && etag.starts_with('"'); }

}  // namespace sluice::pipeline
