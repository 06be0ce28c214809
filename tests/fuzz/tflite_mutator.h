// Mutates TensorFlow Lite models field by field: indices, shapes, types, options, quantisation, sparsity, offsets,
// lengths, vtables, and the archive at the end.
#ifndef PERMAFROST_TESTS_FUZZ_TFLITE_MUTATOR_H_
#define PERMAFROST_TESTS_FUZZ_TFLITE_MUTATOR_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace permafrost {

// Returns a mutation of a model, the same for the same seed; `other` provides parts that are inserted. Returns an empty
// string if `model` is not a valid FlatBuffer of a model, so that its fields cannot be found.
std::string MutateTflite(absl::string_view model, absl::string_view other, uint64_t seed);

}  // namespace permafrost

#endif  // PERMAFROST_TESTS_FUZZ_TFLITE_MUTATOR_H_
