#include "src/object_store/object_url.h"

#include <algorithm>
#include <cctype>

namespace sluice::object_store {
namespace {

using pipeline::shown_url;

struct Parts {
  std::string scheme;  // in lower case
  std::string_view authority;
  std::string_view path;   // from the first slash on, without query and fragment
  std::string_view query;  // with its question mark
};

std::string in_lower_case(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(), [](unsigned char c) { return std::tolower(c); });
  return result;
}

Parts parts_of(std::string_view url) {
  Parts parts;
  const std::size_t scheme_end = std::min(url.find("://"), url.size());
  parts.scheme = in_lower_case(url.substr(0, scheme_end));
  std::string_view rest = url.substr(std::min(url.size(), scheme_end + 3));
  parts.authority = rest.substr(0, rest.find_first_of("/?#"));
  rest.remove_prefix(parts.authority.size());
  rest = rest.substr(0, rest.find('#'));
  parts.path = rest.substr(0, rest.find('?'));
  parts.query = rest.substr(parts.path.size());
  return parts;
}

bool is_http(const Parts& parts) { return parts.scheme == "http" || parts.scheme == "https"; }

// Host and port can be asked for, and nothing else is in them.
bool is_plain(std::string_view authority) {
  const auto is_fine = [](unsigned char c) {
    return std::isalnum(c) != 0 || std::string_view("-._:[]").find(c) != std::string_view::npos;
  };
  return !authority.empty() && authority.front() != ':' && std::all_of(authority.begin(), authority.end(), is_fine);
}

bool is_of_visible_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](unsigned char c) { return c > 0x20 && c < 0x7F; });
}

Result<Target> target_of_bucket(const std::string& url, std::string_view bucket, const Environment& environment) {
  // A key may hold '?' and '#'.
  const std::size_t slash = url.find('/', url.find("://") + 3);
  const std::string key = slash == std::string::npos ? "" : url.substr(slash + 1);
  const std::string region = region_of(environment);
  const std::string endpoint = first_of(environment, {"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"});
  if (endpoint.empty() && bucket.find('.') == std::string_view::npos)
    return Target{true, std::string(bucket) + ".s3." + region + ".amazonaws.com", encoded_path("/" + key), region};
  // A certificate for *.s3 is not one for a name with more dots.
  const std::string store = endpoint.empty() ? "https://s3." + region + ".amazonaws.com" : endpoint;
  const Parts parts = parts_of(store);
  if (!is_http(parts) || !is_plain(parts.authority))
    return invalid_argument("AWS_ENDPOINT_URL is http(s)://HOST[:PORT], not " + shown_url(endpoint));
  std::string path(parts.path);
  while (path.ends_with('/')) path.pop_back();
  path.append("/").append(bucket).append("/").append(key);
  return Target{parts.scheme == "https", std::string(parts.authority), encoded_path(path), region};
}

}  // namespace

std::string Target::host() const {
  if (authority.starts_with('[')) return authority.substr(1, authority.find(']') - 1);
  return authority.substr(0, authority.find(':'));
}

std::string Target::port() const {
  const std::size_t bracket = authority.find(']');
  const std::size_t colon = authority.find(':', bracket == std::string::npos ? 0 : bracket);
  if (colon != std::string::npos && colon + 1 < authority.size()) return authority.substr(colon + 1);
  return is_tls ? "443" : "80";
}

Result<Target> target_of(const std::string& url, const Environment& environment) {
  const Parts parts = parts_of(url);
  if (!is_plain(parts.authority) || parts.path.size() < 2 || !(is_http(parts) || parts.scheme == "s3"))
    return invalid_argument(shown_url(url) + " names no object: s3://BUCKET/KEY or https://HOST/PATH");
  if (parts.scheme == "s3") return target_of_bucket(url, parts.authority, environment);
  return target_of_service(url);
}

Result<Target> target_of_service(const std::string& url) {
  const Parts parts = parts_of(url);
  if (!is_http(parts) || !is_plain(parts.authority))
    return invalid_argument(shown_url(url) + " is not http(s)://HOST[:PORT][/PATH]");
  std::string path = std::string(parts.path.empty() ? "/" : parts.path).append(parts.query);
  if (!is_of_visible_ascii(path))
    return invalid_argument(shown_url(url) + " has characters that must be percent-encoded");
  return Target{parts.scheme == "https", std::string(parts.authority), std::move(path), ""};
}

Result<Target> redirected(const Target& from, std::string_view location) {
  const std::string scheme = from.is_tls ? "https://" : "http://";
  std::string url(location);
  if (location.starts_with("//")) {
    url = scheme.substr(0, scheme.size() - 2) + url;
  } else if (location.starts_with('/')) {
    url = scheme + from.authority + url;
  }
  const Parts parts = parts_of(url);
  if (from.is_tls && parts.scheme == "http")
    return invalid_argument(from.authority + " redirects to " + shown_url(url) + ", without TLS");
  if (!is_http(parts)) return invalid_argument(from.authority + " redirects to " + shown_url(url));
  return target_of(url, {});
}

std::string encoded_path(std::string_view path) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string result;
  for (const unsigned char c : path) {
    if ((c < 0x80 && std::isalnum(c) != 0) ||
        std::string_view("/-_.~").find(static_cast<char>(c)) != std::string_view::npos) {
      result += static_cast<char>(c);
    } else {
      result += '%';
      result += kDigits[c >> 4];
      result += kDigits[c & 15];
    }
  }
  return result;
}

std::string first_of(const Environment& environment, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const auto found = environment.find(name);
    if (found != environment.end() && !found->second.empty()) return found->second;
  }
  return "";
}

std::string region_of(const Environment& environment) {
  const std::string region = first_of(environment, {"AWS_REGION", "AWS_DEFAULT_REGION"});
  return region.empty() ? "us-east-1" : region;
}

}  // namespace sluice::object_store
