// Mutates protobuf messages in ways that find bugs in parsers. Deterministic for a given seed.
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

  // Applies one to four mutations to `input`. `other` provides pieces to splice in.
  std::string Mutate(const std::string& input, const std::string& other);

 private:
  size_t Below(size_t limit) { return limit == 0 ? 0 : static_cast<size_t>(random_() % limit); }
  std::string MutateOnce(const std::string& input, const std::string& other);
  // Mutations of bytes, regardless of their meaning.
  void FlipBit(std::string* text);
  void SetByte(std::string* text);
  void Insert(std::string* text);
  void Delete(std::string* text);
  void Splice(std::string* text, const std::string& other);
  // Mutations of fields. Enclosing lengths are corrected, so that the damage is not rejected by the outermost check.
  std::string MutateFields(absl::string_view message, absl::string_view other);
  void MutateFieldList(std::vector<std::string>* fields, absl::string_view other);
  // Sets a length that differs from the size of its field.
  std::string TamperLength(absl::string_view message);

  std::mt19937_64 random_;
};

}  // namespace permafrost

#endif  // PERMAFROST_TESTS_FUZZ_MUTATOR_H_
