#include "worker-image/cache/tenant_service.h"

#include <utility>

namespace sluice::node_cache {

void TenantService::received(std::shared_ptr<transport::UnaryCall> call, const std::string& method,
                             transport::Payload question) {
  std::string token = call->token();
  if (const auto tenant = tokens_.known(token)) return answer(*tenant, token, call, method, std::move(question));
  auto allowed = waiting_.take(question.bytes());
  const bool is_taken = allowed != nullptr &&
                        reviews_.submit([this, call, method, token = std::move(token), question = std::move(question),
                                         allowed = std::move(allowed)](executor::ThreadState&) mutable {
                          answer(tokens_.review(token), token, call, method, std::move(question));
                        });
  if (!is_taken) find_place_({}).service.refuse(*call);
}

void TenantService::answer(const Result<std::string>& tenant, const std::string& token,
                           const std::shared_ptr<transport::UnaryCall>& call, const std::string& method,
                           transport::Payload question) {
  if (tenant.ok()) {
    Place place = find_place_(*tenant);
    return place.service.serve({std::move(place.tenant), token, *tenant}, call, method, std::move(question));
  }
  if (tenant.error().code() == ErrorCode::kUnauthenticated) ++refused_;
  call->refuse(tenant.error());
}

}  // namespace sluice::node_cache
