// A watch's bytes: however the network splits them, the events are the same, and lines have a bound.
#include <nlohmann/json.hpp>

#include "src/kube/fuzz/fuzz.h"
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

void run(std::string_view input) {
  const Outcome whole = frame(input, input.size() + 1);
  for (const std::size_t step : {1u, 7u, 64u}) FUZZ_CHECK(frame(input, step) == whole);
}

}  // namespace sluice::kube::fuzz
