// Builds small graphs of images for tests of delegates.
#ifndef PERMAFROST_TESTS_RUNTIME_CHECK_DELEGATES_IMAGE_GRAPH_H_
#define PERMAFROST_TESTS_RUNTIME_CHECK_DELEGATES_IMAGE_GRAPH_H_

#include <string>
#include <utility>
#include <vector>

#include "tests/runtime_check/delegates/delegate_run.h"
#include "tests/runtime_check/small_graph.h"

namespace permafrost {

// Contains a placeholder "x".
class ImageGraph : public SmallGraph {
 public:
  explicit ImageGraph(const Shape& input) { Placeholder("x", DType::kFloat, input); }

  Node* Weights(const std::string& name, const Shape& shape) { return Const(name, SomeFloats(shape, ++seed_)); }

  // Adds a filter [height, width, ...] for this convolution.
  Node* Window(const std::string& name, const std::string& op, const std::string& input, const Shape& filter,
               int64_t stride, int64_t dilation, const std::string& padding) {
    Weights(name + "/filter", filter);
    Node* node = Float(name, op, {input, name + "/filter"});
    node->SetAttr("strides", AttrValue::IntList({1, stride, stride, 1}));
    node->SetAttr("dilations", AttrValue::IntList({1, dilation, dilation, 1}));
    node->SetAttr("padding", AttrValue::String(padding));
    if (padding == "EXPLICIT") node->SetAttr("explicit_paddings", AttrValue::IntList({0, 0, 2, 1, 0, 3, 0, 0}));
    return node;
  }
  Node* Convolution(const std::string& name, const std::string& input, const Shape& filter) {
    return Window(name, "Conv2D", input, filter, 1, 1, "SAME");
  }
  Node* Ints(const std::string& name, std::vector<int32_t> values) {
    const Shape shape = {static_cast<int64_t>(values.size())};
    return Const(name, Tensor::FromVector<int32_t>(shape, std::move(values)));
  }

 private:
  uint32_t seed_ = 100;
};

}  // namespace permafrost

#endif  // PERMAFROST_TESTS_RUNTIME_CHECK_DELEGATES_IMAGE_GRAPH_H_
