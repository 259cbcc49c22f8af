// A cache that chooses the form by what samples take: the samples are the files', before, while and after it chooses.
#include "src/cache/chosen_form_files.h"

#include <set>
#include <thread>

#include "src/base/logging.h"
#include "src/base/testing/catch.h"
#include "src/cache/testing/cached_files_fixture.h"
#include "src/cache/testing/node.h"
#include "src/cache/testing/picture_pipelines.h"
#include "src/pipeline/jpeg_decoder.h"
#include "src/pipeline/testing/jpeg_encoder.h"

namespace sluice::cache {
namespace {

using pipeline::FileForm;
using pipeline::ImageContent;
using pipeline::NativePipeline;
using testing::Bytes;
using testing::epoch_of;
using testing::kRandomFromTheStart;
using testing::kValidation;
using testing::path_of;

constexpr int kPictures = 20;

struct ChoosingFiles : testing::CachedFilesFixture {
  ChoosingFiles() {
    source->takes = std::chrono::nanoseconds(0);
    for (int i = 0; i < kPictures; ++i) source->write(path_of(i), pipeline::testing::encode_picture({90 + i, 120}, {}));
    clock.advance(std::chrono::hours(1));
    start(Keep::kAutomatic, {.bytes = 10 << 20});
  }
  const Counters& counters() const { return files->counters(); }
  std::unique_ptr<ChosenFormFiles> chooser(std::size_t samples = kPictures) const {
    return std::make_unique<ChosenFormFiles>(*files, samples);
  }
};

// Trials as a pipeline reports them, of samples so slow that the CPU which the test itself takes is nothing.
struct Costs {
  double file = 1;
  double coefficients = 0.5;
  double output = 0.5;
  double wait = 0;

  pipeline::SampleTrial trial() const {
    return {wait,
            {Bytes(8000), 0, file},
            pipeline::TrialOfForm{Bytes(16000), 0.1, coefficients},
            pipeline::TrialOfForm{Bytes(3000), 0.1, output}};
  }
};

void choose_by(const ChosenFormFiles& files, const Costs& costs) {
  for (std::size_t i = 0; i < ChosenFormFiles::kTrials; ++i) {
    REQUIRE(files.note({FileForm::kFile, std::nullopt, true, costs.wait}, costs.file));
    files.note_trial(costs.trial(), 0);
  }
}

TEST_CASE("after its trials a pipeline has chosen what is cheapest") {
  const ChoosingFiles cache;
  struct Case {
    Costs costs;
    Keep form;
  };
  for (const Case& c : {Case{{.coefficients = 0.2, .output = 0.8}, Keep::kTranscoded},
                        Case{{.coefficients = 0.8, .output = 0.2}, Keep::kOutput},
                        Case{{.coefficients = 0.98, .output = 0.98}, Keep::kNothing},
                        Case{{.coefficients = 0.98, .output = 0.98, .wait = 20.0}, Keep::kSource}}) {
    const auto files = cache.chooser();
    CHECK(cache.counters().undecided_pipelines == 1);
    choose_by(*files, c.costs);
    REQUIRE(files->choice().has_value());
    CHECK(name_of(files->choice()->form) == name_of(c.form));
    CHECK(cache.counters().undecided_pipelines == 0);
    CHECK(cache.counters().source.pipelines + cache.counters().coefficients.pipelines +
              cache.counters().outputs.pipelines + cache.counters().uncached_pipelines ==
          1);
    CHECK_FALSE(files->note({FileForm::kFile, std::nullopt, true, 0}, 1));
  }
  CHECK(cache.counters().outputs.pipelines == 0);  // it has ended
}

TEST_CASE("where a record is a question to the node's cache, a form has to save more than that takes") {
  const ChoosingFiles cache;
  for (const bool is_slow : {false, true}) {
    sluice::testing::ManualClock clock;
    testing::Node node(clock);
    node.start();
    if (is_slow) node.takes = std::chrono::milliseconds(900);
    const CachedFiles files(cache.source, node_cache_at(std::make_unique<testing::NodeLine>(node), 1, clock), "team",
                            clock, Keep::kAutomatic);
    REQUIRE(files.wait_until_opened());
    Bytes bytes;
    REQUIRE(files.read(path_of(0), bytes).ok());  // it asks
    const ChosenFormFiles chooser(files, kPictures);
    choose_by(chooser, {.coefficients = 0.8, .output = 0.2});
    REQUIRE(chooser.choice());
    CHECK(name_of(chooser.choice()->form) == name_of(is_slow ? Keep::kNothing : Keep::kOutput));
  }
}

TEST_CASE("trials take a small part of a job's time, one thread at a time") {
  const ChoosingFiles cache;
  const auto files = cache.chooser(100'000);
  const ImageContent content{FileForm::kFile, std::nullopt, true, 0};
  REQUIRE(files->note(content, 1));
  CHECK_FALSE(files->note(content, 1));  // another thread, while the trial runs
  files->note_trial(Costs().trial(), 100);
  int samples = 2;
  while (!files->note(content, 1)) ++samples;
  CHECK(samples == 100 * ChosenFormFiles::kSecondsPerTrialSecond - 1);
}

TEST_CASE("a pipeline whose samples cannot be tried keeps what is slow to read") {
  const ChoosingFiles cache;
  const auto files = cache.chooser();
  for (std::size_t i = 0; i < ChosenFormFiles::kTrials; ++i) {
    REQUIRE(files->note({FileForm::kFile, std::nullopt, true, 20.0}, 20.0));
    files->note_trial(std::nullopt, 0);
  }
  REQUIRE(files->choice().has_value());
  CHECK(files->choice()->form == Keep::kSource);
}

TEST_CASE("a form whose records turn out slow is given up after an epoch, and no other is taken for noise") {
  const ChoosingFiles cache;
  const auto files = cache.chooser(100);
  choose_by(*files, {.output = 0.2});
  REQUIRE(files->choice()->form == Keep::kOutput);
  for (int i = 0; i < 100; ++i) files->note({FileForm::kOutput, std::nullopt, false, 0}, 0);
  CHECK(files->choice()->form == Keep::kOutput);
  for (int i = 0; i < 100; ++i) files->note({FileForm::kOutput, std::nullopt, false, 50}, 0);
  CHECK(files->choice()->form == Keep::kTranscoded);
}

TEST_CASE("a source that becomes slow is kept from then on") {
  const ChoosingFiles cache;
  const auto files = cache.chooser(1000);
  choose_by(*files, {.coefficients = 1, .output = 1});
  REQUIRE(files->choice()->form == Keep::kNothing);
  for (int i = 0; i < 1000; ++i) files->note({FileForm::kFile, std::nullopt, true, 20.0}, 20.0);
  CHECK(files->choice()->form == Keep::kSource);
}

TEST_CASE("what costs much to make is made when the job has shown that it goes on") {
  const ChoosingFiles cache;
  const auto files = cache.chooser(100);
  for (std::size_t i = 0; i < ChosenFormFiles::kTrials; ++i) {
    REQUIRE(files->note({FileForm::kFile, std::nullopt, true, 0}, 1));
    pipeline::SampleTrial trial = Costs{.coefficients = 0.8}.trial();
    trial.coefficients->making_seconds = 0.5;
    trial.output.reset();
    files->note_trial(trial, 0);
  }
  CHECK(files->choice()->form == Keep::kNothing);
  int epochs = 0;
  for (; files->choice()->form == Keep::kNothing && epochs < 20; ++epochs)
    for (int i = 0; i < 100; ++i) files->note({FileForm::kFile, std::nullopt, true, 0}, 1);
  CHECK(epochs >= 3);
  CHECK(epochs < 8);
}

TEST_CASE("two forms share the files by their names, the same in each epoch") {
  if (pipeline::fast_jpeg_kernels() == nullptr) return;
  ChoosingFiles cache;
  cache.start(Keep::kAutomatic, {.bytes = 12'000'000});  // of 1,000 files of 8 KB, and of some as coefficients
  const auto files = cache.chooser(1000);
  for (std::size_t i = 0; i < ChosenFormFiles::kTrials; ++i) {
    REQUIRE(files->note({FileForm::kFile, std::nullopt, true, 20.0}, 20.0));
    pipeline::SampleTrial trial = Costs{.coefficients = 0.2, .wait = 20.0}.trial();
    trial.output.reset();
    files->note_trial(trial, 0);
  }
  const FormChoice choice = *files->choice();
  REQUIRE(choice.form == Keep::kTranscoded);
  REQUIRE(choice.rest == Keep::kSource);
  CHECK(choice.share == Approx(0.2).margin(0.01));
  const auto transcoded = [&] {
    std::set<int> found;
    for (int i = 0; i < kPictures; ++i) {
      Bytes bytes;
      const auto content = files->read_image(path_of(i), {}, bytes);
      REQUIRE(content.ok());
      if (content->form == FileForm::kCoefficients) found.insert(i);
    }
    return found;
  };
  const std::set<int> first = transcoded();
  CHECK(!first.empty());
  CHECK(first.size() < kPictures / 2);
  CHECK(transcoded() == first);
}

TEST_CASE("the log says in words what was chosen, once") {
  const ChoosingFiles cache;
  std::vector<std::string> lines;
  set_log_sink([&](std::string_view line) { lines.emplace_back(line); });
  const auto files = cache.chooser();
  choose_by(*files, {.output = 0.2});
  for (int i = 0; i < 10 * kPictures; ++i) files->note({FileForm::kOutput, std::nullopt, false, 0}, 0);
  set_log_sink(nullptr);
  REQUIRE(lines.size() == 1);
  CHECK_THAT(lines[0], Catch::Contains("of the files of a pipeline it keeps what the transforms before the first "
                                       "random one make of them"));
}

// ---- under a pipeline ----

struct Pipelines : ChoosingFiles {
  std::shared_ptr<const NativePipeline> plain(const char* ops) const {
    return testing::pipeline_of(ops, kPictures, source);
  }
  std::shared_ptr<const NativePipeline> cached(const char* ops) const {
    return testing::pipeline_of(ops, kPictures, testing::borrowed(*files));
  }
  // Epochs until a form is chosen, and some more; each compared with the files'.
  void run(const char* ops, int more = 4) const {
    const auto expected = plain(ops);
    const auto native = cached(ops);
    for (int epoch_number = 0, after = 0; after < more && epoch_number < 3000; ++epoch_number) {
      const auto seed = static_cast<std::uint32_t>(epoch_number);
      REQUIRE(epoch_of(*native, seed) == epoch_of(*expected, seed));
      after += counters().undecided_pipelines == 0 ? 1 : 0;
    }
    CHECK(counters().undecided_pipelines == 0);
    CHECK(counters().trials >= ChosenFormFiles::kTrials);
  }
};

TEST_CASE("samples are the files' while a form is tried, chosen, made and read", "[one thread]") {
  for (const char* ops : {kValidation, kRandomFromTheStart}) {
    for (const auto takes : {std::chrono::milliseconds(0), std::chrono::milliseconds(20)}) {
      Pipelines cache;
      cache.source->takes = takes;
      cache.run(ops);
      if (takes.count() == 0) continue;
      // Whatever was chosen, a slow source is not read again, also not by the next process.
      const int before = cache.source->reads;
      const auto native = cache.cached(ops);
      epoch_of(*native, 99);
      CHECK(cache.source->reads - before <= 2 * static_cast<int>(ChosenFormFiles::kTrials));
    }
  }
}

TEST_CASE("samples are the files' with a cache that is small, damaged, or whose disk refuses", "[one thread]") {
  Pipelines cache;
  SECTION("small") { cache.start(Keep::kAutomatic, {.bytes = 20'000}); }
  SECTION("a disk that refuses") { cache.disk->refuses_writes = true; }
  SECTION("damaged") {
    cache.run(kValidation);
    for (const auto& [name, file] : cache.disk->files)
      for (std::size_t at = 400; at < file->size(); at += 5'000) (*file)[at] ^= 4;
  }
  for (const char* ops : {kValidation, kRandomFromTheStart}) cache.run(ops);
}

TEST_CASE("what earlier processes kept is used before anything is chosen") {
  Pipelines cache;
  cache.source->takes = std::chrono::milliseconds(20);
  for (const Keep keep : {Keep::kSource, Keep::kTranscoded, Keep::kOutput}) {
    INFO(name_of(keep));
    cache.start(keep);
    epoch_of(*cache.cached(kValidation), 1);
    cache.start(Keep::kAutomatic);
    const int before = cache.source->reads;
    const auto native = cache.cached(kValidation);
    CHECK(epoch_of(*native, 2) == epoch_of(*cache.plain(kValidation), 2));
    const int trials = static_cast<int>(cache.counters().trials);
    CHECK(cache.source->reads - before == kPictures + trials);  // those of the comparison, and of the trials
  }
}

TEST_CASE("a pipeline without samples has nothing to choose") {
  const ChoosingFiles cache;
  REQUIRE(testing::pipeline_of(kValidation, 0, testing::borrowed(*cache.files)) != nullptr);
  CHECK(cache.counters().undecided_pipelines == 0);
}

TEST_CASE("many threads share one choice") {
  Pipelines cache;
  const Bytes expected = epoch_of(*cache.plain(kValidation), 5);
  const auto native = cache.cached(kValidation);
  std::vector<std::jthread> threads;
  std::atomic<int> wrong = 0;
  for (int thread = 0; thread < 4; ++thread)
    threads.emplace_back([&] {
      pipeline::Workspace workspace;
      Bytes sample(native->wire_sample_bytes());
      for (int epoch = 0; epoch < 100; ++epoch)
        for (std::size_t i = 0; i < kPictures; ++i) {
          const bool made =
              native->produce(static_cast<std::int64_t>(i), 5 + static_cast<std::uint32_t>(i), sample, workspace).ok();
          const auto from = expected.begin() + static_cast<std::ptrdiff_t>(i * sample.size());
          if (!made || !std::equal(sample.begin(), sample.end(), from)) ++wrong;
        }
    });
  threads.clear();
  CHECK(wrong == 0);
}

}  // namespace
}  // namespace sluice::cache
