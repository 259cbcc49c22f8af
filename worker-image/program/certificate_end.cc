#include "worker-image/program/certificate_end.h"

#include <prometheus/gauge.h>
#include <prometheus/registry.h>

namespace sluice::program {
namespace {

constexpr std::chrono::minutes kLookEvery{1};

}  // namespace

CertificateEnd::CertificateEnd(prometheus::Registry& registry, const executor::JobLabels& labels,
                               transport::Credentials credentials, const Clock& clock)
    : credentials_(std::move(credentials)), clock_(clock), next_look_(clock.now()) {
  if (!credentials_.encrypted()) return;
  end_ = &prometheus::BuildGauge()
              .Name("sluice_certificate_expiry_timestamp_seconds")
              .Help("Unix time at which the certificate of new connections ends.")
              .Labels({{"job_namespace", labels.job_namespace}, {"training_job", labels.job}})
              .Register(registry)
              .Add({});
  tick();
}

void CertificateEnd::tick() {
  if (end_ == nullptr || clock_.now() < next_look_) return;
  next_look_ = clock_.now() + kLookEvery;
  if (const auto end = credentials_.expires())
    end_->Set(std::chrono::duration<double>(end->time_since_epoch()).count());
}

}  // namespace sluice::program
