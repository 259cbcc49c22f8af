#include "operator/observe/query_round.h"

#include <atomic>
#include <tuple>

#include "src/base/guarded.h"
#include "src/base/in_parallel.h"

namespace sluice::observe {

using QueryAnswer = Result<prom::InstantVector>;

std::vector<QueryAnswer> ask_all(std::span<const std::string> expressions, const QueryFunction& query, int at_once,
                                 const Clock& clock, std::stop_token stop) {
  const Clock::TimePoint ends_at = clock.now() + kRoundLimit;
  std::atomic<int> answered = 0;
  std::atomic<int> failed = 0;
  const auto ask = [&](const std::string& expression) -> QueryAnswer {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(ends_at - clock.now());
    if (left.count() <= 0)
      return Error(ErrorCode::kDeadlineExceeded, "not asked, as the queries before it took " +
                                                     std::to_string(kRoundLimit.count() / 1000) + " s together");
    if (answered == 0 && failed >= kFailuresOfASilentServer)
      return unavailable("not asked, as none of the queries before it was answered");
    QueryAnswer answer = guarded(ErrorCode::kInternal, "query", [&] { return query(expression, stop, left); });
    ++(answer.ok() ? answered : failed);
    return answer;
  };
  std::vector<QueryAnswer> answers(expressions.size(), internal_error("not asked"));
  std::ignore = in_parallel(static_cast<int>(expressions.size()), at_once, [&](int index) -> Result<void> {
    answers[index] = ask(expressions[index]);
    return {};
  });
  return answers;
}

}  // namespace sluice::observe
