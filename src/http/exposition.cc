#include "src/http/exposition.h"

#include <utility>

#include <prometheus/collectable.h>
#include <prometheus/text_serializer.h>

namespace sluice::http {

PageMaker metrics_page(std::vector<std::weak_ptr<prometheus::Collectable>> collectables) {
  return [collectables = std::move(collectables)](const Query&) {
    std::vector<prometheus::MetricFamily> families;
    for (const auto& weak : collectables) {
      const auto collectable = weak.lock();
      if (!collectable) continue;
      for (auto& family : collectable->Collect()) families.push_back(std::move(family));
    }
    return Page{200, "text/plain; version=0.0.4; charset=utf-8", prometheus::TextSerializer().Serialize(families)};
  };
}

}  // namespace sluice::http
