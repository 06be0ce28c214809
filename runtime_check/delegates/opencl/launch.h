// The launches of a partition: which kernels run, with which arguments, and their constants.
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATES_OPENCL_LAUNCH_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATES_OPENCL_LAUNCH_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "graph/dtype.h"
#include "runtime_check/delegates/onednn/loops.h"
#include "runtime_check/delegates/onednn/node_kinds.h"

namespace permafrost {
namespace opencl {

// Stands for the buffer of constants in place of a storage.
inline constexpr int kConstants = -1;

// A parameter of a kernel: a buffer with the position of its first element, or a number.
struct Argument {
  enum class Kind { kInput, kOutput, kNumber };
  Kind kind = Kind::kNumber;
  int storage = kConstants;
  // The position in elements of the parameter's type, within the storage or the constants; or the number.
  int64_t number = 0;
  int element_bytes = 4;
};

// An elementwise step of a launch, for its evaluation on the host.
struct LaunchStep {
  // An operand: the result of an earlier step (or the value that the kernel computed, -1), an element of an operand of
  // the launch, or of the constants.
  struct Operand {
    enum class From { kNone, kResult, kOperand, kConstants };
    From from = From::kNone;
    int number = -1;
    int64_t position = 0;  // In the constants.
    onednn::Meeting meeting = onednn::Meeting::kSame;
  };
  onednn::LoopOp op = onednn::LoopOp::kCopy;
  float alpha = 0, beta = 0;
  Operand x, z;
};

// One kernel over a range of work items. The first three parameters of each kernel are the buffer of constants, `table`
// and `items`.
struct Launch {
  std::string name;         // Of the node, or of the last fused node.
  std::string description;  // For --explain.
  std::string source;       // Text of the program.
  std::string kernel;
  int64_t table = 0;  // Position of the kernel's table in the constants.
  int64_t items = 0;
  std::vector<Argument> arguments;
  // The steps in the source, and the shape of their results. The operands are the arguments from `first_operand` on.
  std::vector<LaunchStep> steps;
  std::vector<int> results;  // Of an elementwise launch: the steps whose results are written, in order.
  int64_t channels = 1, rows_per_image = 1;
  size_t first_operand = 0;

  void Read(int storage, int64_t offset = 0, int element_bytes = 4) {
    arguments.push_back({Argument::Kind::kInput, storage, offset, element_bytes});
  }
  void Write(int storage) { arguments.push_back({Argument::Kind::kOutput, storage, 0, 4}); }
  void Pass(int64_t number) { arguments.push_back({Argument::Kind::kNumber, kConstants, number, 4}); }
};

// 32-bit words that kernels read: weights, tables and numbers. The first words are 0 (kernels/common.cl).
class Constants {
 public:
  Constants() : words_(16, 0) {}

  int64_t size() const { return static_cast<int64_t>(words_.size()); }
  // Each returns the position of what it adds.
  int64_t AddWords(const std::vector<uint32_t>& words) {
    const int64_t position = size();
    words_.insert(words_.end(), words.begin(), words.end());
    return position;
  }
  int64_t AddFloats(const std::vector<float>& values) {
    const int64_t position = size();
    words_.resize(words_.size() + values.size());
    if (!values.empty()) std::memcpy(words_.data() + position, values.data(), values.size() * sizeof(float));
    return position;
  }
  // Adds the bytes, unless the same memory was added for the same `purpose` before.
  int64_t AddBytes(absl::string_view bytes) {
    int64_t& position = Shared(bytes, "");
    if (position != 0) return position;
    position = size();
    words_.resize(words_.size() + (bytes.size() + 3) / 4);
    if (!bytes.empty()) std::memcpy(words_.data() + position, bytes.data(), bytes.size());
    return position;
  }
  // The position of what was made of this memory for this purpose; 0 until it is set.
  int64_t& Shared(absl::string_view memory, const std::string& purpose) {
    return shared_[{{memory.data(), memory.size()}, purpose}];
  }
  std::vector<uint32_t> Take() { return std::move(words_); }

 private:
  std::vector<uint32_t> words_;
  std::map<std::pair<std::pair<const void*, size_t>, std::string>, int64_t> shared_;
};

// The table of a kernel: sizes and numbers, as 32-bit words.
class Table {
 public:
  Table& Int(int64_t value) {
    words_.push_back(static_cast<uint32_t>(value));
    return *this;
  }
  Table& Float(float value) {
    uint32_t word = 0;
    std::memcpy(&word, &value, sizeof(word));
    words_.push_back(word);
    return *this;
  }
  int64_t size() const { return static_cast<int64_t>(words_.size()); }
  const std::vector<uint32_t>& words() const { return words_; }

 private:
  std::vector<uint32_t> words_;
};

// Indices that must be checked on the host before a run, because a kernel cannot report an error.
struct IndexCheck {
  int storage;
  int64_t count, end;
  bool is_wide;  // int64 instead of int32.
  std::string name;
};

}  // namespace opencl
}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_OPENCL_LAUNCH_H_
