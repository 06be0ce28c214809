// Runs a fuzz target as a test, on its corpus and on mutations of the corpus.
//
// The target is the linked LLVMFuzzerTestOneInput; it aborts when it finds an error, after printing the input. The
// corpus is the folder $FUZZ_CORPUS, relative to the workspace root. $FUZZ_ITERATIONS and $FUZZ_SEED select other
// mutations, and the file $FUZZ_LAST_INPUT receives each input before it runs, so that it is left after a crash or a
// hang. With -fsanitize=fuzzer instead of this file, the same target runs under libFuzzer.
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/fuzz/mutator.h"
#include "tests/shared_models.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace permafrost {
namespace {

constexpr uint64_t kSeed = 20240229;  // Any; the same mutations in every run.

std::vector<std::string> Corpus() {
  std::map<std::string, std::string> files;  // Sorted by name, because the order determines the mutations.
  for (const auto& entry : std::filesystem::directory_iterator(DataFile(std::getenv("FUZZ_CORPUS")))) {
    std::ifstream file(entry.path(), std::ios::binary);
    std::stringstream text;
    text << file.rdbuf();
    files[entry.path().filename()] = text.str();
  }
  std::vector<std::string> corpus;
  for (auto& [name, text] : files) corpus.push_back(std::move(text));
  return corpus;
}

void RunTarget(const std::string& input) {
  static const char* const kLastInput = std::getenv("FUZZ_LAST_INPUT");
  if (kLastInput != nullptr) std::ofstream(kLastInput, std::ios::binary) << input;
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
}

TEST(Fuzz, Corpus) {
  const std::vector<std::string> corpus = Corpus();
  ASSERT_GE(corpus.size(), 2u);
  for (const std::string& input : corpus) RunTarget(input);
}

TEST(Fuzz, Mutations) {
  const int iterations = std::atoi(std::getenv("FUZZ_ITERATIONS"));
  ASSERT_GT(iterations, 0);
  const std::vector<std::string> corpus = Corpus();
  const char* seed = std::getenv("FUZZ_SEED");
  Mutator mutator(seed == nullptr ? kSeed : std::strtoull(seed, nullptr, 10));
  for (int i = 0; i < iterations; ++i) {
    const size_t other = static_cast<size_t>(i / 3) % corpus.size();
    RunTarget(mutator.Mutate(corpus[static_cast<size_t>(i) % corpus.size()], corpus[other]));
  }
}

}  // namespace
}  // namespace permafrost
