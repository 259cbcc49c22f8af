#include "worker-image/program/cache_job.h"

namespace sluice::program {

cache::JobId cache_job(const executor::JobLabels& labels, const Environment& environment, std::uint64_t own) {
  std::string name;
  const auto add = [&](const std::string& part) { name += part + '\0'; };
  if (!labels.job.empty()) {
    add(labels.job_namespace);
    add(labels.job);
    return cache::hash_of(name);
  }
  if (environment("MASTER_PORT").empty()) return own;
  for (const char* variable : {"SLURM_JOB_ID", "TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT"})
    add(environment(variable));
  return cache::hash_of(name);
}

}  // namespace sluice::program
