// The boundary at which an exception becomes an error value.
#pragma once

#include <exception>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "src/base/result.h"

namespace sluice {

// The result of `work`; if it throws, an error of that code that names `what` and the exception. For threads and
// callbacks in which an exception would end the program. `work` returns a Result or nothing.
template <typename Work>
auto guarded(ErrorCode code, std::string_view what, Work&& work) {
  using Returned = std::invoke_result_t<Work>;
  using Outcome = std::conditional_t<std::is_void_v<Returned>, Result<void>, Returned>;
  try {
    if constexpr (std::is_void_v<Returned>) {
      std::forward<Work>(work)();
      return Outcome();
    } else {
      return Outcome(std::forward<Work>(work)());
    }
  } catch (const std::exception& thrown) {
    return Outcome(Error(code, std::string(what) + ": " + thrown.what()));
  }
}

}  // namespace sluice
