// CMake wants a file to precompile a header for; main.cc, which includes Catch2 in another way, cannot be it.
#include "src/base/testing/precompiled.h"
