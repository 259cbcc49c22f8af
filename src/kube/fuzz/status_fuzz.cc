// A failure's body, which a proxy may have written: always an error with a message of bounded length.
#include <nlohmann/json.hpp>

#include "src/kube/fuzz/fuzz.h"
#include "src/kube/status.h"

namespace sluice::kube::fuzz {

void status(std::string_view input) {
  for (const int http_status : {400, 409, 410, 422, 500, 504}) {
    const Error error = error_of_response("get Pod a/b", http_status, input);
    FUZZ_CHECK(error.message().compare(0, 11, "get Pod a/b") == 0);
    FUZZ_CHECK(error.message().size() <= 2 * input.size() + 1024);
  }
  const Json parsed = Json::parse(input, nullptr, false);
  if (parsed.is_object()) FUZZ_CHECK(!error_of_status("watch", parsed).message().empty());
}

}  // namespace sluice::kube::fuzz
