// The API server's failures (kind Status, or a bare HTTP status) as errors; see client.h for the table.
#pragma once

#include <string_view>

#include "src/base/result.h"
#include "src/kube/resource.h"

namespace sluice::kube {

// `what` names the request: "apply Job a/b". `body` is a Status, or anything a proxy may have answered instead.
Error error_of_response(std::string_view what, int http_status, std::string_view body);

// The error of a Status object, such as the one in a watch's ERROR event.
Error error_of_status(std::string_view what, const Json& status);

}  // namespace sluice::kube
