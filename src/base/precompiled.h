// The headers that most files include and that take a second to parse, parsed once per build tree. The build includes
// it before every file; no file relies on it, because each of them must compile alone (`make check`).
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <set>
#include <sstream>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>
