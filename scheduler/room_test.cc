#include "scheduler/room.h"

#include "src/base/testing/catch.h"

namespace sluice::scheduler {
namespace {

TEST_CASE("new workers go to the emptiest node, by name among equals") {
  Room room({{"n2", 2000, 0, true}, {"n1", 2000, 0, true}, {"n3", 3000, 500, true}});
  CHECK(room.capacity_millicores() == 6500);
  CHECK(room.place_in_spare(1000) == "n3");
  CHECK(room.place_in_spare(1000) == "n1");
  CHECK(room.place_in_spare(1000) == "n2");
  CHECK(room.place_in_spare(1000) == "n3");
  CHECK(room.place_in_spare(1000) == "n1");
  CHECK(room.place_in_spare(1000) == "n2");
  CHECK(room.place_in_spare(1000) == std::nullopt);
  CHECK(room.place_in_spare(500) == "n3");
  CHECK(room.place_over_expected(1) == std::nullopt);
  CHECK(room.granted_millicores() == 6500);
}

TEST_CASE("what others have requested is not there, and never counts below zero") {
  Room room({{"overcommitted", 1000, 1500, true}, {"n1", 1000, 400, true}});
  CHECK(room.capacity_millicores() == 600);
  CHECK(room.place_in_spare(600) == "n1");
  CHECK(room.place_in_spare(1) == std::nullopt);
}

TEST_CASE("a cordoned node keeps its workers and takes no new one") {
  Room room({{"cordoned", 4000, 0, false}});
  CHECK(room.capacity_millicores() == 0);
  room.expect("cordoned", 1000);
  CHECK(room.capacity_millicores() == 1000);
  CHECK(room.place_in_spare(1000) == std::nullopt);
  CHECK(room.place_over_expected(1000) == std::nullopt);
  CHECK_FALSE(room.would_fit_without("cordoned", 1000, 500));
  CHECK(room.keep("cordoned", 1000));
  CHECK(room.granted_millicores() == 1000);
}

TEST_CASE("existing workers keep their place until nothing is spare") {
  Room room({{"n1", 2000, 0, true}, {"n2", 1000, 0, true}});
  room.expect("n1", 1000);
  room.expect("n1", 1000);
  CHECK(room.place_in_spare(1000) == "n2");
  CHECK(room.place_in_spare(1000) == std::nullopt);
  CHECK(room.would_fit_without("n1", 1000, 1000));
  CHECK_FALSE(room.would_fit_without("n1", 1000, 1001));

  SECTION("one is forgotten") {
    room.forget("n1", 1000);
    CHECK(room.place_in_spare(1000) == "n1");
    CHECK(room.keep("n1", 1000));
  }
  SECTION("one large worker over both") {
    CHECK(room.place_over_expected(2000) == "n1");
    CHECK_FALSE(room.keep("n1", 1000));
  }
  SECTION("all are kept") {
    CHECK(room.keep("n1", 1000));
    CHECK(room.keep("n1", 1000));
    CHECK(room.place_over_expected(1) == std::nullopt);
  }
}

TEST_CASE("released room can be granted again") {
  Room room({{"n1", 1000, 0, true}});
  CHECK(room.place_in_spare(1000) == "n1");
  room.release("n1", 1000);
  CHECK(room.granted_millicores() == 0);
  CHECK(room.place_in_spare(1000) == "n1");
}

TEST_CASE("a copy is independent") {
  Room room({{"n1", 1000, 0, true}});
  Room copy = room;
  CHECK(copy.place_in_spare(1000));
  CHECK(room.place_in_spare(1000) == "n1");
}

TEST_CASE("a cluster without nodes has room for nothing") {
  Room room({});
  CHECK(room.place_in_spare(1) == std::nullopt);
  CHECK_FALSE(room.knows("n1"));
}

}  // namespace
}  // namespace sluice::scheduler
