// Fuzz targets of what src/kube parses (src/base/testing/fuzz_check.h).
#pragma once

#include <string_view>

#include "src/base/testing/fuzz_check.h"

namespace sluice::kube::fuzz {

void watch(std::string_view input);
void status(std::string_view input);
void quantity(std::string_view input);
void timestamp(std::string_view input);
void kubeconfig(std::string_view input);
void exec_credential(std::string_view input);

}  // namespace sluice::kube::fuzz
