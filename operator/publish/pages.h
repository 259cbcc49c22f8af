// The operator's pages, on three ports: none can keep another from its answers.
//
//   metrics  /metrics
//   probes   /healthz (503 names the loop that hangs), /readyz (503 until everything has been seen once)
//   plan     /plan, for admitted readers: takes the time of a decision or two
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "src/http/server.h"

namespace prometheus {
class Collectable;
}

namespace sluice::control {

// Of each page's port: "IP:PORT".
struct PageAddresses {
  std::string metrics;
  std::string probes;
  std::string plan;  // empty: not served
};

struct PageSources {
  std::vector<std::weak_ptr<prometheus::Collectable>> collectables;
  std::function<Result<void>()> health;  // an error: its message says what hangs
  std::function<bool()> ready;
  http::PageMaker plan;
  http::Admission admission;  // to the plan
};

struct Pages {
  std::unique_ptr<http::Server> metrics;
  std::unique_ptr<http::Server> probes;
  std::unique_ptr<http::Server> plan;  // null: not served
};

// Errors: as http::Server::start. REQUIRES: what the sources use outlives the pages.
Result<Pages> serve_pages(const PageAddresses& addresses, PageSources sources);

}  // namespace sluice::control
