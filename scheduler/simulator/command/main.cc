// sluice-sim: the scheduler and its baselines on a simulated cluster. docs/simulator.md is its manual.
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include "scheduler/simulator/command/commands.h"

int main(int argc, char** argv) {
  const std::vector<const char*> words(argv, argv + argc);
  return sluice::simulator::run_command(words, std::cout, std::cerr);
}
