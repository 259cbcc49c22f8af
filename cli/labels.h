// Labels by which the objects of an installation are found.
#pragma once

namespace sluice::cli {

inline constexpr const char* kInstallation = "app.kubernetes.io/name=sluice";
inline constexpr const char* kOperators = "app.kubernetes.io/name=sluice,app.kubernetes.io/component=operator";
inline constexpr const char* kReaders = "app.kubernetes.io/name=sluice,app.kubernetes.io/component=plan-reader";
inline constexpr const char* kJobLabel = "sluice.dev/job";  // of a job's pods and other children

}  // namespace sluice::cli
