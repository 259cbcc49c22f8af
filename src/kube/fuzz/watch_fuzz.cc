// A watch's bytes: however the network splits them, the events are the same, and lines have a bound.
#include <nlohmann/json.hpp>

#include "src/kube/fuzz/fuzz.h"
#include "src/kube/managed_fields.h"
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
  outcome.partial = !outcome.failed && framer.has_partial_line();
  return outcome;
}

}  // namespace

// Of a line that is JSON, cutting managedFields out of the text and out of the value is the same.
void check_cut(std::string_view line) {
  std::string shortened;
  const Json cut = Json::parse(cut_managed_fields(line, shortened), nullptr, false);
  Json whole = Json::parse(line, nullptr, false);
  if (whole.is_discarded()) return;
  const Json::json_pointer metadata("/object/metadata");
  FUZZ_CHECK(!cut.is_discarded());
  if (cut == whole) return;
  FUZZ_CHECK(whole.contains(metadata) && whole[metadata].erase("managedFields") == 1);
  FUZZ_CHECK(cut == whole);
}

void watch(std::string_view input) {
  check_cut(input.substr(0, input.find('\n')));
  const Outcome whole = frame(input, input.size() + 1);
  for (const std::size_t step : {1u, 7u, 64u}) FUZZ_CHECK(frame(input, step) == whole);
}

}  // namespace sluice::kube::fuzz
