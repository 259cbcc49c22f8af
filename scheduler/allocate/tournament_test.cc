#include "scheduler/allocate/tournament.h"

#include <limits>
#include <random>

#include "src/base/testing/catch.h"

namespace sluice::scheduler {
namespace {

Standing standing_of(std::int64_t first, double then) { return {Standing::of(first), Standing::of(then)}; }

TEST_CASE("standings compare like their figures, the first before the second") {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const std::vector<Standing> ascending = {Standing{0},
                                           standing_of(-2, 9.0),
                                           standing_of(-1, -kInfinity),
                                           standing_of(-1, -2.0),
                                           standing_of(-1, -1.0),
                                           standing_of(-1, 0.0),
                                           standing_of(-1, 1e-300),
                                           standing_of(-1, 7.0),
                                           standing_of(-1, kInfinity),
                                           standing_of(0, -3.0),
                                           standing_of(5, 0.0)};
  for (std::size_t i = 1; i < ascending.size(); ++i) CHECK((ascending[i - 1] < ascending[i]));
  CHECK((standing_of(1, 0.0) == standing_of(1, -0.0)));
}

TEST_CASE("of equals the lowest number wins, and one that takes no part only where all do") {
  const Standing none, low = standing_of(0, 1), high = standing_of(0, 2);
  struct Row {
    std::vector<Standing> standings;
    int want = 0;
  };
  const std::vector<Row> rows = {{{}, 0},
                                 {{none, none, none}, 0},
                                 {{low}, 0},
                                 {{none, none, low}, 2},
                                 {{low, high}, 1},
                                 {{high, high}, 0},
                                 {{low, none, low}, 0},
                                 {{none, low, high, high, low}, 2}};
  for (const Row& row : rows) CHECK(Tournament(row.standings).winner() == row.want);
}

TEST_CASE("after any change the winner is that of a search through all") {
  std::mt19937 random(1);
  for (const int size : {1, 2, 3, 7, 8, 33}) {
    std::vector<Standing> standings(size);
    Tournament tournament(standings);
    for (int change = 0; change < 500; ++change) {
      const int who = static_cast<int>(random() % static_cast<unsigned>(size));
      standings[who] = random() % 4 == 0 ? Standing{} : standing_of(0, static_cast<double>(random() % 5));
      tournament.set(who, standings[who]);
      CHECK(tournament.winner() == std::max_element(standings.begin(), standings.end()) - standings.begin());
      CHECK((tournament.standing(who) == standings[who]));
    }
  }
}

TEST_CASE("each part of the contestants has its winner") {
  std::vector<Standing> standings(8);
  for (int i = 0; i < 8; ++i) standings[i] = standing_of(0, static_cast<double>((5 * i) % 8));  // 0 5 2 7 4 1 6 3
  const Tournament tournament(standings);
  CHECK(tournament.winner_of_part(0, 4) == 1);
  CHECK(tournament.winner_of_part(2, 4) == 3);
  CHECK(tournament.winner_of_part(7, 2) == 6);
  CHECK(tournament.winner_of_part(5, 1) == 3);
  CHECK(tournament.winner_of_part(5, 64) == 5);  // more parts than contestants
}

}  // namespace
}  // namespace sluice::scheduler
