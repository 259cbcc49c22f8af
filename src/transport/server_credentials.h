// What a gRPC server shows of itself, and whether it asks who connects. Included only by the .cc files that speak gRPC.
#pragma once

#include <grpcpp/security/server_credentials.h>

#include <memory>

#include "src/transport/credentials.h"

namespace sluice::transport {

enum class Clients {
  kShowCertificates,  // of the authority that the server trusts
  kShowNone           // how they show who they are is the caller's matter
};

// Each connection shows what the files of `credentials` hold when it begins. In the clear where they say so.
// REQUIRES: the result outlives the server.
std::shared_ptr<grpc::ServerCredentials> server_credentials(const Credentials& credentials, Clients clients);

}  // namespace sluice::transport
