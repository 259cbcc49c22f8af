#include "scheduler/decide/wording.h"

#include "src/base/testing/catch.h"

namespace sluice::scheduler {
namespace {

template <typename T>
std::string said(T value) {
  Text text;
  text << value;
  return text.take();
}

TEST_CASE("numbers have three digits, and are whole where they are large") {
  CHECK(said(Number{0}) == "0");
  CHECK(said(Number{0.7361}) == "0.736");
  CHECK(said(Number{12.345}) == "12.3");
  CHECK(said(Number{99.96}) == "100");
  CHECK(said(Number{1250.4}) == "1250");
  CHECK(said(Number{-3.5}) == "-3.5");
  CHECK(said(Number{1e20}) == "1e+20");
}

TEST_CASE("percent are rounded, workers counted") {
  CHECK(said(Percent{0.123}) == "12 %");
  CHECK(said(Percent{1.355}) == "136 %");
  CHECK(said(Percent{-0.001}) == "0 %");
  CHECK(said(Percent{0.0049}) == "0 %");
  CHECK(said(Percent{-0.126}) == "-13 %");
  CHECK(said(Workers{1}) == "1 worker");
  CHECK(said(Workers{-1}) == "-1 workers");
  CHECK(said(Workers{0}) == "0 workers");
}

}  // namespace
}  // namespace sluice::scheduler
