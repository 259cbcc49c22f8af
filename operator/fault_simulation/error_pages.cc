#include "operator/fault_simulation/error_pages.h"

#include <array>
#include <nlohmann/json.hpp>

#include "operator/fault_simulation/template_damage.h"

namespace sluice::simulation {

using nlohmann::json;

namespace {

// 200: a login page. No 409 and 410, which only the API server says.
constexpr std::array kStatuses = {200, 302, 400, 401, 403, 404, 408, 413, 429, 500, 502, 503, 504};
// In Latin-1, cut within a character of UTF-8, in no character set, without an end, empty, of other shapes.
const std::array<std::string, 12> kBodies = {
    "<html><head><title>Zugriff verweigert f\xfcr Ger\xe4te</title></head><body>Pr\xfc"
    "fen Sie die Adresse</body></html>",
    "<html><title>502 Bad Gateway</title><body>\xe2\x82",
    std::string("\x1f\x8b\x08\x00\x00\x00\xff\xfe", 8),
    "<html><title>",
    "",
    "upstream connect error or disconnect/reset before headers. reset reason: overflow",
    std::string(100'000, '<'),
    "null",
    "[]",
    R"({"kind": "Status", "code": "503", "message": {"a": 1}, "details": 7, "reason": []})",
    R"({"status": 7, "data": [], "error": {"a": []}, "errorType": null})",
    R"({"kind": "Status", "message": "\ud83d half a pair", "details": {"causes": [7, {"field": 7}]}})"};
const std::array<std::string, 6> kLines = {R"({"type": "MODIFIED", "object": 7})",
                                           R"({"type": 7, "object": {}})",
                                           R"({"type": "BOOKMARK", "object": {}})",
                                           R"({"type": "ERROR", "object": {"code": "x", "details": []}})",
                                           R"({"type": "ADDED", "object": {"metadata": {"name": "ha)",
                                           "7"};

// Nothing that a figure or a name could be.
const json& foreign_values() {
  static const json kValues = json::parse(R"([null, "", "x", "gr\u00f6\u00dfe", [], {}, [[1]], true, {"a": {}}])");
  return kValues;
}

}  // namespace

http::Response draw_error_page(Random& random) {
  http::Response page{kStatuses[random.below(kStatuses.size())], {}, kBodies[random.below(kBodies.size())]};
  page.headers["Content-Type"] = "text/html";
  return page;
}

std::string draw_damaged_body(Random& random, std::string body) {
  if (body.empty()) return body;
  const double kind = random.unit();
  if (kind < 0.3) return body.substr(0, random.below(body.size()));
  if (kind < 0.5) {
    body.insert(random.below(body.size()), "\xfc\xe4\xff");
    return body;
  }
  json answer = json::parse(body, nullptr, false);
  const auto places = places_in(answer);
  const json& values = foreign_values();
  const json::json_pointer& place = places[random.below(places.size())];
  answer[place] = values[random.below(values.size())];
  return answer.dump();
}

std::string draw_watch_line(Random& random) {
  const std::size_t choice = random.below(kLines.size() + 1);
  return choice < kLines.size() ? kLines[choice] : kBodies[random.below(kBodies.size())];
}

}  // namespace sluice::simulation
