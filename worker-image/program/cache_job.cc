#include "worker-image/program/cache_job.h"

#include "src/base/job_number.h"

namespace sluice::program {

cache::JobId cache_job(const executor::JobLabels& labels, const Environment& environment, std::uint64_t own) {
  if (!labels.job.empty()) return job_number(labels.job_namespace, labels.job);
  if (environment("MASTER_PORT").empty()) return own;
  std::string name;
  for (const char* variable : {"SLURM_JOB_ID", "TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT"})
    name += environment(variable) + '\0';
  return cache::hash_of(name);
}

}  // namespace sluice::program
