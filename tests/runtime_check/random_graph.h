// Random graphs of matrices that all have the same shape, for tests that compare two ways to run a graph.
#ifndef PERMAFROST_TESTS_RUNTIME_CHECK_RANDOM_GRAPH_H_
#define PERMAFROST_TESTS_RUNTIME_CHECK_RANDOM_GRAPH_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "tests/runtime_check/small_graph.h"

namespace permafrost {

// Kinds of nodes in a random graph. Some read a tensor by name, which the caller adds.
enum class RandomNode {
  kNeg,
  kRelu,
  kTanh,
  kSoftmax,
  kIdentity,
  kAdd,
  kSubtract,
  kMultiply,       // By "c", one value for each column.
  kMatMul,         // By "w".
  kReshape,        // To "shape".
  kReshapeByFeed,  // To "dims", which may be fed.
  kSplitAndJoin,   // Into two along "axis" and back, in the other order.
};

// A graph with a placeholder "x". Equal seeds and calls give equal graphs.
class RandomGraph : public SmallGraph {
 public:
  RandomGraph(uint32_t seed, const Shape& x) : random_(seed), tensors_({"x"}) { Placeholder("x", DType::kFloat, x); }

  // Adds between `least` and `most` nodes of these kinds, each with inputs among the last `reach` tensors.
  void AddNodes(int least, int most, absl::Span<const RandomNode> kinds, size_t reach) {
    reach_ = reach;
    const int count = least + static_cast<int>(random_() % static_cast<uint32_t>(most - least + 1));
    for (int i = 0; i < count; ++i) AddNode(absl::StrCat("n", i), kinds[random_() % kinds.size()]);
  }

  // Returns names of tensors, starting with the last one.
  std::vector<std::string> SomeTensors(size_t count) {
    std::vector<std::string> some = {tensors_.back()};
    while (some.size() < count) some.push_back(Any());
    return some;
  }

  // Returns values between -scale and scale.
  Tensor RandomFloats(const Shape& shape, float scale) {
    std::vector<float> values;
    for (int64_t i = 0; i < shape.num_elements(); ++i) {
      values.push_back((static_cast<float>(random_() % 2000) / 1000 - 1) * scale);
    }
    return Floats(shape, std::move(values));
  }

 private:
  std::string Any() { return tensors_[tensors_.size() - 1 - random_() % std::min(tensors_.size(), reach_)]; }

  void AddNode(const std::string& name, RandomNode kind) {
    const auto float_type = std::pair<std::string, AttrValue>("T", AttrValue::Type(DType::kFloat));
    const auto reshape = [&](const std::string& shape) {
      Add(name, "Reshape", {Any(), shape}, {float_type, {"Tshape", AttrValue::Type(DType::kInt32)}});
    };
    std::string result = name;
    switch (kind) {
      case RandomNode::kNeg:
        Float(name, "Neg", {Any()});
        break;
      case RandomNode::kRelu:
        Float(name, "Relu", {Any()});
        break;
      case RandomNode::kTanh:
        Float(name, "Tanh", {Any()});
        break;
      case RandomNode::kSoftmax:
        Float(name, "Softmax", {Any()});
        break;
      case RandomNode::kIdentity:
        Float(name, "Identity", {Any()});
        break;
      case RandomNode::kAdd:
        Float(name, "AddV2", {Any(), Any()});
        break;
      case RandomNode::kSubtract:
        Float(name, "Sub", {Any(), Any()});
        break;
      case RandomNode::kMultiply:
        Float(name, "Mul", {Any(), "c"});
        break;
      case RandomNode::kMatMul:
        Float(name, "MatMul", {Any(), "w"});
        break;
      case RandomNode::kReshape:
        reshape("shape");
        break;
      case RandomNode::kReshapeByFeed:
        reshape("dims");
        break;
      case RandomNode::kSplitAndJoin:
        Add(name, "Split", {"axis", Any()}, {float_type, {"num_split", AttrValue::Int(2)}});
        result = name + "_joined";
        Add(result, "ConcatV2", {name + ":1", name, "axis"},
            {float_type, {"N", AttrValue::Int(2)}, {"Tidx", AttrValue::Type(DType::kInt32)}});
        break;
    }
    tensors_.push_back(result);
  }

  std::mt19937 random_;
  std::vector<std::string> tensors_;
  size_t reach_ = 1;
};

}  // namespace permafrost

#endif  // PERMAFROST_TESTS_RUNTIME_CHECK_RANDOM_GRAPH_H_
