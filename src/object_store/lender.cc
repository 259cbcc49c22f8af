#include "src/object_store/lender.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

namespace sluice::object_store {
namespace {

constexpr int kYearMost = 2200;  // beyond, the clock's nanoseconds would overflow
constexpr std::size_t kTextBytesMost = 64 << 10;
constexpr Clock::Duration kAnswerTime = std::chrono::seconds(10);
constexpr const char* kAgentOfTasks = "http://169.254.170.2";
// Without TLS, as they are on the node.
constexpr std::array<std::string_view, 3> kAgents{"169.254.170.2", "169.254.170.23", "fd00:ec2::23"};

Trust trust_of(const Environment& environment) {
  return {first_of(environment, {"SSL_CERT_FILE"}), first_of(environment, {"SSL_CERT_DIR"})};
}

bool is_on_this_node(const std::string& host) {
  return host == "localhost" || host == "::1" ||
         (host.starts_with("127.") && host.find_first_not_of("0123456789.") == std::string::npos) ||
         std::find(kAgents.begin(), kAgents.end(), host) != kAgents.end();
}

std::string form_value(std::string_view text) {
  std::string result;
  for (const char c : encoded_path(text)) result += c == '/' ? std::string("%2F") : std::string(1, c);
  return result;
}

std::string trimmed_end(std::string text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0) text.pop_back();
  return text;
}

Result<std::string> token_of(const Lender& lender, const ReadText& read_text) {
  if (lender.token_file.empty()) return lender.token;
  auto token = read_text(lender.token_file);
  const std::string variable =
      lender.kind == Lender::Kind::kRole ? "AWS_WEB_IDENTITY_TOKEN_FILE" : "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE";
  const auto is_visible = [](unsigned char c) { return c > 0x20 && c < 0x7F; };
  std::string text = token.ok() ? trimmed_end(*token) : "";
  if (!token.ok() || !std::all_of(text.begin(), text.end(), is_visible))
    return Error(ErrorCode::kPermissionDenied, variable + " names " + lender.token_file + ", which cannot be read");
  return text;
}

// Of an element without others in it; "" where there is none.
std::string element(std::string_view text, const std::string& name) {
  const std::size_t begin = text.find("<" + name + ">");
  if (begin == std::string_view::npos) return "";
  const std::size_t content = begin + name.size() + 2;
  return std::string(text.substr(content, text.find('<', content) - content));
}

std::string field_of(const nlohmann::json& object, const char* name) {
  if (!object.is_object() || !object.contains(name) || !object[name].is_string()) return "";
  return object[name].get<std::string>();
}

// "2026-11-26T08:00:00Z", with a fraction of a second or an offset to UTC.
std::optional<Clock::WallTimePoint> time_of(const std::string& text) {
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0, used = 0;
  if (std::sscanf(text.c_str(), "%4d-%2d-%2dT%2d:%2d:%2d%n", &year, &month, &day, &hour, &minute, &second, &used) != 6)
    return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (!date.ok() || year < 1970 || year > kYearMost) return std::nullopt;
  const auto whole = std::chrono::sys_days(date) + std::chrono::hours(hour) + std::chrono::minutes(minute) +
                     std::chrono::seconds(second);
  std::size_t at = static_cast<std::size_t>(used);
  if (at < text.size() && text[at] == '.') at = text.find_first_not_of("0123456789", at + 1);
  const std::string zone = at < text.size() ? text.substr(at) : "";
  if (zone.empty() || zone == "Z") return whole;
  int hours = 0, minutes = 0;
  char sign = 0;
  if (std::sscanf(zone.c_str(), "%c%2d:%2d", &sign, &hours, &minutes) != 3) return std::nullopt;
  const auto offset = std::chrono::hours(hours) + std::chrono::minutes(minutes);
  return sign == '-' ? whole + offset : whole - offset;
}

std::string authority_of(const Lender& lender) {
  const auto target = target_of_service(lender.url);
  return target.ok() ? target->authority : pipeline::shown_url(lender.url);
}

std::optional<Lent> lent_of(const Lender& lender, std::string_view text) {
  Credentials lent;
  std::string ends;
  if (lender.kind == Lender::Kind::kRole) {
    lent = {element(text, "AccessKeyId"), element(text, "SecretAccessKey"), element(text, "SessionToken")};
    ends = element(text, "Expiration");
  } else {
    const auto fields = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
    const std::string token = field_of(fields, "SessionToken");
    lent = {field_of(fields, "AccessKeyId"), field_of(fields, "SecretAccessKey"),
            token.empty() ? field_of(fields, "Token") : token};
    ends = field_of(fields, "Expiration");
  }
  const auto ends_at = time_of(ends);
  if (lent.key_id.empty() || lent.secret.empty() || !ends_at) return std::nullopt;
  return Lent{lent, *ends_at};
}

}  // namespace

ReadText read_text_of_disk() {
  return [](const std::string& path) -> Result<std::string> {
    std::ifstream file(path, std::ios::binary);
    std::string text(kTextBytesMost, '\0');
    if (!file.read(text.data(), static_cast<std::streamsize>(text.size())) && file.gcount() == 0 && !file.eof())
      return not_found(path + " cannot be read");
    text.resize(static_cast<std::size_t>(file.gcount()));
    return text;
  };
}

std::string Lender::in_words() const {
  return authority_of(*this) + (kind == Kind::kRole ? ", for role " + role + "," : ", for the pod's credentials,");
}

std::optional<Lender> role_of(const Environment& environment) {
  const std::string token_file = first_of(environment, {"AWS_WEB_IDENTITY_TOKEN_FILE"});
  const std::string role = first_of(environment, {"AWS_ROLE_ARN"});
  if (token_file.empty() || role.empty()) return std::nullopt;
  std::string url = first_of(environment, {"AWS_ENDPOINT_URL_STS"});
  if (url.empty()) url = "https://sts." + region_of(environment) + ".amazonaws.com";
  const std::string session = first_of(environment, {"AWS_ROLE_SESSION_NAME"});
  return Lender{Lender::Kind::kRole,  url, token_file, role, session.empty() ? "sluice" : session, "",
                trust_of(environment)};
}

std::optional<Lender> agent_of(const Environment& environment) {
  std::string url = first_of(environment, {"AWS_CONTAINER_CREDENTIALS_FULL_URI"});
  const std::string path = first_of(environment, {"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"});
  if (url.empty() && path.empty()) return std::nullopt;
  if (url.empty()) url = kAgentOfTasks + path;
  return Lender{Lender::Kind::kAgent,
                url,
                first_of(environment, {"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"}),
                "",
                "",
                first_of(environment, {"AWS_CONTAINER_AUTHORIZATION_TOKEN"}),
                trust_of(environment)};
}

Result<HttpRequest> request_to(const Lender& lender, const ReadText& read_text) {
  const auto target = target_of_service(lender.url);
  if (!target.ok()) return target.error().with_context("credentials are not asked for");
  if (lender.kind == Lender::Kind::kAgent && !target->is_tls && !is_on_this_node(target->host()))
    return invalid_argument("AWS_CONTAINER_CREDENTIALS_FULL_URI names " + target->authority +
                            " without TLS, which is no agent of this node");
  SLUICE_TRY(const std::string token, token_of(lender, read_text));
  HttpRequest request{.target = *target,
                      .trust = lender.trust,
                      .headers = {{"Host", target->authority}},
                      .answer_bytes_max = kTextBytesMost,
                      .time = kAnswerTime};
  if (lender.kind == Lender::Kind::kAgent) {
    if (!token.empty()) request.headers.emplace_back("Authorization", token);
    return request;
  }
  request.method = "POST";
  request.headers.emplace_back("Content-Type", "application/x-www-form-urlencoded");
  request.body = "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn=" + form_value(lender.role) +
                 "&RoleSessionName=" + form_value(lender.session) + "&WebIdentityToken=" + form_value(token);
  return request;
}

Result<Lent> lent_by(const Lender& lender, const HttpAnswer& answer) {
  const std::string_view text(reinterpret_cast<const char*>(answer.body.data()), answer.body.size());
  if (answer.status != 200) {
    std::string code = element(text, "Code");
    const auto is_word = [](unsigned char c) { return std::isalnum(c) != 0; };
    if (code.size() > 60 || !std::all_of(code.begin(), code.end(), is_word)) code.clear();
    const std::string message = lender.in_words() + " refuses: " + std::to_string(answer.status) + " " + answer.reason +
                                (code.empty() ? "" : " (" + code + ")");
    const bool may_pass = answer.status >= 500 || answer.status == 429;
    return Error(may_pass ? ErrorCode::kUnavailable : ErrorCode::kPermissionDenied, message);
  }
  if (const auto lent = lent_of(lender, text)) return *lent;
  return Error(ErrorCode::kPermissionDenied,
               lender.in_words() + " answers without AccessKeyId, SecretAccessKey or Expiration");
}

}  // namespace sluice::object_store
