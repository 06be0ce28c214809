// Builds the C structs for a partition, and implements the callbacks for attributes and constants.
#include "runtime_check/delegates/external/partition_view.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graph/graph.h"

namespace permafrost {
namespace {

const Node& NodeOf(const permafrost_node* node) { return *static_cast<const Node*>(node->handle); }

int32_t Failure(const absl::Status& status) {
  return absl::IsNotFound(status) ? PERMAFROST_NOT_FOUND : PERMAFROST_WRONG_KIND;
}

// Calls `take` with the attribute, and converts the status.
template <typename T, typename Take>
int32_t Answer(const absl::StatusOr<T>& attr, const Take& take) {
  if (!attr.ok()) return Failure(attr.status());
  take(*attr);
  return PERMAFROST_OK;
}

template <typename T, typename Element>
void CopyList(const std::vector<T>& from, Element* values, size_t capacity, size_t* count) {
  *count = from.size();
  for (size_t i = 0; i < std::min(capacity, from.size()); ++i) values[i] = static_cast<Element>(from[i]);
}

void CopyText(const std::string& text, char* value, size_t capacity, size_t* length) {
  *length = text.size();
  if (capacity == 0) return;
  const size_t count = std::min(capacity, text.size());
  std::memcpy(value, text.data(), count);
  if (count < capacity) value[count] = '\0';
}

int32_t GetInt(const permafrost_node* node, const char* name, int64_t* value) {
  return Answer(IntAttr(NodeOf(node), name), [&](int64_t attr) { *value = attr; });
}

int32_t GetFloat(const permafrost_node* node, const char* name, float* value) {
  return Answer(FloatAttr(NodeOf(node), name), [&](float attr) { *value = attr; });
}

int32_t GetBool(const permafrost_node* node, const char* name, int32_t* value) {
  return Answer(BoolAttr(NodeOf(node), name), [&](bool attr) { *value = attr ? 1 : 0; });
}

int32_t GetType(const permafrost_node* node, const char* name, int32_t* value) {
  return Answer(TypeAttr(NodeOf(node), name), [&](DType attr) { *value = static_cast<int32_t>(attr); });
}

int32_t GetShape(const permafrost_node* node, const char* name, int64_t* dims, size_t capacity, int32_t* rank) {
  return Answer(ShapeAttr(NodeOf(node), name), [&](const Shape& attr) {
    *rank = attr.has_rank() ? attr.rank() : -1;
    for (int i = 0; i < *rank && static_cast<size_t>(i) < capacity; ++i) dims[i] = attr.dim(i);
  });
}

int32_t GetString(const permafrost_node* node, const char* name, char* value, size_t capacity, size_t* length) {
  return Answer(StringAttr(NodeOf(node), name),
                [&](const std::string& attr) { CopyText(attr, value, capacity, length); });
}

int32_t GetIntList(const permafrost_node* node, const char* name, int64_t* values, size_t capacity, size_t* count) {
  return Answer(IntListAttr(NodeOf(node), name),
                [&](const std::vector<int64_t>& attr) { CopyList(attr, values, capacity, count); });
}

int32_t GetFloatList(const permafrost_node* node, const char* name, float* values, size_t capacity, size_t* count) {
  return Answer(FloatListAttr(NodeOf(node), name),
                [&](const std::vector<float>& attr) { CopyList(attr, values, capacity, count); });
}

int32_t GetTypeList(const permafrost_node* node, const char* name, int32_t* values, size_t capacity, size_t* count) {
  return Answer(TypeListAttr(NodeOf(node), name),
                [&](const std::vector<DType>& attr) { CopyList(attr, values, capacity, count); });
}

int32_t GetStringListSize(const permafrost_node* node, const char* name, size_t* count) {
  return Answer(StringListAttr(NodeOf(node), name),
                [&](const std::vector<std::string>& attr) { *count = attr.size(); });
}

int32_t GetStringListItem(const permafrost_node* node, const char* name, size_t index, char* value, size_t capacity,
                          size_t* length) {
  const absl::StatusOr<std::vector<std::string>> attr = StringListAttr(NodeOf(node), name);
  if (!attr.ok()) return Failure(attr.status());
  if (index >= attr->size()) return PERMAFROST_NOT_FOUND;
  CopyText((*attr)[index], value, capacity, length);
  return PERMAFROST_OK;
}

}  // namespace

const void* ExternalConstantData(const permafrost_tensor* tensor) {
  if (tensor->handle == nullptr) return nullptr;
  auto& constant = *static_cast<PartitionView::Constant*>(const_cast<void*>(tensor->handle));
  if (constant.aligned.dtype() == DType::kInvalid) {
    absl::StatusOr<Tensor> aligned = constant.value->Aligned();
    if (!aligned.ok()) return nullptr;
    constant.aligned = *std::move(aligned);
  }
  return constant.aligned.bytes().data();
}

const permafrost_host& ExternalHost() {
  static const permafrost_host kHost = {sizeof(permafrost_host),
                                        PERMAFROST_ABI_MAJOR,
                                        PERMAFROST_ABI_MINOR,
                                        &ExternalConstantData,
                                        &GetInt,
                                        &GetFloat,
                                        &GetBool,
                                        &GetType,
                                        &GetShape,
                                        &GetString,
                                        &GetIntList,
                                        &GetFloatList,
                                        &GetTypeList,
                                        &GetStringListSize,
                                        &GetStringListItem};
  return kHost;
}

PartitionView::PartitionView(const Partition& partition) : scales_(FindTensorScales(partition)) {
  for (const DelegateTensor& from : partition.tensors) {
    const TensorScales& scales = scales_[tensors_.size()];
    permafrost_tensor& tensor = tensors_.emplace_back();
    tensor.struct_size = sizeof(tensor);
    tensor.dtype = static_cast<int32_t>(from.dtype);
    tensor.rank = -1;
    if (from.shape.IsFullyKnown()) {
      tensor.rank = from.shape.rank();
      tensor.dims = from.shape.dims().data();
      tensor.num_bytes = static_cast<uint64_t>(from.shape.num_elements()) * SizeOf(from.dtype);
    }
    if (from.constant.has_value()) {
      Constant& constant = constants_.emplace_back();
      constant.value = &*from.constant;
      tensor.is_constant = 1;
      tensor.handle = &constant;
    }
    if (!scales.scales.empty()) {
      permafrost_quantization& quantization = quantizations_.emplace_back();
      quantization = {sizeof(quantization), static_cast<int32_t>(scales.scales.size()), scales.scales.data(),
                      scales.zero_points.data(), scales.axis};
      tensor.quantization = &quantization;
    }
    tensor_pointers_.push_back(&tensor);
  }
  for (const DelegateNode& from : partition.nodes) {
    permafrost_node& node = nodes_.emplace_back();
    node.struct_size = sizeof(node);
    node.name = texts_.emplace_back(from.node->name()).c_str();
    node.op = texts_.emplace_back(from.node->op().name()).c_str();
    node.num_inputs = static_cast<int32_t>(from.inputs.size());
    node.inputs = from.inputs.data();
    node.num_outputs = static_cast<int32_t>(from.outputs.size());
    node.outputs = from.outputs.data();
    node.handle = from.node;
    node_pointers_.push_back(&node);
  }
  partition_ = {sizeof(partition_),      static_cast<int32_t>(tensor_pointers_.size()),
                tensor_pointers_.data(), static_cast<int32_t>(node_pointers_.size()),
                node_pointers_.data(),   static_cast<int32_t>(partition.inputs.size()),
                partition.inputs.data(), static_cast<int32_t>(partition.outputs.size()),
                partition.outputs.data()};
}

std::vector<Tensor> PartitionView::TakeConstants() {
  std::vector<Tensor> taken;
  for (Constant& constant : constants_) {
    if (constant.aligned.dtype() != DType::kInvalid) taken.push_back(constant.aligned);
  }
  return taken;
}

}  // namespace permafrost
