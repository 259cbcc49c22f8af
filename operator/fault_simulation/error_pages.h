// What comes where an answer should: a proxy's page in whatever encoding, half an answer, one of another shape.
//
// None of it says anything false: a list without its objects, or another job's figures, would be another simulation.
// Thread safety: none, but for pure functions.
#pragma once

#include <string>

#include "operator/fault_simulation/random.h"
#include "src/http/transport.h"

namespace sluice::simulation {

// A page of something between the operator and the server that it asks.
http::Response draw_error_page(Random& random);

// The JSON text `body`, cut, or with foreign bytes in it, or with a value of another type somewhere.
std::string draw_damaged_body(Random& random, std::string body);

// A line of a watch that is no event.
std::string draw_watch_line(Random& random);

}  // namespace sluice::simulation
