#include "scheduler/model/name_index.h"

#include <string>
#include <vector>

#include "src/base/testing/catch.h"

namespace sluice::scheduler {
namespace {

TEST_CASE("an index without names knows none") {
  const NameIndex index(0);
  CHECK(index.position_of("n") == kNowhere);
  CHECK(index.position_of("") == kNowhere);
}

TEST_CASE("every name is found where it was put, however many there are; others are nowhere") {
  for (const int count : {1, 2, 3, 7, 8, 20, 21, 1000}) {
    CAPTURE(count);
    std::vector<std::string> names;
    for (int i = 0; i < count; ++i) names.push_back("node-" + std::to_string(i) + ".pool.cluster.local");
    NameIndex index(names.size());
    for (int i = 0; i < count; ++i) index.add(names[i], count - i);
    for (int i = 0; i < count; ++i) CHECK(index.position_of(names[i]) == count - i);
    for (int i = 0; i < count; ++i) CHECK(index.position_of(names[i].substr(1)) == kNowhere);
    CHECK(index.position_of("") == kNowhere);
  }
}

TEST_CASE("the empty name is a name") {
  NameIndex index(2);
  index.add("", 4);
  index.add("n", 5);
  CHECK(index.position_of("") == 4);
  CHECK(index.position_of("n") == 5);
}

TEST_CASE("an index that is full to what was promised still ends its searches") {
  NameIndex index(4);
  for (int i = 0; const char* name : {"a", "b", "c", "d"}) index.add(name, i++);
  CHECK(index.position_of("e") == kNowhere);
  CHECK(index.position_of("d") == 3);
}

}  // namespace
}  // namespace sluice::scheduler
