// Runs a fuzz target over its seed corpus and a fixed number of mutations of it, the same ones every time.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::testing {

inline std::vector<std::string> read_corpus(const std::string& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());  // the same order everywhere
  std::vector<std::string> inputs;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    inputs.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return inputs;
}

// Distributions differ between standard libraries; the engine does not.
class Mutator {
 public:
  explicit Mutator(const std::vector<std::string>& corpus) : corpus_(corpus) {}

  std::string next() {
    std::string text = corpus_[below(corpus_.size())];
    for (std::size_t i = 0, count = 1 + below(4); i < count; ++i) mutate(text);
    return text;
  }

 private:
  std::size_t below(std::size_t bound) { return bound == 0 ? 0 : engine_() % bound; }

  void mutate(std::string& text) {
    constexpr std::string_view kInteresting = "{}[]\",:\\\n\r \t-+.eE09aZ/*&!%#|>'\0\xff\xc3\x80";
    const std::size_t at = below(text.size() + 1);
    switch (below(6)) {
      case 0: text.resize(at); break;
      case 1: text.insert(at, 1, kInteresting[below(kInteresting.size())]); break;
      case 2: text.erase(at, 1 + below(8)); break;
      case 3:
        if (at < text.size()) text[at] = static_cast<char>(engine_() & 0xFF);
        break;
      case 4: text.insert(at, text.substr(below(text.size()), 1 + below(64))); break;
      default: {
        const std::string& other = corpus_[below(corpus_.size())];
        text = text.substr(0, at) + other.substr(below(other.size()));
      }
    }
    if (text.size() > 64 << 10) text.resize(64 << 10);
  }

  const std::vector<std::string>& corpus_;
  std::mt19937_64 engine_{20261121};
};

// Returns how many inputs `folder` has.
inline std::size_t run_corpus_and_mutations(const std::string& folder, void (*run)(std::string_view)) {
  constexpr int kMutations = 5000;
  const std::vector<std::string> corpus = read_corpus(folder);
  for (const std::string& input : corpus) run(input);
  if (corpus.empty()) return 0;
  Mutator mutator(corpus);
  for (int i = 0; i < kMutations; ++i) run(mutator.next());
  return corpus.size();
}

}  // namespace sluice::testing
