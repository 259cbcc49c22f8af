// A watch's bytes: however the network splits them, the events are the same, and lines have a bound.
#include <nlohmann/json.hpp>

#include "src/kube/fuzz/fuzz.h"
#include "src/kube/json_text.h"
#include "src/kube/watch.h"

namespace sluice::kube::fuzz {
namespace {

struct Outcome {
  std::string events;
  bool failed = false;
  bool partial = false;
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

Outcome frame(std::string_view bytes, std::size_t step) {
  Outcome outcome;
  LineFramer framer(4096, [&](std::string_view line) -> Result<void> {
    FUZZ_CHECK(!line.empty() && line.size() <= 4096 && line.find('\n') == std::string_view::npos);
    SLUICE_TRY(const WatchEvent event, parse_watch_event(line));
    FUZZ_CHECK(event.object.is_object());
    outcome.events += event.object.dump(-1, ' ', false, Json::error_handler_t::replace) + ";";
    return {};
  });
  for (std::size_t at = 0; at < bytes.size() && !outcome.failed; at += step)
    outcome.failed = !framer.on_bytes(bytes.substr(at, step)).ok();
  outcome.partial = !outcome.failed && !framer.partial_line().empty();
  return outcome;
}

}  // namespace

// What is parsed is what nlohmann's parser makes of it; leaving managedFields out is the same before and after.
void check_json(std::string_view line) {
  const std::optional<Json> parsed = parse_json(line);
  const std::optional<Json> shorter = parse_json(line, kManagedFieldsOfEvent);
  FUZZ_CHECK(parsed.has_value() == shorter.has_value());
  if (!parsed) return;
  Json whole = Json::parse(line, nullptr, false);
  FUZZ_CHECK(whole == *parsed);
  if (*shorter == whole) return;
  const Json::json_pointer metadata("/object/metadata");
  FUZZ_CHECK(whole.contains(metadata) && whole[metadata].erase("managedFields") == 1);
  FUZZ_CHECK(*shorter == whole);
}

void watch(std::string_view input) {
  check_json(input.substr(0, input.find('\n')));
  const Outcome whole = frame(input, input.size() + 1);
  for (const std::size_t step : {1u, 7u, 64u}) FUZZ_CHECK(frame(input, step) == whole);
}

}  // namespace sluice::kube::fuzz
