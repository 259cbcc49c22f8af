// Reading goes on after an error, and the first one is told by file, line and field.
#include "src/base/yaml_reader.h"

#include "src/base/testing/catch.h"

namespace sluice {
namespace {

// Reads the same fields from any text; the first error, or "".
struct Read {
  double number = 7;
  int whole = 7;
  bool flag = false;
  std::string text = "before";
  std::vector<std::string> texts = {"before"};
  std::vector<std::string> inner;
  std::vector<std::pair<std::string, double>> weights;
  std::string error;

  explicit Read(std::string_view yaml) {
    const auto file = YamlFile::parse(yaml, "f.yaml");
    if (!file.ok()) {
      error = file.error().message();
      return;
    }
    YamlMap map = (*file)->root();
    map.number("number", number, 0, 10);
    map.integer("whole", whole, -5, 5000);
    map.boolean("flag", flag);
    map.text("text", text);
    map.texts("texts", texts);
    map.map("map", [&](YamlMap& m) {
      std::string name;
      m.require("name");
      m.text("name", name);
      inner.push_back(name);
    });
    map.each("list", [&](YamlMap& m) {
      std::string name;
      m.text("name", name);
      inner.push_back(name);
    });
    map.numbers("weights", 0, 1, [&](const std::string& name, double value) { weights.emplace_back(name, value); });
    map.finish();
    if ((*file)->error()) error = (*file)->error()->message();
  }
};

TEST_CASE("What is there is read, and what is not there keeps its default") {
  const Read all(
      "number: 2.5\nwhole: -3\nflag: true\ntext: some words\nmap: {name: m}\nlist: [{name: a}, {name: b}]\n"
      "weights: {x: 0.25, y: 1}\ntexts: [one, \"2\"]\n");
  CHECK(all.error.empty());
  CHECK(all.number == 2.5);
  CHECK(all.whole == -3);
  CHECK(all.flag);
  CHECK(all.text == "some words");
  CHECK(all.texts == std::vector<std::string>{"one", "2"});
  CHECK(all.inner == std::vector<std::string>{"m", "a", "b"});
  CHECK(all.weights == std::vector<std::pair<std::string, double>>{{"x", 0.25}, {"y", 1}});

  const Read none("{}\n");
  CHECK(none.error.empty());
  CHECK(none.number == 7);
  CHECK(none.whole == 7);
  CHECK(none.text == "before");
  CHECK(none.texts == std::vector<std::string>{"before"});
  CHECK(none.inner.empty());
}

TEST_CASE("Numbers may be written as people write them") {
  struct Row {
    const char* text;
    double want;
  };
  for (const Row& row : {Row{"1e1", 10}, Row{"0.50", 0.5}, Row{"\"3\"", 3}, Row{"0", 0}, Row{"10", 10}}) {
    CAPTURE(row.text);
    const Read read(std::string("number: ") + row.text + "\n");
    CHECK(read.error.empty());
    CHECK(read.number == row.want);
  }
}

TEST_CASE("Every mistake is told by file, line and field, and leaves the default") {
  struct Row {
    const char* situation;
    const char* text;
    const char* want;
  };
  const Row rows[] = {
      {"no YAML", "a: [1\nb: 2\n", "f.yaml:2: "},
      {"a tab", "a:\n\tb: 1\n", "f.yaml:2: "},
      {"nothing at all", "", "f.yaml:1: not a YAML mapping"},
      {"a list", "- 1\n", "f.yaml:1: not a YAML mapping"},
      {"a word", "hello\n", "f.yaml:1: not a YAML mapping"},
      {"a word for a number", "\nnumber: much\n", "f.yaml:2: number: not a number"},
      {"a number with a unit", "number: 5s\n", "f.yaml:1: number: not a number"},
      {"a list for a number", "number: [5]\n", "f.yaml:1: number: not a number"},
      {"no value", "number:\ntext: x\n", "f.yaml:1: number: not a number"},
      {"infinity", "number: .inf\n", "f.yaml:1: number: not a number"},
      {"below", "number: -0.1\n", "f.yaml:1: number: -0.1 is not within"},
      {"above", "number: 10.1\n", "f.yaml:1: number: 10.1 is not within"},
      {"half", "whole: 0.5\n", "f.yaml:1: whole: not a whole number"},
      {"too much", "whole: 5001\n", "f.yaml:1: whole: 5001 is not within"},
      {"yes", "flag: yes\n", "f.yaml:1: flag: neither true nor false"},
      {"a mapping for a flag", "flag: {}\n", "f.yaml:1: flag: neither true nor false"},
      {"a list for a text", "text: [a]\n", "f.yaml:1: text: not a text"},
      {"a text for a list of texts", "texts: a\n", "f.yaml:1: texts: not a list of texts"},
      {"a mapping in a list of texts", "texts: [{a: b}]\n", "f.yaml:1: texts: not a list of texts"},
      {"a list for a mapping", "map: [a]\n", "f.yaml:1: map: not a mapping"},
      {"a mapping for a list", "list: {a: 1}\n", "f.yaml:1: list: not a list"},
      {"a word in a list", "list:\n  - {name: a}\n  - b\n", "f.yaml:3: list[1]: not a mapping"},
      {"something is missing", "map:\n  nam: x\n", "f.yaml:2: map: \"name\" is missing"},
      {"an unknown field", "number: 1\nnumbr: 2\n", "f.yaml:2: numbr: there is no such field"},
      {"the same, deeper", "map:\n  name: x\n  nick: y\n",
       "f.yaml:3: map.nick: there is no such field; known here: name"},
      {"the same, in a list", "list:\n  - name: x\n  - nick: y\n", "f.yaml:3: list[1].nick: there is no such field"},
      {"a key that is no word", "[1]: 2\n", "f.yaml:1: "},
      {"a field twice", "number: 1\ntext: a\nnumber: 2\n", "f.yaml:3: number: given twice"},
      {"a weight out of bounds", "weights:\n  x: 1\n  y: 2\n", "f.yaml:3: weights.y: 2 is not within"},
      {"of two mistakes the one that is read first", "text: [a]\nflag: maybe\n", "f.yaml:2: flag"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    const Read read(row.text);
    CHECK_THAT(read.error, Catch::StartsWith(row.want));
    CHECK(read.whole == 7);
    CHECK_FALSE(read.flag);
  }
}

TEST_CASE("The bounds are told as people write numbers") {
  CHECK(Read("number: 11\n").error == "f.yaml:1: number: 11 is not within 0 .. 10");
  CHECK(Read("whole: 9999\n").error == "f.yaml:1: whole: 9999 is not within -5 .. 5000");
}

}  // namespace
}  // namespace sluice
