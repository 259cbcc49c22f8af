#include "operator/fault_simulation/template_damage.h"

#include <algorithm>
#include <optional>

#include "src/kube/fake/yaml.h"

namespace sluice::simulation {

using nlohmann::json;
using Pointer = json::json_pointer;

namespace {

constexpr std::uint64_t kMostDamages = 4;
constexpr double kMistakes = 0.5;  // shares of what is drawn
constexpr double kLeftOut = 0.2;
constexpr double kRepeated = 0.1;
constexpr int kManyTimes = 40;  // of an element that is repeated often
constexpr double kManyShare = 0.2;

// The file, read once.
const json& mistakes() {
  static const json kMistakesRead = kube::fake::read_yaml("operator/fault_simulation/template_mistakes.yaml").value();
  return kMistakesRead;
}

void find_places(const json& value, const Pointer& place, std::vector<Pointer>& places) {
  places.push_back(place);
  if (value.is_object())
    for (const auto& [name, member] : value.items()) find_places(member, place / name, places);
  if (value.is_array())
    for (std::size_t index = 0; index < value.size(); ++index) find_places(value[index], place / index, places);
}

// A "*" of the mistake's place is an element, drawn. None: there is no such element.
std::optional<Pointer> draw_place(Random& random, std::string pattern, const json& pod_template) {
  for (auto star = pattern.find('*'); star != std::string::npos; star = pattern.find('*')) {
    const Pointer list(pattern.substr(0, star - 1));
    if (!pod_template.contains(list)) return std::nullopt;
    const json& elements = pod_template.at(list);
    if (!elements.is_array() || elements.empty()) return std::nullopt;
    pattern.replace(star, 1, std::to_string(random.below(elements.size())));
  }
  return Pointer(pattern);
}

std::optional<TemplateDamage> draw_mistake(Random& random, const json& pod_template) {
  const json& all = mistakes().at("mistakes");
  const json& mistake = all[random.below(all.size())];
  const auto place = draw_place(random, mistake.at("at"), pod_template);
  if (!place) return std::nullopt;
  return TemplateDamage{"", *place, mistake.at("value"), mistake.value("times", 1)};
}

TemplateDamage draw_any(Random& random, const json& pod_template) {
  const std::vector<Pointer> places = places_in(pod_template);
  const Pointer& place = places[random.below(places.size())];
  const json& value = pod_template.at(place);
  const double kind = random.unit();
  if (kind < kLeftOut) return {"", place, json(json::value_t::discarded)};
  if (kind < kLeftOut + kRepeated && value.is_array() && !value.empty())
    return {"", place / "-", value[random.below(value.size())], random.chance(kManyShare) ? kManyTimes : 1};
  const json& values = mistakes().at("values");
  return {"", place, values[random.below(values.size())]};
}

void append(const TemplateDamage& damage, json& list) {
  for (int number = 0; number < damage.times; ++number) {
    list.push_back(damage.value);
    if (damage.times == 1 || !list.back().is_object()) continue;
    json& name = list.back()["name"];
    if (name.is_string()) name = name.get<std::string>() + "-" + std::to_string(number);
  }
}

}  // namespace

std::vector<Pointer> places_in(const json& value) {
  std::vector<Pointer> places;
  find_places(value, Pointer(), places);
  return places;
}

json TemplateDamage::to_json() const {
  json result = {{"object", object}, {"place", place.to_string()}};
  if (!value.is_discarded()) result["value"] = value;
  if (times != 1) result["times"] = times;
  return result;
}

Result<TemplateDamage> TemplateDamage::from_json(const json& value) {
  try {
    TemplateDamage damage{value.at("object"), Pointer(value.at("place").get<std::string>()),
                          json(json::value_t::discarded), value.value("times", 1)};
    if (value.contains("value")) damage.value = value["value"];
    return damage;
  } catch (const json::exception& failure) {
    return invalid_argument(std::string("no damage: ") + failure.what());
  }
}

void damage_template(const TemplateDamage& damage, json& pod_template) {
  const Pointer& place = damage.place;
  if (place.empty()) {
    pod_template = damage.value.is_discarded() ? json() : damage.value;
    return;
  }
  const Pointer parent = place.parent_pointer();
  const bool appends = place.back() == "-";
  // A list that is absent begins with what is put into it.
  if (appends && !pod_template.contains(parent) && !parent.empty() && pod_template.contains(parent.parent_pointer()) &&
      pod_template.at(parent.parent_pointer()).is_object())
    pod_template[parent] = json::array();
  if (!pod_template.contains(parent)) return;
  json& holder = pod_template.at(parent);
  if (appends && holder.is_array()) return append(damage, holder);
  if (holder.is_object()) {
    if (damage.value.is_discarded())
      holder.erase(place.back());
    else
      holder[place.back()] = damage.value;
  } else if (holder.is_array() && pod_template.contains(place)) {
    if (damage.value.is_discarded())
      holder.erase(std::stoul(place.back()));
    else
      pod_template.at(place) = damage.value;
  }
}

std::vector<TemplateDamage> draw_damages(Random& random, const std::string& object, json pod_template) {
  std::vector<TemplateDamage> damages;
  for (std::uint64_t left = 1 + random.below(kMostDamages); left > 0; --left) {
    std::optional<TemplateDamage> damage;
    if (random.chance(kMistakes)) damage = draw_mistake(random, pod_template);
    if (!damage) damage = draw_any(random, pod_template);
    damage->object = object;
    damage_template(*damage, pod_template);
    damages.push_back(std::move(*damage));
  }
  return damages;
}

}  // namespace sluice::simulation
