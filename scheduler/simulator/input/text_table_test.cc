// Lines, fields and columns of text files, and tables for terminals.
#include "scheduler/simulator/input/text_table.h"

#include "src/base/testing/catch.h"

namespace sluice::simulator {
namespace {

std::vector<std::string> fields(std::string_view text, char separator, std::size_t line = 0) {
  const auto lines = split_lines(text, separator);
  REQUIRE(lines.size() > line);
  return {lines[line].fields.begin(), lines[line].fields.end()};
}

TEST_CASE("Fields are split at their separator, blanks in any number") {
  struct Row {
    const char* situation;
    const char* text;
    char separator;
    std::vector<std::string> want;
  };
  const Row rows[] = {
      {"blanks", "1 2  3\n", ' ', {"1", "2", "3"}},
      {"tabs count as blanks", " 1\t2 \n", ' ', {"1", "2"}},
      {"commas keep empty fields", "a,,c,\n", ',', {"a", "", "c", ""}},
      {"tabs keep empty fields", "a\t\tc\n", '\t', {"a", "", "c"}},
      {"a file from Windows", "a,b\r\n", ',', {"a", "b"}},
      {"no newline at the end", "a b", ' ', {"a", "b"}},
      {"a remark after blanks", "1 2 # 3\n", ' ', {"1", "2"}},
      {"a remark after the last field", "1 2#3 4\n", ' ', {"1", "2#3", "4"}},
      {"a '#' between commas is a field", "a,#b,c\n", ',', {"a", "#b", "c"}},
      {"blanks inside of commas", "a b,c\n", ',', {"a b", "c"}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    CHECK(fields(row.text, row.separator) == row.want);
  }
}

TEST_CASE("Comments and empty lines are passed over, and counted") {
  const auto lines = split_lines("# head\n\n  \n1 2\n# tail\n3 4\n", ' ');
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].number == 4);
  CHECK(lines[1].number == 6);
  CHECK(split_lines("", ',').empty());
  CHECK(split_lines("\n\n", ',').empty());
}

TEST_CASE("A number is a number to its last character") {
  struct Row {
    const char* text;
    std::optional<double> want;
  };
  const Row rows[] = {{"1", 1},   {"-2.5", -2.5}, {"1e3", 1000}, {"", {}},  {"1s", {}},  {" 1", {}},   {"1 ", {}},
                      {"+1", {}}, {"nan", {}},    {"inf", {}},   {"-", {}}, {"1,5", {}}, {"1e999", {}}};
  for (const Row& row : rows) {
    CAPTURE(row.text);
    CHECK(number_of(row.text) == row.want);
  }
}

TEST_CASE("A field that is missing, no number or out of range is told by file, line and name") {
  const TextLine line{12, {"3", "x", "-1"}};
  struct Row {
    std::size_t index;
    const char* want;
  };
  const Row rows[] = {
      {1, "f:12: speed \"x\" is not a number"}, {2, "f:12: speed -1 is out of range"}, {3, "f:12: speed is missing"}};
  for (const Row& row : rows) {
    const auto value = number_field("f", line, row.index, "speed", 0, 10);
    REQUIRE_FALSE(value.ok());
    CHECK(value.error().message() == row.want);
    CHECK(value.error().code() == ErrorCode::kInvalidArgument);
  }
  CHECK(*number_field("f", line, 0, "speed", 0, 10) == 3);
}

TEST_CASE("What a message shows of a field fits into a line, whatever was in the file") {
  const TextLine line{1, {std::string_view("a\0\x1B[2J\x7F", 7), "1234567890123456789012345678901234567890x"}};
  CHECK(number_field("f", line, 0, "n", 0, 1).error().message() == "f:1: n \"a??[2J?\" is not a number");
  CHECK(number_field("f", line, 1, "n", 0, 1).error().message() ==
        "f:1: n \"1234567890123456789012345678901234567890...\" is not a number");
}

TEST_CASE("Columns are found wherever they stand; a missing one is named") {
  const auto header = split_lines("# pods\na,b,c\n", ',')[0];
  CHECK(*columns("f", header, {"c", "a"}) == std::vector<std::size_t>{2, 0});
  CHECK(columns("f", header, {"a", "d"}).error().message() == "f:2: no column \"d\"");
}

}  // namespace
}  // namespace sluice::simulator
