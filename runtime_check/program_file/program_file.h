// A program file: a graph planned ahead for one set of input shapes, for runtimes that only execute. Its steps name
// kernels, and the shapes, places and constants of all tensors are known. docs/formats/program.md has the byte layout.
#ifndef PERMAFROST_RUNTIME_CHECK_PROGRAM_FILE_PROGRAM_FILE_H_
#define PERMAFROST_RUNTIME_CHECK_PROGRAM_FILE_PROGRAM_FILE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/graph.h"
#include "graph/shape.h"
#include "graph/tensor.h"

namespace permafrost {

// The first bytes of a program file; the last of them is the version.
inline constexpr absl::string_view kProgramMagic("PFPROG\0\1", 8);
// Constants, and tensors in the arena, start at multiples of this.
inline constexpr uint64_t kProgramAlignment = 64;

inline bool LooksLikeProgram(absl::string_view bytes) { return bytes.substr(0, kProgramMagic.size()) == kProgramMagic; }

// Numbers of the fields of the directory, which is in protobuf's wire format.
enum class ProgramField : uint32_t { kArenaBytes = 1, kTensor = 2, kInput = 3, kOutput = 4, kStep = 5 };
enum class ProgramTensorField : uint32_t { kDType = 1, kDim = 2, kPlace = 3, kOffset = 4 };
enum class ProgramEndpointField : uint32_t { kTensor = 1, kName = 2 };
enum class ProgramStepField : uint32_t { kOp = 1, kName = 2, kInput = 3, kOutput = 4, kAttr = 5 };
enum class ProgramAttrField : uint32_t { kKey = 1, kValue = 2 };

// The memory of a tensor.
enum class ProgramPlace : uint8_t {
  kArena = 1,     // Memory of the session; the offset is in the arena.
  kConstant = 2,  // The file; the offset is from the end of the directory, which is padded to kProgramAlignment.
  kInput = 3,     // Memory of an input; the offset is the number of the input.
};

struct ProgramFileTensor {
  DType dtype = DType::kInvalid;  // A type with elements of a fixed size.
  Shape shape;                    // Fully known.
  ProgramPlace place = ProgramPlace::kArena;
  uint64_t offset = 0;
  int64_t bytes = 0;
};

struct ProgramFileEndpoint {
  absl::string_view name;
  int tensor = 0;
};

struct ProgramFileStep {
  const Node* node = nullptr;  // Has a name, an op and attributes, but no inputs.
  std::vector<int> inputs, outputs;
};

// A program file that was read. Immutable; thread-safe.
class ProgramFile {
 public:
  // Reads a file, whose constants and texts stay where they are; `owner` keeps the bytes alive (null: the caller does).
  // Checks every number and range, and that all outputs of steps are in the arena; kernels are checked by a session.
  // DataLoss (found, expected) for a file that is no program file, has another version, or is damaged.
  static absl::StatusOr<std::unique_ptr<ProgramFile>> Read(absl::string_view bytes, Owner owner);

  const std::vector<ProgramFileTensor>& tensors() const { return tensors_; }
  const std::vector<ProgramFileEndpoint>& inputs() const { return inputs_; }
  const std::vector<ProgramFileEndpoint>& outputs() const { return outputs_; }
  const std::vector<ProgramFileStep>& steps() const { return steps_; }
  int64_t arena_bytes() const { return arena_bytes_; }

  // Returns a constant. REQUIRES: the tensor's place is kConstant.
  absl::StatusOr<Tensor> Constant(int tensor) const;

 private:
  ProgramFile(absl::string_view constants, Owner owner) : constants_(constants), owner_(std::move(owner)) {}

  absl::Status ReadDirectory(absl::string_view directory);
  absl::Status ReadTensor(absl::string_view message);
  absl::Status ReadEndpoint(absl::string_view message, std::vector<ProgramFileEndpoint>* endpoints);
  absl::Status ReadStep(absl::string_view message);
  absl::Status CheckPlaces() const;
  // Appends a tensor number to the list. DataLoss if the file has no such tensor so far.
  absl::Status AddNumber(uint64_t number, std::vector<int>* numbers) const;

  absl::string_view constants_;  // The file behind the directory.
  Owner owner_;
  int64_t arena_bytes_ = 0;
  std::vector<ProgramFileTensor> tensors_;
  std::vector<ProgramFileEndpoint> inputs_, outputs_;
  std::vector<ProgramFileStep> steps_;
  Graph graph_;  // Owns the nodes of the steps.
};

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_PROGRAM_FILE_PROGRAM_FILE_H_
