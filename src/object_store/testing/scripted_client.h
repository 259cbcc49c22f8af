// A client of ranges over the network without threads, and answers for it.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "src/object_store/range_client.h"
#include "src/object_store/testing/fake_network.h"

namespace sluice::object_store::testing {

using Outcome = std::optional<Result<RangeClient::Bytes>>;

struct ScriptedClient {
  explicit ScriptedClient(double drawn = 1)
      : network(new FakeNetwork(clock)),
        client(
            std::unique_ptr<Network>(network), clock, [drawn] { return drawn; },
            [](const std::string& path) -> Result<std::string> { return not_found(path); }) {}

  ObjectRange range(std::size_t bytes = 4, std::string url = "https://h/k?X-Amz-Signature=secret") const {
    return {std::move(url), {"\"e\"", environment}, 1'000'000'000, 0, bytes};
  }
  void get(const ObjectRange& wanted, Outcome& outcome, bool is_urgent = false) {
    client.get({wanted, is_urgent, nullptr, [&outcome](auto bytes) { outcome = std::move(bytes); }});
    network->run();
  }

  static HttpAnswer good(std::size_t bytes = 4) {
    return {206,
            "",
            {{"Content-Range", "bytes 0-" + std::to_string(bytes - 1) + "/1000000000"}, {"ETag", "\"e\""}},
            std::vector<std::uint8_t>(bytes, 7)};
  }
  static HttpAnswer refusal(int status, Headers headers = {}) { return {status, "No", std::move(headers), {}}; }

  sluice::testing::ManualClock clock;
  std::shared_ptr<Environment> environment = std::make_shared<Environment>();
  FakeNetwork* network;
  RangeClient client;
};

}  // namespace sluice::object_store::testing
