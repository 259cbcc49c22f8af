#include "src/base/testing/catch.h"
