// Runs a fuzz target as a test, on its corpus and on mutations of the corpus.
//
// The target is the linked LLVMFuzzerTestOneInput; it aborts when it finds an error, after printing the input. The
// corpus is the folder $FUZZ_CORPUS, relative to the workspace root. $FUZZ_ITERATIONS and $FUZZ_SEED select other
// mutations, and the file $FUZZ_LAST_INPUT receives each input before it runs, so that it is left after a crash or a
// hang. With -fsanitize=fuzzer instead of this file, the same target runs under libFuzzer.
//
// An input that takes ten seconds of processor time ends the program by SIGPROF, and one that allocates more than
// $FUZZ_MOST_MEMORY, "BASE,FACTOR": BASE bytes and FACTOR times its size, is a failure.
#include <sys/time.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "tests/allocations.h"
#include "tests/fuzz/mutator.h"
#include "tests/shared_models.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
// A target may define mutations of its own.
extern "C" __attribute__((weak)) size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                                                unsigned int seed);
// Likewise, a combination of two inputs.
extern "C" __attribute__((weak)) size_t LLVMFuzzerCustomCrossOver(const uint8_t* data1, size_t size1,
                                                                  const uint8_t* data2, size_t size2, uint8_t* out,
                                                                  size_t max_size, unsigned int seed);

namespace permafrost {
namespace {

uint64_t Seed() {
  const char* seed = std::getenv("FUZZ_SEED");
  return seed == nullptr ? 0 : std::strtoull(seed, nullptr, 10);
}

bool used_bytes = false;  // A target's mutator called LLVMFuzzerMutate.

}  // namespace
}  // namespace permafrost

// libFuzzer has this function for mutations of bytes.
extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size) {
  static permafrost::Mutator mutator(permafrost::Seed());
  permafrost::used_bytes = true;
  const std::string input(reinterpret_cast<const char*>(data), size);
  const std::string mutated = mutator.Mutate(input, input).substr(0, max_size);
  mutated.copy(reinterpret_cast<char*>(data), mutated.size());
  return mutated.size();
}

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

const char* Setting(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : value;
}

// Returns the most memory that an input may take.
int64_t MostMemory(size_t input_size) {
  static const std::pair<std::string, std::string> setting =
      absl::StrSplit(Setting("FUZZ_MOST_MEMORY", "0,0"), absl::MaxSplits(',', 1));
  static const int64_t base = std::atoll(setting.first.c_str()), factor = std::atoll(setting.second.c_str());
  return base == 0 ? std::numeric_limits<int64_t>::max() : base + factor * static_cast<int64_t>(input_size);
}

// The input that took the most memory, relative to what is allowed.
struct Largest {
  double share = 0;
  int64_t bytes = 0;
  size_t input_size = 0;
};
Largest largest;

void RunTarget(const std::string& input) {
  static const std::string file = Setting("FUZZ_LAST_INPUT", "");
  if (!file.empty()) std::ofstream(file, std::ios::binary) << input;
  // A sanitizer knows the end of this memory, unlike that of a string.
  const auto exact = std::make_unique<uint8_t[]>(input.size());
  input.copy(reinterpret_cast<char*>(exact.get()), input.size());
  constexpr itimerval kTenSeconds = {{0, 0}, {10, 0}}, kNever = {};
  setitimer(ITIMER_PROF, &kTenSeconds, nullptr);
  StartPeakMemory();
  LLVMFuzzerTestOneInput(exact.get(), input.size());
  const int64_t bytes = PeakMemory();
  setitimer(ITIMER_PROF, &kNever, nullptr);
  const double share = static_cast<double>(bytes) / static_cast<double>(MostMemory(input.size()));
  if (share > largest.share) largest = {share, bytes, input.size()};
  ASSERT_LE(share, 1) << "an input of " << input.size() << " bytes takes " << bytes
                      << " bytes of memory: " << absl::CHexEscape(input);
}

TEST(Fuzz, Corpus) {
  const std::vector<std::string> corpus = Corpus();
  ASSERT_GE(corpus.size(), 2u);
  // Tables that are made on first use do not count.
  for (const std::string& input : corpus) {
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
  }
  for (const std::string& input : corpus) RunTarget(input);
}

TEST(Fuzz, Mutations) {
  const int iterations = std::atoi(std::getenv("FUZZ_ITERATIONS"));
  ASSERT_GT(iterations, 0);
  const std::vector<std::string> corpus = Corpus();
  Mutator mutator(kSeed + Seed());
  for (int i = 0; i < iterations; ++i) {
    const size_t other = static_cast<size_t>(i / 3) % corpus.size();
    RunTarget(mutator.Mutate(corpus[static_cast<size_t>(i) % corpus.size()], corpus[other]));
  }
}

// Mutations that the target itself makes, of the corpus and of earlier mutations.
TEST(Fuzz, OwnMutations) {
  if (LLVMFuzzerCustomMutator == nullptr) GTEST_SKIP() << "the target has no mutations of its own";
  const int iterations = std::atoi(std::getenv("FUZZ_ITERATIONS"));
  const std::vector<std::string> corpus = Corpus();
  std::vector<std::string> inputs = corpus;
  constexpr size_t kRoom = 1 << 16;  // For parts that a mutation inserts.
  const auto first = static_cast<unsigned>(Seed()) * static_cast<unsigned>(iterations);
  for (int i = 0; i < iterations; ++i) {
    std::string& input = inputs[static_cast<size_t>(i) % inputs.size()];
    std::string mutated = input;
    const size_t size = input.size();
    mutated.resize(size + kRoom);
    used_bytes = false;
    const unsigned seed = first + static_cast<unsigned>(i);
    auto* const out = reinterpret_cast<uint8_t*>(&mutated[0]);
    size_t mutated_size = 0;
    constexpr unsigned kCombined = 4;  // One of so many takes parts of another file.
    if (LLVMFuzzerCustomCrossOver != nullptr && seed % kCombined == 0) {
      const std::string& other = corpus[seed / kCombined % corpus.size()];
      mutated_size = LLVMFuzzerCustomCrossOver(reinterpret_cast<const uint8_t*>(input.data()), size,
                                               reinterpret_cast<const uint8_t*>(other.data()), other.size(), out,
                                               mutated.size(), seed);
    }
    if (mutated_size == 0) mutated_size = LLVMFuzzerCustomMutator(out, size, mutated.size(), seed);
    mutated.resize(mutated_size);
    RunTarget(mutated);
    ASSERT_FALSE(HasFatalFailure());
    // A few generations, then from the start again.
    constexpr size_t kGenerations = 8;
    // The structure-aware mutator needs a model that can be parsed.
    const bool is_last = used_bytes || static_cast<size_t>(i) / inputs.size() % kGenerations == kGenerations - 1;
    input = is_last ? corpus[static_cast<size_t>(i) % corpus.size()] : mutated;
  }
  if (largest.bytes > 0) {
    std::cout << "most memory: " << largest.bytes << " bytes for an input of " << largest.input_size << " bytes\n";
  }
}

}  // namespace
}  // namespace permafrost
