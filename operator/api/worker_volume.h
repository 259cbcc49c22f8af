// The trainer's volumes as workers have them, which run on any node.
//
// Thread safety: pure functions.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace sluice::api {

// A source of a volume of type "projected": a token for the API server, which is one without an audience.
bool is_server_token(const nlohmann::json& source);

// A volume of the trainer as workers have it, under the same name:
//   the API server's tokens                            left out
//   a claim that every worker would have to buy        an empty directory
//   devices, drivers and sockets of the trainer's node an empty directory, as another node may have none of them, and
//                                                      workers use no devices
//   the node's /dev/shm, and huge pages                shared memory of the worker's own, and an empty directory
//   resources of the trainer's container               those of the worker's
nlohmann::json worker_volume(nlohmann::json volume);

}  // namespace sluice::api
