#include "src/pipeline/torch_random.h"

#include <array>
#include <set>

#include "src/base/testing/catch.h"

namespace sluice::pipeline {
namespace {

// What torch 2.15 draws after torch.manual_seed(seed), on a processor with fused multiply-add.
struct TorchDraws {
  std::uint32_t seed;
  std::array<std::int64_t, 3> randint_large;  // torch.randint(0, 2**28 - 1, (1,))
  std::array<float, 4> uniform;               // torch.empty(1).uniform_(0.08, 1.0)
  std::array<float, 2> rand;                  // torch.rand(1)
  std::array<std::int64_t, 4> randint_small;  // torch.randint(-3, 98, (1,))
  float draw_1001;                            // torch.rand(1), the 1001st: the generator has renewed its state
};

constexpr std::array kTorch{
    TorchDraws{0,
               {209652404, 130329144, 118924928},
               {0x1.12b77ap-1F, 0x1.92d2bep-1F, 0x1.4a8baep-3F, 0x1.9c9b48p-3F},
               {0x1.fc2abp-2F, 0x1.89545ep-1F},
               {61, 58, 11, 39},
               0x1.d4789cp-2F},
    TorchDraws{1,
               {180483115, 256344314, 140980119},
               {0x1.8dd5b6p-1F, 0x1.590d9ep-2F, 0x1.cda4bcp-2F, 0x1.83069ap-1F},
               {0x1.83e84ap-1F, 0x1.1e03acp-2F},
               {20, 22, 34, 97},
               0x1.94efep-2F},
    TorchDraws{12345,
               {234574320, 65089011, 16645410},
               {0x1.f76378p-1F, 0x1.c74a36p-1F, 0x1.fc4c9cp-1F, 0x1.02242p-1F},
               {0x1.f6a3c4p-1F, 0x1.c25bcap-1F},
               {95, 58, 93, -3},
               0x1.4d5606p-1F},
    TorchDraws{4294967295,
               {150890916, 210911523, 160558106},
               {0x1.fd144cp-1F, 0x1.361172p-1F, 0x1.3574e4p-1F, 0x1.011cecp-3F},
               {0x1.fcd346p-1F, 0x1.248244p-1F},
               {22, 66, 14, 22},
               0x1.01cc4p-6F},
};

TEST_CASE("a seed gives torch's floats and integers in torch's order") {
  for (const TorchDraws& want : kTorch) {
    CAPTURE(want.seed);
    TorchRandom large(want.seed);
    for (const std::int64_t number : want.randint_large) CHECK(large.randint(0, (1 << 28) - 1) == number);
    TorchRandom uniform(want.seed);
    for (const float number : want.uniform) CHECK(uniform.uniform(0.08F, 1.0F) == number);
    TorchRandom unit(want.seed);
    for (const float number : want.rand) CHECK(unit.rand() == number);
    TorchRandom small(want.seed);
    for (const std::int64_t number : want.randint_small) CHECK(small.randint(-3, 98) == number);
    TorchRandom renewed(want.seed);
    for (int i = 0; i < 1000; ++i) static_cast<void>(renewed.rand());
    CHECK(renewed.rand() == want.draw_1001);
  }
}

TEST_CASE("the order of four is torch.randperm's, which draws three numbers") {
  // torch.manual_seed(seed); torch.randperm(4), torch.rand(1)
  struct Case {
    std::uint32_t seed;
    std::array<int, 4> want;
    float want_next;
  };
  for (const Case& c : {Case{0u, {0, 1, 3, 2}, 0x1.0e66000000000p-3F}, Case{1u, {1, 3, 2, 0}, 0x1.7828900000000p-1F},
                        Case{12345u, {2, 1, 3, 0}, 0x1.d822040000000p-2F}}) {
    CAPTURE(c.seed);
    TorchRandom random(c.seed);
    CHECK(random.permutation_of_four() == c.want);
    CHECK(random.rand() == c.want_next);
  }
}

TEST_CASE("a choice among one still consumes a draw") {
  TorchRandom random(0);
  CHECK(random.randint(5, 6) == 5);
  CHECK(random.rand() == kTorch[0].rand[1]);
}

TEST_CASE("draws stay inside their range and reach all of it") {
  TorchRandom random(3);
  std::set<std::int64_t> seen;
  for (int i = 0; i < 1000; ++i) {
    seen.insert(random.randint(-2, 3));
    const float uniform = random.uniform(-1.0F, 2.0F);
    CHECK((uniform >= -1.0F && uniform < 2.0F));
  }
  CHECK(seen == std::set<std::int64_t>{-2, -1, 0, 1, 2});
}

}  // namespace
}  // namespace sluice::pipeline
