// See src/base/precompiled.h. Only tests see Catch2's macros: product code may use words such as INFO.
#pragma once

#include "src/base/precompiled.h"
#include "src/base/testing/catch.h"
