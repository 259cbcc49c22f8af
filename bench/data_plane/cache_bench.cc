// sluice-cache-bench MODE DIRECTORY [DELAY_MS [PIPELINE [EPOCHS [JOB [ANNOUNCES]]]]] < list of JPEG files, one a
// line: what the cache of source files costs and gives a native pipeline on one thread.
//   plain       without a cache
//   cached      through a cache of 10 GB in DIRECTORY
//   transcoded  the same, and the cache keeps coefficients of JPEG files
//   prefix      the same, and the cache keeps what the operations before the first random one make
//   auto        the same, and the cache chooses one of these forms
//   all         all of these, an epoch of each in turn, as the machine is not as busy all the time. Each has a folder
//               in DIRECTORY. `sample_seconds` of an epoch are CPU of a sample on average and the delays of
//               its reads, without finish(). `predicted` is what `auto` expects of the mode's form, as a part of
//               those of the last epoch
// DIRECTORY may be the socket of a sluice-cache, but for `all`: the records are there then.
// Prints one JSON object a line: of each epoch, with `all` of each mode, with a figure for each of its epochs.
// PIPELINE is one of train (RandomResizedCrop(224), flip), crop (Resize(256), RandomCrop(224), flip), validation
// (Resize(256), CenterCrop(224)) and tiny (RandomCrop(28), flip); all normalise to float32. EPOCHS: 3.
// JOB, a number: each epoch has an order of its own, which follows from it; the cache is told the job, but with -JOB it
// is not. Without it each epoch has the order of the list. ANNOUNCES, 1: the job tells the order of each epoch when it
// begins, 2: and of the one after.
// DELAY_MS is added to each read of a file, as a slow file system would. With 0 the files are as fast as the cache, and
// the source's bytes are not stored. With LINE and MEGABYTES_PER_SECOND in the environment the reads of all processes
// that name the file LINE come over one line of that width.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <set>
#include <system_error>
#include <thread>

#include "src/cache/cached_files.h"
#include "src/cache/chosen_form_files.h"
#include "src/cache/node_cache_client.h"
#include "src/cache/node_socket_line.h"
#include "src/cache/order/seeded_order.h"
#include "src/cache/segment_store.h"
#include "src/pipeline/native_pipeline.h"
#include "src/pipeline/seeds.h"
#include "src/pipeline/testing/specification.h"

namespace sluice::cache {
namespace {

const std::map<std::string, std::optional<Keep>> kModes{{"plain", std::nullopt},
                                                        {"cached", Keep::kSource},
                                                        {"transcoded", Keep::kTranscoded},
                                                        {"prefix", Keep::kOutput},
                                                        {"auto", Keep::kAutomatic}};
constexpr const char* kAll = "all";
constexpr std::uint64_t kPageCacheBytes = std::uint64_t{4} << 30;

struct Command {
  std::string mode;
  std::string directory;
  std::chrono::milliseconds delay{0};
  std::string pipeline = "train";
  int epochs = 3;
  int job = 0;
  int announces = 0;

  std::optional<JobId> told_job() const { return job > 0 ? std::optional<JobId>(job) : std::nullopt; }
};

EpochOrder order_of_epoch(int job, int epoch, std::size_t samples) {
  return {.seed = static_cast<std::uint64_t>(1000 * std::abs(job) + epoch), .length = samples};
}

// Of one epoch: the list's, or a new one for each epoch of a job.
std::vector<std::uint32_t> order_of(int job, int epoch, std::size_t samples) {
  std::vector<std::uint32_t> order(samples);
  std::iota(order.begin(), order.end(), 0U);
  if (job == 0) return order;
  return seeded_order(order_of_epoch(job, epoch, samples).seed, static_cast<std::uint32_t>(samples)).value();
}

// The line of a store that several processes share: its file says when it is free. Without one reads take no time.
class SharedLine {
 public:
  SharedLine() {
    const char* path = std::getenv("LINE");
    const char* width = std::getenv("MEGABYTES_PER_SECOND");
    if (path == nullptr || width == nullptr || std::atof(width) <= 0) return;
    nanoseconds_of_a_byte_ = 1e3 / std::atof(width);
    file_ = ::open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file_ < 0) throw std::system_error(errno, std::generic_category(), path);
  }
  SharedLine(const SharedLine&) = delete;
  SharedLine& operator=(const SharedLine&) = delete;
  ~SharedLine() {
    if (file_ >= 0) ::close(file_);
  }

  void carry(std::size_t bytes) const {
    using Clock = std::chrono::steady_clock;  // one for all processes of a machine
    if (file_ < 0) return;
    ::flock(file_, LOCK_EX);
    std::int64_t free_at = 0;
    if (::pread(file_, &free_at, sizeof(free_at), 0) != sizeof(free_at)) free_at = 0;
    const std::int64_t now = Clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
    free_at = std::max(free_at, now) + static_cast<std::int64_t>(nanoseconds_of_a_byte_ * static_cast<double>(bytes));
    if (::pwrite(file_, &free_at, sizeof(free_at), 0) != sizeof(free_at)) std::abort();
    ::flock(file_, LOCK_UN);
    std::this_thread::sleep_until(Clock::time_point(std::chrono::nanoseconds(free_at)));
  }

 private:
  int file_ = -1;
  double nanoseconds_of_a_byte_ = 0;
};

class DelayedFiles final : public pipeline::FileReader {
 public:
  explicit DelayedFiles(std::chrono::milliseconds delay) : delay_(delay) {}
  Result<void> read(const pipeline::FilePart& part, std::vector<std::uint8_t>& bytes) const override {
    ++reads;
    const auto started = std::chrono::steady_clock::now();
    if (delay_.count() > 0) std::this_thread::sleep_for(delay_);
    slept_seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
    SLUICE_TRY_VOID(files_->read(part, bytes));
    line_.carry(bytes.size());
    return {};
  }
  Result<pipeline::FileIdentity> identify(const std::string& path) const override { return files_->identify(path); }

  mutable int reads = 0;
  mutable double slept_seconds = 0;

 private:
  const std::chrono::milliseconds delay_;
  const SharedLine line_;
  const std::shared_ptr<const pipeline::FileReader> files_ = pipeline::make_system_file_reader();
};

// The operations on images, by the name of the pipeline; empty: no such name.
std::string image_ops(std::string_view name) {
  if (name == "train") {
    return R"({"op": "random_resized_crop", "size": [224, 224], "scale": [0.08, 1.0], "ratio": [0.75, 1.3333333333333333]},
        {"op": "random_horizontal_flip", "p": 0.5},)";
  }
  if (name == "crop") {
    return R"({"op": "resize", "size": [256]}, {"op": "random_crop", "size": [224, 224]},
        {"op": "random_horizontal_flip", "p": 0.5},)";
  }
  if (name == "validation") return R"({"op": "resize", "size": [256]}, {"op": "center_crop", "size": [224, 224]},)";
  if (name == "tiny") {
    return R"({"op": "random_crop", "size": [28, 28]}, {"op": "random_horizontal_flip", "p": 0.5},)";
  }
  return "";
}

std::string specification(const std::vector<std::string>& paths, std::string_view name) {
  nlohmann::json spec;
  spec["version"] = 2;
  spec["source"] = {{"kind", "image_files"}, {"root", ""}};
  spec["ops"] = nlohmann::json::parse(R"([{"op": "decode_rgb"}, )" + image_ops(name) + R"({"op": "to_tensor"},
      {"op": "normalize", "mean": [0.5, 0.5, 0.5], "std": [0.25, 0.25, 0.25]}])");
  std::vector<pipeline::testing::File> table;
  table.reserve(paths.size());
  for (const std::string& path : paths) table.push_back({path, 0});
  return pipeline::testing::specification(spec, table);
}

struct Epoch {
  // Of all bytes, whatever their order; a sample draws the same numbers in all epochs, so that it is the same for each.
  std::uint64_t sum = 0;
  double cpu_seconds = 0;
  double seconds = 0;
  double sample_seconds = 0;  // of one sample, from the file to the wire form: CPU, and what its source slept
  int source_reads = 0;
  std::uint64_t bytes_on_disk = 0;  // at its end
};

// A cache that tells what it expects of each form.
class TellingFiles final : public CachedFiles {
 public:
  using CachedFiles::CachedFiles;

  std::unique_ptr<const pipeline::PipelineFiles> for_pipeline(std::size_t samples) const override {
    auto files = CachedFiles::for_pipeline(samples);
    chosen_ = dynamic_cast<const ChosenFormFiles*>(files.get());
    return files;
  }
  // Of a sample that is made from the form; kNothing: without a cache. None: it says nothing of that.
  std::optional<double> expected_seconds(Keep form) const {
    if (chosen_ == nullptr) return std::nullopt;
    const FormTable table = chosen_->table();
    if (form == Keep::kNothing) return table.none_seconds;
    const auto& cost = table.forms[static_cast<std::size_t>(form)];
    return cost ? std::optional(cost->seconds) : std::nullopt;
  }

 private:
  mutable const ChosenFormFiles* chosen_ = nullptr;  // its pipeline's, which lives as long as the run
};

// One mode over the files.
class Run {
 public:
  Run(const Command& command, std::optional<Keep> keep, const std::string& directory,
      const std::vector<std::string>& paths)
      : command_(command), source_(std::make_shared<const DelayedFiles>(command.delay)) {
    std::shared_ptr<const pipeline::FileReader> files = source_;
    if (keep) {
      cache_ = std::make_shared<const TellingFiles>(source_, store_at(directory), "", clock_, *keep, kPageCacheBytes);
      if (!cache_->wait_until_opened()) std::exit(1);
      files = cache_;
    }
    auto parsed = pipeline::NativePipeline::parse(specification(paths, command.pipeline), files);
    if (!parsed.ok()) {
      std::cerr << parsed.error().to_string() << '\n';
      std::exit(1);
    }
    native_ = *parsed;
  }

  OpenStore store_at(const std::string& place) const {
    if (std::filesystem::is_socket(place)) return node_cache_at(line_to(place), command_.told_job(), clock_);
    return store_on(make_system_disk(place), {.bytes = 10'000'000'000}, clock_);
  }

  Epoch epoch(int number) {
    constexpr std::size_t kSlots = 64;  // as many as a batch has, so that tensors are not in the nearest cache
    const std::size_t tensor_bytes = native_->schema().fields()[0].sample_bytes;
    std::vector<std::uint8_t> pixels(native_->wire_sample_bytes());
    std::vector<std::byte> tensors(kSlots * tensor_bytes);
    const int reads = source_->reads;
    const double slept_seconds = source_->slept_seconds;
    const auto started = clock_.now();
    Epoch epoch;
    for (int ahead = 0; ahead < command_.announces; ++ahead) {
      EpochOrder order = order_of_epoch(command_.job, number + ahead, native_->sample_count());
      order.is_next = ahead > 0;
      native_->announce(order);
    }
    for (const std::uint32_t i : order_of(command_.job, number, native_->sample_count())) {
      const double before = thread_cpu_seconds();
      const auto made =
          native_->produce(static_cast<std::int64_t>(i), pipeline::sample_seed(1, 0, i), pixels, workspace_);
      epoch.sample_seconds += thread_cpu_seconds() - before;
      if (!made.ok()) std::cerr << made.error().to_string() << '\n';
      native_->finish(pixels, 0, std::span(tensors).subspan(i % kSlots * tensor_bytes, tensor_bytes));
      epoch.cpu_seconds += thread_cpu_seconds() - before;
      std::uint64_t sum_of_sample = i;
      for (const std::uint8_t byte : pixels) sum_of_sample = sum_of_sample * 31 + byte;
      epoch.sum += sum_of_sample;
    }
    epoch.seconds = std::chrono::duration<double>(clock_.now() - started).count();
    epoch.source_reads = source_->reads - reads;
    epoch.sample_seconds += source_->slept_seconds - slept_seconds;
    epoch.sample_seconds /= static_cast<double>(native_->sample_count());
    if (cache_) epoch.bytes_on_disk = cache_->counters().bytes_on_disk;
    return epoch;
  }

  std::optional<double> expected_seconds(Keep form) const { return cache_->expected_seconds(form); }

  // The form that its pipeline has chosen; empty: none.
  std::string chosen() const {
    if (!cache_) return "";
    const Counters& counters = cache_->counters();
    return counters.source.pipelines > 0         ? "source"
           : counters.coefficients.pipelines > 0 ? "transcoded"
           : counters.outputs.pipelines > 0      ? "prefix"
           : counters.uncached_pipelines > 0     ? "none"
                                                 : "";
  }

 private:
  const Command command_;
  const SystemClock clock_;
  const std::shared_ptr<const DelayedFiles> source_;
  std::shared_ptr<const TellingFiles> cache_;
  std::shared_ptr<const pipeline::NativePipeline> native_;
  pipeline::Workspace workspace_;
};

void run_one(const Command& command, const std::vector<std::string>& paths) {
  Run run(command, kModes.at(command.mode), command.directory, paths);
  for (int number = 0; number < command.epochs; ++number) {
    const Epoch epoch = run.epoch(number);
    const nlohmann::json line{{"epoch", number},
                              {"files", paths.size()},
                              {"sum_of_bytes", epoch.sum},
                              {"cpu_seconds", epoch.cpu_seconds},
                              {"seconds", epoch.seconds},
                              {"source_reads", epoch.source_reads},
                              {"bytes_on_disk", epoch.bytes_on_disk},
                              {"chosen", run.chosen()}};
    std::cout << line.dump() << std::endl;
  }
}

void run_all(const Command& command, const std::vector<std::string>& paths) {
  std::filesystem::create_directories(command.directory);
  std::map<std::string, std::unique_ptr<Run>> runs;
  std::map<std::string, nlohmann::json> lines;
  for (const auto& [mode, keep] : kModes) {
    runs[mode] = std::make_unique<Run>(command, keep, command.directory + '/' + mode, paths);
    lines[mode] = {{"mode", mode}, {"files", paths.size()}, {"pipeline", command.pipeline}};
  }
  std::set<std::uint64_t> sums;
  for (int number = 0; number < command.epochs; ++number) {
    for (const auto& [mode, run] : runs) {
      const Epoch epoch = run->epoch(number);
      sums.insert(epoch.sum);
      nlohmann::json& line = lines[mode];
      line["cpu_seconds"].push_back(epoch.cpu_seconds);
      line["seconds"].push_back(epoch.seconds);
      line["sample_seconds"].push_back(epoch.sample_seconds);
      line["source_reads"].push_back(epoch.source_reads);
      line["bytes_on_disk"] = epoch.bytes_on_disk;
      line["chosen"].push_back(run->chosen());
    }
  }
  for (auto& [mode, line] : lines) {
    const auto expected =
        mode == "auto" ? std::nullopt : runs["auto"]->expected_seconds(kModes.at(mode).value_or(Keep::kNothing));
    if (expected) line["predicted"] = *expected / line["sample_seconds"].back().get<double>();
    line["same_bytes"] = sums.size() == 1;
    std::cout << line.dump() << '\n';
  }
}

}  // namespace
}  // namespace sluice::cache

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  const auto number = [&](std::size_t at, int fallback) {
    if (words.size() > at) std::from_chars(words[at].data(), words[at].data() + words[at].size(), fallback);
    return fallback;
  };
  sluice::cache::Command command;
  if (words.size() >= 2) {
    command.mode = words[0];
    command.directory = words[1];
  }
  command.delay = std::chrono::milliseconds(number(2, 0));
  if (words.size() > 3) command.pipeline = words[3];
  command.epochs = number(4, command.epochs);
  command.job = number(5, 0);
  command.announces = number(6, 0);
  const bool is_mode = command.mode == sluice::cache::kAll || sluice::cache::kModes.contains(command.mode);
  if (words.size() > 7 || !is_mode || command.delay.count() < 0 || command.epochs < 1 ||
      sluice::cache::image_ops(command.pipeline).empty()) {
    std::cerr << "usage: sluice-cache-bench plain|cached|transcoded|prefix|auto|all DIRECTORY [DELAY_MS "
                 "[train|crop|validation|tiny [EPOCHS [JOB [ANNOUNCES]]]]] < FILES\n";
    return 2;
  }
  std::vector<std::string> paths;
  for (std::string path; std::getline(std::cin, path);) paths.push_back(path);
  if (command.mode == sluice::cache::kAll) {
    sluice::cache::run_all(command, paths);
  } else {
    sluice::cache::run_one(command, paths);
  }
  return 0;
}
