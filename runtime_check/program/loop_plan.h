// A plan of a fused loop: the steps of an iteration, with the memory that they read and write.
//
// An iteration has two parts. Integer scalars (counters, indices of elements, the condition) are computed in registers,
// for several iterations ahead. Tensors are rows of elements in memory, computed by steps. A product of an element of a
// list with a matrix that no iteration changes depends on integers alone, so it is computed for several iterations at
// once. loop_planner.h makes plans.
#ifndef PERMAFROST_RUNTIME_CHECK_PROGRAM_LOOP_PLAN_H_
#define PERMAFROST_RUNTIME_CHECK_PROGRAM_LOOP_PLAN_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "graph/tensor.h"
#include "runtime_check/kernels/gemm.h"
#include "runtime_check/kernels/row_product.h"
#include "runtime_check/planning/prepared_node.h"

namespace permafrost {

// A tensor as rows of elements. All counts are in elements. A step of 0 repeats a row or an element.
struct LoopRows {
  DType dtype = DType::kInvalid;
  Shape shape;
  int base = -1;  // Index into LoopPlan::bases.
  int64_t offset = 0;
  int64_t rows = 1, columns = 1;
  int64_t row_step = 1, column_step = 1;

  bool IsDense() const { return (columns <= 1 || column_step == 1) && (rows <= 1 || row_step == columns); }
};

// The memory that rows lie in.
struct LoopBase {
  enum class Kind : uint8_t {
    kBuffer,    // Memory of the plan.
    kConstant,  // `constant`.
    kArgument,  // The argument `index`.
    kRead,      // The element that read `index` gets in this iteration.
    kBatched,   // The result of batched product `index` for this iteration.
  };
  Kind kind = Kind::kBuffer;
  int index = -1;
  Tensor constant;
  // Size and lifetime (first and last step) of a buffer, for buffer_placement.h.
  int64_t bytes = 0;
  int first = 0, last = 0;
  int64_t offset = 0;
};

// result = function(a, b), in registers.
struct IntegerStep {
  enum class Function : uint8_t {
    kAdd,
    kSubtract,
    kMultiply,
    kMinimum,
    kMaximum,
    kLess,
    kLessEqual,
    kGreater,
    kGreaterEqual,
    kEqual,
    kNotEqual,
    kAnd,
    kOr,
    kNot,
    kConvert,
  };
  Function function = Function::kAdd;
  DType dtype = DType::kInvalid;  // Of the result.
  int a = 0, b = 0, result = 0;
};

// Returns the integer scalar at `data`, of type int32, int64 or bool.
int64_t ReadLoopInteger(DType dtype, const char* data);

struct LoopStep {
  enum class Kind : uint8_t {
    kProduct,   // out = in[0] * matrix, or += for a range that does not begin at 0.
    kFunction,  // out = function(in[0], in[1])
    kUnary,     // out = unary(in[0])
    kSelect,    // out = in[0] ? in[1] : in[2]
    kCopy,      // out = in[0]
    kScalar,    // out = the watched register
    kKernel,    // A kernel of its own.
  };
  Kind kind = Kind::kCopy;
  LoopRows in[3];
  LoopRows out;
  RowFunction function = RowFunction::kAdd;
  void (*unary)(int64_t count, const float* x, float* y) = nullptr;
  int matrix = -1;
  DepthRange range{0, 0};
  int watched = -1;
  int kernel = -1;
};

// The right operand of products. It is packed once if it is a constant, otherwise in each run of the loop.
struct LoopMatrix {
  LoopRows source;
  bool is_transposed = false;
  PackedShape shape;
  // Packed constants are shared by the plans of a loop.
  std::shared_ptr<const FloatBuffer> constant;
  FloatBuffer own;

  const float* packed() const { return constant != nullptr ? constant->data() : own.data(); }
  // Packs the matrix; `data` is the memory of the source's base.
  void PackFrom(const InnerLoops& loops, const char* data, float* packed) const;
};

// Reads an element of a list or tensor array in each iteration.
struct LoopRead {
  int variable = -1;
  int watched = -1;  // The index.
  bool is_array = false;
  DType dtype = DType::kInvalid;
  Shape shape;
  int base = -1;
};

// Writes an element of a list or tensor array in each iteration.
struct LoopWrite {
  int variable = -1;
  int watched = -1;  // The index.
  bool is_array = false;
  LoopRows value;
};

// The product of an element with rows `range` of a matrix, for several iterations at once.
struct BatchedProduct {
  int read = -1;
  int matrix = -1;
  DepthRange range{0, 0};
  int64_t rows = 0;
  int base = -1;
};

// A variable that is a tensor.
struct LoopState {
  int variable = -1;
  LoopRows current, next;

  // Returns whether the next value is the current one.
  bool IsUnchanged() const { return next.base == current.base && next.offset == 0 && next.IsDense(); }
};

// A variable that is an integer scalar.
struct LoopCounter {
  int variable = -1;
  DType dtype = DType::kInvalid;
  int current = -1, next = -1;  // Registers; next is -1 for a variable that no iteration changes.
};

// A node that its kernel computes.
struct LoopKernel {
  const Node* node = nullptr;
  PreparedNode prepared;
  std::vector<LoopRows> in, out;
  std::vector<Tensor> constants;  // That the preparation refers to.
  std::vector<Value> inputs, outputs;
  std::vector<const Value*> input_pointers;
};

// Not thread-safe.
class LoopPlan {
 public:
  LoopPlan() = default;
  LoopPlan(const LoopPlan&) = delete;
  LoopPlan& operator=(const LoopPlan&) = delete;

  // Runs the loop. Returns the values of the variables after the last iteration, or null, without effects, if the run
  // needs something that the plan does not have, such as an error of an element: then the loop must run node by node.
  absl::StatusOr<std::optional<std::vector<Passed>>> Run(absl::Span<const Passed> arguments,
                                                         const Environment& environment);

  // Describes the plan in a few lines, for --explain.
  std::vector<std::string> Describe() const;

 private:
  friend class LoopPlanner;
  friend class LoopRun;

  std::string name_;
  std::vector<LoopBase> bases_;
  std::vector<int64_t> registers_;  // The initial values: constants.
  std::vector<IntegerStep> integers_;
  int condition_ = -1;        // A register.
  std::vector<int> watched_;  // Registers that the steps of an iteration read.
  std::vector<LoopCounter> counters_;
  std::vector<LoopState> states_;
  std::vector<LoopStep> steps_;
  std::vector<LoopMatrix> matrices_;
  std::vector<LoopRead> reads_;
  std::vector<LoopWrite> writes_;
  std::vector<BatchedProduct> batched_;
  std::vector<std::unique_ptr<LoopKernel>> kernels_;
  int64_t arena_bytes_ = 0;      // Buffers.
  int64_t scratch_bytes_ = 0;    // For kernels.
  int64_t ahead_ = 1;            // Iterations that are batched.
  int64_t most_iterations_ = 0;  // Seen in runs, for Describe.
  const InnerLoops* loops_ = nullptr;

  Tensor memory_;  // The buffers, scratch memory, zeros, and the operands and results of batched products.
  Reservation reservation_;
  char* arena_ = nullptr;
  char* scratch_ = nullptr;
  char* zeros_ = nullptr;
  std::vector<float*> gathered_, results_;  // By batched product.
};

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_PROGRAM_LOOP_PLAN_H_
