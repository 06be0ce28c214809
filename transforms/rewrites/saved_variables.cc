// Reads the constants of savers, and cuts slices from tensors.
#include "transforms/rewrites/saved_variables.h"

#include <cstring>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "graph/base/status.h"
#include "graph/matching/matcher.h"

namespace permafrost {
namespace {

// Returns the strings of a constant, or null.
const std::vector<std::string>* StringsBehind(TensorRef ref, Tensor* keeper) {
  const Node* node = ConstantBehind(ref);
  if (node == nullptr) return nullptr;
  absl::StatusOr<Tensor> value = ConstValue(*node);
  if (!value.ok() || value->dtype() != DType::kString) return nullptr;
  *keeper = *std::move(value);
  return &keeper->strings();
}

bool IsAssignment(const Use& use) {
  const Op op = use.consumer->op();
  return use.index == 1 && (op == ops::kAssign || op == ops::kAssignVariableOp);
}

// Returns the variable that is assigned the result of `identity`, possibly through further Identity nodes; or null.
const Node* AssignedThrough(const Node* identity) {
  for (int reads = 0; reads < kMaxReads && identity != nullptr; ++reads) {
    const Node* next = nullptr;
    for (const Use& use : identity->uses()) {
      if (use.consumer->input(use.index).is_control()) continue;
      if (IsAssignment(use)) return use.consumer->input(0).node;
      if (use.consumer->op() == ops::kIdentity) next = use.consumer;
    }
    identity = next;
  }
  return nullptr;
}

absl::Status DoesNotFit(absl::string_view slice, const Tensor& whole) {
  return absl::InvalidArgumentError(
      absl::StrCat("the saver has slice '", slice, "', but the saved tensor has the shape ", whole.shape().ToString()));
}

}  // namespace

SavedVariables::SavedVariables(const Graph& graph) {
  for (const Node* node = graph.first(); node != nullptr; node = node->next()) {
    if (node->op() == ops::kRestoreV2 && node->num_data_inputs() == 3) AddSaver(*node);
  }
}

void SavedVariables::AddSaver(const Node& restore) {
  Tensor names_keeper, slices_keeper;
  const std::vector<std::string>* names = StringsBehind(restore.input(1), &names_keeper);
  const std::vector<std::string>* slices = StringsBehind(restore.input(2), &slices_keeper);
  if (names == nullptr || slices == nullptr || names->size() != slices->size()) return;
  for (const Use& use : restore.uses()) {
    const TensorRef ref = use.consumer->input(use.index);
    if (ref.is_control() || static_cast<size_t>(ref.port) >= names->size()) continue;
    const Node* variable = IsAssignment(use)                      ? use.consumer->input(0).node
                           : use.consumer->op() == ops::kIdentity ? AssignedThrough(use.consumer)
                                                                  : nullptr;
    if (variable != nullptr) saved_.try_emplace(variable, SavedAs{(*names)[ref.port], (*slices)[ref.port]});
  }
}

absl::StatusOr<Tensor> SavedVariables::Read(const VariableSource& source, const Node& variable) const {
  const auto saved = saved_.find(&variable);
  if (saved == saved_.end()) {
    std::string name(variable.name());
    if (variable.op() == ops::kVarHandleOp) {
      const absl::StatusOr<std::string> shared = StringAttr(variable, "shared_name");
      if (shared.ok() && !shared->empty()) name = *shared;
    }
    return source.Read(name);
  }
  PF_ASSIGN_OR_RETURN(const Tensor whole, source.Read(saved->second.name));
  if (saved->second.slice.empty()) return whole;
  absl::StatusOr<Tensor> part = TakeSlice(whole, saved->second.slice);
  if (!part.ok()) return Annotate(part.status(), absl::StrCat("variable '", saved->second.name, "'"));
  return part;
}

absl::StatusOr<Tensor> TakeSlice(const Tensor& whole, absl::string_view slice) {
  const std::vector<absl::string_view> words = absl::StrSplit(slice, ' ');
  const Shape& shape = whole.shape();
  const int rank = shape.rank();
  if (static_cast<int>(words.size()) != rank + 1 || SizeOf(whole.dtype()) == 0) return DoesNotFit(slice, whole);
  const std::vector<absl::string_view> extents = absl::StrSplit(words.back(), ':');
  if (static_cast<int>(extents.size()) != rank) return DoesNotFit(slice, whole);
  std::vector<int64_t> starts(rank, 0);
  Shape part_shape;
  for (int i = 0; i < rank; ++i) {
    int64_t dim, length = shape.dim(i);
    if (!absl::SimpleAtoi(words[i], &dim) || dim != shape.dim(i)) return DoesNotFit(slice, whole);
    if (extents[i] != "-") {
      const std::vector<absl::string_view> numbers = absl::StrSplit(extents[i], ',');
      if (numbers.size() != 2 || !absl::SimpleAtoi(numbers[0], &starts[i]) || !absl::SimpleAtoi(numbers[1], &length) ||
          starts[i] < 0 || length < 0 || starts[i] > dim || length > dim - starts[i]) {
        return DoesNotFit(slice, whole);
      }
    }
    part_shape.AddDim(length);
  }
  if (part_shape == shape) return whole;
  char* data;
  PF_ASSIGN_OR_RETURN(Tensor part, Tensor::Allocate(whole.dtype(), part_shape, &data));
  if (part.num_elements() == 0) return part;
  // Copies rows of the last dimension in order.
  const size_t element_size = SizeOf(whole.dtype());
  const size_t row = static_cast<size_t>(rank == 0 ? 1 : part_shape.dim(rank - 1)) * element_size;
  std::vector<int64_t> index = starts;
  for (size_t done = 0; done < part.bytes().size(); done += row) {
    int64_t element = 0;
    for (int i = 0; i < rank; ++i) element = element * shape.dim(i) + index[i];
    std::memcpy(data + done, whole.bytes().data() + static_cast<size_t>(element) * element_size, row);
    for (int i = rank - 2; i >= 0; --i) {
      if (++index[i] < starts[i] + part_shape.dim(i)) break;
      index[i] = starts[i];
    }
  }
  return part;
}

}  // namespace permafrost
