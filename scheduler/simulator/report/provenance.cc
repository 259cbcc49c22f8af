#include "scheduler/simulator/report/provenance.h"

#include <sys/utsname.h>

#include <array>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <sstream>
#include <thread>

#include "scheduler/simulator/report/report.h"

namespace sluice::simulator {
namespace {

std::string processor_model() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown processors";
}

}  // namespace

Provenance provenance_now() {
  Provenance now;
  const std::time_t seconds = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  std::array<char, 32> date{};
  std::strftime(date.data(), date.size(), "%Y-%m-%dT%H:%M:%S+00:00", &utc);
  now.date = date.data();
  std::array<double, 1> load{};
  getloadavg(load.data(), 1);
  std::ostringstream machine;
  machine << std::thread::hardware_concurrency() << " x " << processor_model() << ", load " << fixed(load[0], 1);
  now.machine = machine.str();
  utsname system{};
  uname(&system);
  std::ostringstream versions;
  versions << "Sluice " << SLUICE_VERSION << ", g++ " << __VERSION__ << ", kernel " << system.release;
  now.versions = versions.str();
  return now;
}

}  // namespace sluice::simulator
