// Damages a protobuf message in the ways that find bugs in its readers. Every choice follows from the seed.
#ifndef PERMAFROST_TESTS_FUZZ_MUTATOR_H_
#define PERMAFROST_TESTS_FUZZ_MUTATOR_H_

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace permafrost {

class Mutator {
 public:
  explicit Mutator(uint64_t seed) : random_(seed) {}

  // One to four mutations of `input`; `other` is what pieces are spliced in from.
  std::string Mutate(const std::string& input, const std::string& other);

 private:
  size_t Below(size_t limit) { return limit == 0 ? 0 : static_cast<size_t>(random_() % limit); }
  std::string MutateOnce(const std::string& input, const std::string& other);
  // Bytes, whatever they mean.
  void FlipBit(std::string* text);
  void SetByte(std::string* text);
  void Insert(std::string* text);
  void Delete(std::string* text);
  void Splice(std::string* text, const std::string& other);
  // Fields, with the lengths round them made right again, so that the damage gets past the outermost check.
  std::string MutateFields(absl::string_view message, absl::string_view other);
  void MutateFieldList(std::vector<std::string>* fields, absl::string_view other);
  // A length that is not that of its field.
  std::string TamperLength(absl::string_view message);

  std::mt19937_64 random_;
};

}  // namespace permafrost

#endif  // PERMAFROST_TESTS_FUZZ_MUTATOR_H_
