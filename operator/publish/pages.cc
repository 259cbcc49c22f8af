#include "operator/publish/pages.h"

#include <utility>

#include "src/http/exposition.h"

namespace sluice::control {
namespace {

// Each question takes a decision or two: few need to wait at once.
constexpr http::ServerLimits kPlanLimits{.max_connections = 16};

}  // namespace

Result<Pages> serve_pages(const PageAddresses& addresses, PageSources sources) {
  const auto health = [health = std::move(sources.health)](const http::Query&) {
    const Result<void> healthy = health();
    if (healthy.ok()) return http::Page{.body = "ok\n"};
    return http::Page{.status = 503, .body = healthy.error().message() + "\n"};
  };
  const auto ready = [ready = std::move(sources.ready)](const http::Query&) {
    if (ready()) return http::Page{.body = "ok\n"};
    return http::Page{.status = 503, .body = "waiting for the first lists\n"};
  };
  Pages pages;
  SLUICE_TRY(pages.probes,
             http::Server::start(addresses.probes, {{"/healthz", health}, {"/readyz", ready}}, http::kProbeLimits));
  SLUICE_TRY(pages.metrics, http::Server::start(addresses.metrics,
                                                {{"/metrics", http::metrics_page(std::move(sources.collectables))}}));
  if (addresses.plan.empty()) return pages;
  SLUICE_TRY(pages.plan, http::Server::start(addresses.plan, {{"/plan", std::move(sources.plan)}}, kPlanLimits,
                                             std::move(sources.admission)));
  return pages;
}

}  // namespace sluice::control
