// View of a partition in the types of the C interface.
#ifndef PERMAFROST_RUNTIME_CHECK_DELEGATES_EXTERNAL_PARTITION_VIEW_H_
#define PERMAFROST_RUNTIME_CHECK_DELEGATES_EXTERNAL_PARTITION_VIEW_H_

#include <deque>
#include <string>
#include <vector>

#include "graph/tensor.h"
#include "runtime_check/delegate.h"
#include "runtime_check/delegates/external/permafrost_delegate.h"
#include "runtime_check/delegates/external/tensor_scales.h"

namespace permafrost {

// Returns the table of callbacks, which is static.
const permafrost_host& ExternalHost();

// A partition as C structs. Points into the partition, which must outlive it. Not thread-safe.
class PartitionView {
 public:
  // A shape that is only partly known appears as unknown.
  explicit PartitionView(const Partition& partition);
  PartitionView(const PartitionView&) = delete;
  PartitionView& operator=(const PartitionView&) = delete;

  const permafrost_partition* get() const { return &partition_; }
  // Returns the constants that the library has requested; they must stay alive as long as its code.
  std::vector<Tensor> TakeConstants();

 private:
  friend const void* ExternalConstantData(const permafrost_tensor* tensor);

  struct Constant {
    const Tensor* value = nullptr;
    Tensor aligned;  // Set at the first request.
  };

  std::deque<Constant> constants_;
  std::vector<TensorScales> scales_;
  std::deque<permafrost_quantization> quantizations_;
  std::deque<permafrost_tensor> tensors_;
  std::deque<permafrost_node> nodes_;
  std::deque<std::string> texts_;
  std::vector<const permafrost_tensor*> tensor_pointers_;
  std::vector<const permafrost_node*> node_pointers_;
  permafrost_partition partition_;
};

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_DELEGATES_EXTERNAL_PARTITION_VIEW_H_
