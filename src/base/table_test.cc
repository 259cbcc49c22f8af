#include "src/base/table.h"

#include "src/base/testing/catch.h"

namespace sluice {
namespace {

TEST_CASE("a table is as wide as its widest cells, names to the left, numbers to the right") {
  Table table({"policy", "JCT"});
  CHECK(table.empty());
  table.add({"static", "1.00"});
  table.add({"a long name", "12345.67"});
  CHECK_FALSE(table.empty());
  CHECK(table.text() ==
        "policy            JCT\n"
        "static           1.00\n"
        "a long name  12345.67\n");
}

TEST_CASE("text columns are aligned to the left, without trailing spaces") {
  Table table({"A", "B", "C"}, {0, 2});
  table.add({"a", "1000", "words"});
  table.add({"aa", "1", "w"});
  CHECK(table.text() == "A      B  C\na   1000  words\naa     1  w\n");
}

TEST_CASE("a line is cut at the terminal's width") {
  Table table({"A", "B"}, {0, 1});
  table.add({"a", "a long explanation"});
  CHECK(table.text(12) == "A  B\na  a long...\n");
  CHECK(table.text(0) == "A  B\na  a long explanation\n");
}

}  // namespace
}  // namespace sluice
