// torchvision's TrivialAugmentWide, RandAugment (one operation for each of its num_ops) and AutoAugment, v1 and v2. The
// client sends the magnitudes, as its own torch computes them.
#include <array>
#include <utility>
#include <vector>

#include "src/pipeline/ops/all_ops.h"
#include "src/pipeline/ops/augmentation.h"
#include "src/pipeline/ops/fields.h"

namespace sluice::pipeline {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxChoices = 64;

class ImageOp : public Op {
 public:
  ValueKind takes() const override { return ValueKind::kImage; }
  ValueType result_of(const ValueType& input) const override { return input; }
};

// One change with one magnitude, always.
class Augment final : public ImageOp {
 public:
  explicit Augment(Augmentation augmentation) : augmentation_(std::move(augmentation)) {}

  bool draws() const override { return false; }
  Result<void> change(PlannedImage& image, TorchRandom& /*random*/) const override {
    return augmentation_.apply(augmentation_.magnitudes().front(), {}, image);
  }

 private:
  Augmentation augmentation_;
};

struct Style {
  AffineStyle affine;
  int generation = 1;
};

Style read_style(JsonReader& reader) { return {read_affine_style(reader), read_generation(reader)}; }

// One of many changes. Its magnitude and sign are drawn if there is a choice.
class RandomAugment final : public ImageOp {
 public:
  RandomAugment(std::vector<Augmentation> choices, Style style) : choices_(std::move(choices)), style_(style) {}

  Result<void> change(PlannedImage& image, TorchRandom& random) const override {
    const Augmentation& chosen = choices_[index_below(choices_.size(), random)];
    const std::vector<double>& magnitudes = chosen.magnitudes();
    double magnitude = magnitudes[magnitudes.size() == 1 ? 0 : index_below(magnitudes.size(), random)];
    if (chosen.is_signed() && turns_sign(random)) magnitude = -magnitude;
    return chosen.apply(magnitude, style_.affine, image);
  }

 private:
  static std::size_t index_below(std::size_t count, TorchRandom& random) {
    return static_cast<std::size_t>(random.randint(0, static_cast<std::int64_t>(count)));
  }
  bool turns_sign(TorchRandom& random) const {
    return style_.generation == 1 ? random.randint(0, 2) == 1 : random.rand() <= 0.5F;
  }

  std::vector<Augmentation> choices_;
  Style style_;
};

// A change that an AutoAugment policy makes with a probability.
struct PolicyStep {
  Augmentation augmentation;
  float probability = 0;
};
using Policy = std::array<PolicyStep, 2>;

class AutoAugment final : public ImageOp {
 public:
  AutoAugment(std::vector<Policy> policies, Style style) : policies_(std::move(policies)), style_(style) {}

  Result<void> change(PlannedImage& image, TorchRandom& random) const override {
    const auto number = random.randint(0, static_cast<std::int64_t>(policies_.size()));
    const Policy& policy = policies_[static_cast<std::size_t>(number)];
    return style_.generation == 1 ? run_first_generation(policy, image, random)
                                  : run_second_generation(policy, image, random);
  }

 private:
  // Draws everything first, also what it does not use.
  Result<void> run_first_generation(const Policy& policy, PlannedImage& image, TorchRandom& random) const {
    const std::array chances{random.rand(), random.rand()};
    const std::array signs{random.randint(0, 2), random.randint(0, 2)};
    for (std::size_t i = 0; i < policy.size(); ++i) {
      if (chances[i] <= policy[i].probability) SLUICE_TRY_VOID(run(policy[i].augmentation, signs[i] == 0, image));
    }
    return {};
  }

  Result<void> run_second_generation(const Policy& policy, PlannedImage& image, TorchRandom& random) const {
    for (const PolicyStep& step : policy) {
      if (random.rand() > step.probability) continue;
      const bool turns = step.augmentation.is_signed() && random.rand() <= 0.5F;
      SLUICE_TRY_VOID(run(step.augmentation, turns, image));
    }
    return {};
  }

  Result<void> run(const Augmentation& augmentation, bool turns_sign, PlannedImage& image) const {
    const double magnitude = augmentation.magnitudes().front();
    return augmentation.apply(augmentation.is_signed() && turns_sign ? -magnitude : magnitude, style_.affine, image);
  }

  std::vector<Policy> policies_;
  Style style_;
};

// Calls read(element, path) for each element of the list "NAME".
template <typename Read>
void read_list(JsonReader& reader, const char* name, Read read) {
  const json* list = reader.find(name);
  if (list == nullptr || !list->is_array() || list->empty() || list->size() > kMaxChoices)
    return reader.fail(name, list == nullptr ? "is missing" : "must be a list of 1 to " + std::to_string(kMaxChoices));
  for (std::size_t i = 0; i < list->size() && !reader.error(); ++i)
    read((*list)[i], std::string(name) + "[" + std::to_string(i) + "]");
}

Augmentation read_augmentation(const json& fields, const std::string& path, JsonReader& outer) {
  JsonReader reader(fields, "");
  Augmentation augmentation = Augmentation::read(reader);
  reader.refuse_unknown_fields(kUnknownField);
  if (reader.error()) outer.fail(path, reader.error()->message());
  return augmentation;
}

PolicyStep read_step(const json& fields, const std::string& path, JsonReader& outer) {
  JsonReader reader(fields, "");
  double probability = 0;
  reader.required("p", probability, 0.0, 1.0);
  PolicyStep step{Augmentation::read(reader), static_cast<float>(probability)};
  if (step.augmentation.magnitudes().size() != 1) reader.fail("magnitudes", "must be one number in a policy");
  reader.refuse_unknown_fields(kUnknownField);
  if (reader.error()) outer.fail(path, reader.error()->message());
  return step;
}

}  // namespace

OpPointer parse_augment(JsonReader& reader) {
  Augmentation augmentation = Augmentation::read(reader);
  if (augmentation.magnitudes().size() != 1 || augmentation.is_signed())
    reader.fail("magnitudes", "must be one number, without a sign to draw");
  return std::make_unique<Augment>(std::move(augmentation));
}

OpPointer parse_random_augment(JsonReader& reader) {
  std::vector<Augmentation> choices;
  read_list(reader, "choices", [&](const json& fields, const std::string& path) {
    choices.push_back(read_augmentation(fields, path, reader));
  });
  return std::make_unique<RandomAugment>(std::move(choices), read_style(reader));
}

OpPointer parse_auto_augment(JsonReader& reader) {
  std::vector<Policy> policies;
  read_list(reader, "policies", [&](const json& steps, const std::string& path) {
    if (!steps.is_array() || steps.size() != 2) return reader.fail(path, "must be two changes");
    policies.push_back({read_step(steps[0], path + "[0]", reader), read_step(steps[1], path + "[1]", reader)});
  });
  return std::make_unique<AutoAugment>(std::move(policies), read_style(reader));
}

}  // namespace sluice::pipeline
