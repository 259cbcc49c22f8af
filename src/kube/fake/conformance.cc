#include "src/kube/fake/conformance.h"

#include <algorithm>
#include <map>
#include <set>

namespace sluice::kube::fake {
namespace {

constexpr const char* kWatchList = "WatchList";  // a server's feature, as Kubernetes names it

using Saved = std::map<std::string, std::string>;

std::string filled(std::string text, const Saved& saved) {
  for (const auto& [name, value] : saved) {
    const std::string mark = "{" + name + "}";
    for (std::size_t at; (at = text.find(mark)) != std::string::npos;) text.replace(at, mark.size(), value);
  }
  return text;
}

Json filled(Json value, const Saved& saved) {
  if (value.is_string()) return filled(value.get<std::string>(), saved);
  if (value.is_structured())
    for (auto& member : value) member = filled(member, saved);
  return value;
}

bool holds(const Json& observed, const Json& wanted) {
  if (wanted.is_object()) {
    if (!observed.is_object()) return false;
    for (const auto& [name, member] : wanted.items())
      if (!observed.contains(name) || !holds(observed.at(name), member)) return false;
    return true;
  }
  if (wanted.is_array()) {
    if (!observed.is_array() || observed.size() != wanted.size()) return false;
    for (std::size_t index = 0; index < wanted.size(); ++index)
      if (!holds(observed[index], wanted[index])) return false;
    return true;
  }
  return observed == wanted;
}

// The members of a member; none if it is not there.
std::map<std::string, Json> members(const Json& step, const char* name) {
  const auto found = step.find(name);
  return found == step.end() ? std::map<std::string, Json>() : found->get<std::map<std::string, Json>>();
}

Json value_at(const Json& object, const std::string& pointer) {
  const Json::json_pointer path(pointer);
  return object.contains(path) ? object.at(path) : Json();
}

http::Request request_of(const Json& step) {
  const std::string line = step.at("request");
  http::Request request{line.substr(0, line.find(' ')), line.substr(line.find(' ') + 1)};
  const std::string type = step.value("type", "");
  request.headers["Accept"] = "application/json";
  request.headers["Content-Type"] = type == "merge"   ? "application/merge-patch+json"
                                    : type == "apply" ? "application/apply-patch+yaml"
                                                      : "application/json";
  std::string query;
  if (step.contains("manager")) query += "&fieldManager=" + step.at("manager").get<std::string>();
  if (step.value("force", false)) query += "&force=true";
  if (step.value("strict", false)) query += "&fieldValidation=Strict";
  if (!query.empty()) request.target += "?" + query.substr(1);
  if (step.contains("body")) request.body = step.at("body").dump();
  return request;
}

// One run of one scenario.
class Run {
 public:
  Run(const ConformanceTarget& target, std::string place) : target_(target), place_(std::move(place)) {}

  void run(const Json& steps, const Saved& saved) {
    saved_ = saved;
    for (std::size_t index = 0; index < steps.size() && found_.empty(); ++index) {
      step_ = place_ + ", step " + std::to_string(index + 1);
      const Json step = filled(steps[index], saved_);
      for (int tries = 1;; ++tries) {
        found_.clear();
        step.contains("watch") ? check_watch(step) : check_request(step);
        if (found_.empty() || !step.value("retry", false) || !target_.pause(tries)) break;
      }
    }
  }
  const std::vector<std::string>& found() const { return found_; }

 private:
  void differ(const std::string& what) { found_.push_back(step_ + ": " + what); }

  void check_request(const Json& step) {
    const auto response = target_.transport.send(request_of(step), std::chrono::seconds(30), {});
    if (!response.ok()) return differ(response.error().to_string());
    const Json answer = Json::parse(response->body, nullptr, false);
    if (response->status != step.value("status", 200))
      return differ("HTTP status " + std::to_string(response->status) + ": " + response->body.substr(0, 600));
    check_status(step, answer);
    check_object(step, answer);
    if (!found_.empty()) found_.back() += " in " + response->body.substr(0, 1200);
    for (const auto& [name, pointer] : members(step, "save")) {
      const Json value = value_at(answer, pointer);
      saved_[name] = value.is_string() ? value.get<std::string>() : value.dump();
    }
  }

  void check_status(const Json& step, const Json& answer) {
    if (step.contains("reason") && value_at(answer, "/reason") != step.at("reason")) differ("another reason");
    if (step.contains("message")) {
      const Json message = value_at(answer, "/message");
      if (!message.is_string() || message.get<std::string>().find(step.at("message")) == std::string::npos)
        differ("another message");
    }
    if (step.contains("causes")) {
      std::set<std::string> fields;
      for (const Json& cause : value_at(answer, "/details/causes")) fields.insert(cause.value("field", ""));
      const auto are = [&](const char* key) {
        return step.contains(key) && fields == step.at(key).get<std::set<std::string>>();
      };
      if (!are("causes") && !are("older_causes")) differ("other causes");
    }
  }

  void check_object(const Json& step, const Json& answer) {
    if (step.contains("object") && !holds(answer, step.at("object")))
      differ("the object does not hold " + step.at("object").dump());
    if (step.contains("names")) {
      Json names = Json::array();
      for (const Json& item : value_at(answer, "/items")) names.push_back(value_at(item, "/metadata/name"));
      if (names != step.at("names")) differ("the names are " + names.dump());
    }
    for (const auto& [pointer, value] : members(step, "exactly"))
      if (value_at(answer, pointer) != value) differ(pointer + " is " + value_at(answer, pointer).dump());
    for (const Json& pointer : step.value("absent", Json::array()))
      if (!value_at(answer, pointer).is_null()) differ(pointer.dump() + " is there");
    for (const Json& pointer : step.value("present", Json::array()))
      if (value_at(answer, pointer).is_null()) differ(pointer.dump() + " is not there");
    for (const auto& [name, pointer] : members(step, "same"))
      if (value_at(answer, pointer) != saved_[name]) differ(pointer.get<std::string>() + " has changed");
    for (const auto& [name, pointer] : members(step, "changed"))
      if (value_at(answer, pointer) == saved_[name]) differ(pointer.get<std::string>() + " has not changed");
  }

  // Takes as many events as are expected, and no more.
  struct Events final : http::ByteSink {
    explicit Events(std::size_t wanted_events) : wanted(wanted_events) {}
    Result<void> on_bytes(std::string_view bytes) override {
      text += bytes;
      for (std::size_t end; (end = text.find('\n')) != std::string::npos; text.erase(0, end + 1))
        events.push_back(Json::parse(text.substr(0, end), nullptr, false));
      return events.size() < wanted ? Result<void>() : Error(ErrorCode::kCancelled, "enough");
    }
    const std::size_t wanted;
    std::string text;
    std::vector<Json> events;
  };

  void check_watch(const Json& step) {
    const Json& wanted = step.at("events");
    Events sink(wanted.size());
    const http::Request request{"GET", step.at("watch"), {{"Accept", "application/json"}}, ""};
    const auto ended = target_.transport.stream(request, sink, std::chrono::seconds(10), {});
    for (std::size_t index = 0; index < wanted.size(); ++index) {
      if (index >= sink.events.size())
        return differ("no further event: " + (ended.ok() ? ended->body : ended.error().to_string()));
      if (!holds(sink.events[index], wanted[index])) return differ("another event: " + sink.events[index].dump());
    }
  }

  const ConformanceTarget& target_;
  const std::string place_;
  std::string step_;
  Saved saved_;
  std::vector<std::string> found_;
};

std::vector<std::string> run_once(const Json& steps, const ConformanceTarget& target, const std::string& place,
                                  const std::string& name_space) {
  Run prepare(target, place + " (its namespace)");
  prepare.run(Json::array({{{"request", "POST /api/v1/namespaces"},
                            {"body", {{"metadata", {{"name", name_space}}}}},
                            {"status", 201}}}),
              {});
  if (!prepare.found().empty()) return prepare.found();
  Run run(target, place);
  run.run(steps, {{"ns", name_space}});
  Run clean(target, place + " (its namespace)");
  clean.run(Json::array({{{"request", "DELETE /api/v1/namespaces/" + name_space}}}), {});
  return run.found();
}

}  // namespace

std::vector<std::string> run_conformance(const Json& scenario, const ConformanceTarget& target, int number) {
  if (scenario.value(target.streams_lists ? "lacks" : "needs", "") == kWatchList) return {};
  const std::string name = scenario.at("name");
  const std::string name_space = target.namespace_prefix + "-" + std::to_string(number);
  if (!scenario.contains("for_each")) return run_once(scenario.at("steps"), target, name, name_space);
  std::vector<std::string> found;
  int variant_number = 0;
  for (const Json& variant : scenario.at("for_each")) {
    Json steps = scenario.at("steps");
    for (Json& step : steps) {
      step["body"].merge_patch(variant.at("body"));
      if (variant.contains("causes")) step["causes"] = variant.at("causes");
    }
    const auto differences = run_once(steps, target, name + " " + variant.at("body").dump(),
                                      name_space + "-" + std::to_string(++variant_number));
    found.insert(found.end(), differences.begin(), differences.end());
  }
  return found;
}

}  // namespace sluice::kube::fake
