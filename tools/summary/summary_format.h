// Formats numbers and tensors as TensorFlow's summarize_graph does, for scripts that parse its lines.
#ifndef PERMAFROST_TOOLS_SUMMARY_SUMMARY_FORMAT_H_
#define PERMAFROST_TOOLS_SUMMARY_SUMMARY_FORMAT_H_

#include <cstdint>
#include <string>

#include "graph/tensor.h"

namespace permafrost {

// Returns, for example, "913", "1.91k", "22.38M": two decimals above 999, in steps of 1000.
std::string HumanCount(int64_t value);

// Returns, for example, "Tensor<type: float shape: [512,1] values: [-0.028][-0.062][0.083]...>": the first three
// elements, with brackets round each row.
std::string TensorText(const Tensor& tensor);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_SUMMARY_SUMMARY_FORMAT_H_
