// The text of a scrape of a registry, for tests that compare it whole.
#pragma once

#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <set>
#include <sstream>
#include <string>

namespace sluice::testing {

// The lines of the exposition format, without HELP: types ("# TYPE name counter") and samples ("name{labels} value").
inline std::set<std::string> metrics_lines(const prometheus::Registry& registry) {
  std::istringstream text(prometheus::TextSerializer().Serialize(registry.Collect()));
  std::set<std::string> lines;
  for (std::string line; std::getline(text, line);) {
    if (!line.starts_with("# HELP")) lines.insert(line);
  }
  return lines;
}

}  // namespace sluice::testing
