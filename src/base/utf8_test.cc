#include "src/base/utf8.h"

#include "src/base/testing/catch.h"

namespace sluice {
namespace {

TEST_CASE("foreign text becomes UTF-8 of a bounded size") {
  struct Case {
    const char* name;
    std::string text;
    std::size_t max_bytes;
    std::string want;
  };
  const std::string unknown = "\xEF\xBF\xBD";
  const Case test = GENERATE_COPY(
      Case{"plain text stays", "abc", 3, "abc"}, Case{"a longer text is cut", "abcd", 3, "abc"},
      Case{"characters of 2, 3 and 4 bytes stay", "é€😀", 9, "é€😀"}, Case{"no character is cut in two", "a€", 3, "a"},
      Case{"Latin-1 is not UTF-8",
           "\xFC"
           "ber",
           16, unknown + "ber"},
      Case{"a body that ends within a character", "x\xE2\x82", 16, "x" + unknown + unknown},
      Case{"an overlong slash", "\xC0\xAF", 16, unknown + unknown},
      Case{"half of a surrogate pair", "\xED\xA0\x80", 16, unknown + unknown + unknown},
      Case{"beyond the last character", "\xF4\x90\x80\x80", 16, unknown + unknown + unknown + unknown},
      Case{"a replacement that does not fit is left out", "ab\xFF", 4, "ab"}, Case{"nothing", "", 0, ""});
  INFO(test.name);
  CHECK(cut_text(test.text, test.max_bytes) == test.want);
}

TEST_CASE("what came in place of an answer is named") {
  struct Case {
    std::string_view body;
    std::string_view want;
  };
  const Case test =
      GENERATE(Case{"", ""}, Case{"soon", "'soon'"}, Case{"a long story", "'a long s'"},
               Case{"<html><title>Sign in</title>", "web page 'Sign in'"},
               Case{"<title>Sign in here</title>", "web page 'Sign in '"}, Case{"</title><title>", "'</title>'"},
               Case{"<title>", "'<title>'"}, Case{"\x1f\x8b\x08", "bytes of gzip, which nothing here asks for"});
  CHECK(quote_body(test.body, 8) == test.want);
}

}  // namespace
}  // namespace sluice
