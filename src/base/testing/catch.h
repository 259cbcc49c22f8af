// The one place that names Catch2's headers: moving to version 3 changes this file alone.
#pragma once

#include <catch2/catch.hpp>
