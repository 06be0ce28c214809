// Cuts models at tensors, shrinks dimensions, and replaces values.
#include "tools/reduction/reducible_model.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "graph/analysis/order.h"
#include "graph/base/status.h"
#include "graph/functions/function.h"
#include "graph/ops/op_schema.h"
#include "graph/shapes/shape_inference.h"
#include "runtime_check/checking/split_mix.h"

namespace permafrost {
namespace {

std::vector<std::string> TextsOf(const std::vector<Endpoint>& endpoints) {
  std::vector<std::string> texts;
  for (const Endpoint& endpoint : endpoints) texts.push_back(endpoint.text);
  return texts;
}

// Returns the type of an output as the graph declares it; kInvalid if only the op could tell, and it is unknown.
DType TypeOf(TensorRef tensor) {
  const absl::StatusOr<std::vector<DType>> types = OutputTypes(*tensor.node);
  if (types.ok() && static_cast<size_t>(tensor.port) < types->size()) return (*types)[static_cast<size_t>(tensor.port)];
  return DType::kInvalid;
}

// Returns the type with which an input is read.
DType TypeRead(const Node& reader, int index) {
  const absl::StatusOr<std::vector<DType>> types = InputTypes(reader);
  if (types.ok() && static_cast<size_t>(index) < types->size()) return (*types)[static_cast<size_t>(index)];
  return DType::kInvalid;
}

// Returns the elements of a tensor at the first `to` places of each dimension of `from` elements.
absl::StatusOr<Tensor> FirstElements(const Tensor& tensor, int64_t from, int64_t to) {
  const Shape& shape = tensor.shape();
  std::vector<int64_t> dims(shape.dims().begin(), shape.dims().end());
  for (int64_t& dim : dims) dim = dim == from ? to : dim;
  const Shape smaller(dims);
  char* out = nullptr;
  PF_ASSIGN_OR_RETURN(Tensor result, Tensor::Allocate(tensor.dtype(), smaller, &out));
  const size_t size = SizeOf(tensor.dtype());
  const int64_t count = smaller.num_elements();
  std::vector<int64_t> at(dims.size(), 0);
  for (int64_t i = 0; i < count; ++i) {
    int64_t place = 0;
    for (int d = 0; d < shape.rank(); ++d) place = place * shape.dim(d) + at[static_cast<size_t>(d)];
    std::memcpy(out + static_cast<size_t>(i) * size, tensor.bytes().data() + static_cast<size_t>(place) * size, size);
    for (size_t d = dims.size(); d-- > 0;) {
      if (++at[d] < dims[d]) break;
      at[d] = 0;
    }
  }
  return result;
}

bool HasDimension(const Shape& shape, int64_t size) {
  return shape.has_rank() && std::find(shape.dims().begin(), shape.dims().end(), size) != shape.dims().end();
}

bool IsShapeLike(const Tensor& tensor) {
  constexpr int64_t kMostDimensions = 16;  // A list of sizes, not data.
  return (tensor.dtype() == DType::kInt32 || tensor.dtype() == DType::kInt64) && tensor.shape().rank() <= 1 &&
         tensor.num_elements() <= kMostDimensions;
}

template <typename T>
Tensor WithValue(const Tensor& tensor, int64_t from, int64_t to, bool* is_changed) {
  const auto values = tensor.elements<T>();
  std::vector<T> changed;
  for (size_t i = 0; i < values.size(); ++i) {
    const bool is_size = values[i] == static_cast<T>(from);
    *is_changed = *is_changed || is_size;
    changed.push_back(is_size ? static_cast<T>(to) : values[i]);
  }
  return Tensor::FromVector(tensor.shape(), std::move(changed));
}

}  // namespace

std::vector<std::string> ReducibleModel::InputNames() const { return TextsOf(graph->inputs()); }
std::vector<std::string> ReducibleModel::OutputNames() const { return TextsOf(graph->outputs()); }

absl::StatusOr<std::vector<std::string>> CuttableNodes(const Graph& graph) {
  PF_ASSIGN_OR_RETURN(const std::vector<Node*> order, StackTopologicalOrder(graph));
  std::vector<std::string> names;
  for (const Node* node : order) {
    if (node->op() != ops::kConst && node->op() != ops::kPlaceholder && !graph.IsInput(node)) {
      names.emplace_back(node->name());
    }
  }
  return names;
}

absl::StatusOr<ModelPart> PartOf(const ReducibleModel& whole, const absl::flat_hash_set<std::string>& kept) {
  ModelPart part;
  part.model.graph = whole.graph->Clone();
  Graph& graph = *part.model.graph;
  const absl::StatusOr<ShapeMap> shapes = InferShapes(*whole.graph);
  const auto is_kept = [&](const Node& node) { return kept.contains(node.name()); };
  const auto is_source = [&](const Node& node) {
    return node.op() == ops::kConst || node.op() == ops::kPlaceholder || graph.IsInput(&node);
  };
  // Outputs: what nodes outside read, and what was an output.
  std::vector<std::string> outputs;
  std::set<std::pair<std::string, int>> seen;
  const auto add_output = [&](const Node& node, int port) {
    if (!seen.emplace(node.name(), port).second) return;
    outputs.push_back(port == 0 ? std::string(node.name()) : absl::StrCat(node.name(), ":", port));
  };
  for (const Endpoint& output : graph.outputs()) {
    if (output.node != nullptr && is_kept(*output.node)) add_output(*output.node, output.port);
  }
  const std::vector<Node*> nodes = graph.Nodes();
  for (Node* node : nodes) {
    if (is_kept(*node) || is_source(*node)) continue;
    for (int i = 0; i < node->num_data_inputs(); ++i) {
      const TensorRef read = node->input(i);
      if (is_kept(*read.node)) add_output(*read.node, read.port);
    }
  }
  for (Node* node : nodes) {
    const bool has_readers = std::any_of(node->uses().begin(), node->uses().end(), [&](const Use& use) {
      return !use.consumer->input(static_cast<int>(use.index)).is_control();
    });
    if (is_kept(*node) && !has_readers) add_output(*node, 0);
  }
  if (outputs.empty()) return absl::FailedPreconditionError("no node remains");

  // Inputs: those that remain, then the cut tensors.
  absl::flat_hash_map<TensorRef, Node*> placeholders;
  for (Node* node : nodes) {
    if (!is_kept(*node)) continue;
    for (int i = node->num_inputs() - 1; i >= 0; --i) {
      const TensorRef read = node->input(i);
      if (is_kept(*read.node) || (!read.is_control() && is_source(*read.node))) continue;
      if (read.is_control()) {
        graph.RemoveInput(node, i);
        continue;
      }
      Node*& placeholder = placeholders[read];
      if (placeholder == nullptr) {
        DType type = TypeOf(read);
        if (type == DType::kInvalid) type = TypeRead(*node, i);
        if (type == DType::kInvalid || type == DType::kResource || type == DType::kVariant) {
          return absl::FailedPreconditionError(absl::StrCat("the type of '", read.ToString(), "' cannot be an input"));
        }
        const std::string base =
            read.port == 0 ? std::string(read.node->name()) : absl::StrCat(read.node->name(), "_", read.port);
        PF_ASSIGN_OR_RETURN(
            placeholder, graph.AddNode(graph.UniqueName(absl::StrCat(base, "_value")), ops::kPlaceholder, read.node));
        placeholder->SetAttr("dtype", AttrValue::Type(type));
        const Node* original = whole.graph->Find(read.node->name());
        if (shapes.ok() && original != nullptr) {
          placeholder->SetAttr("shape", AttrValue::OfShape(shapes->Of({const_cast<Node*>(original), read.port})));
        }
        part.cut.push_back({read.ToString(), std::string(placeholder->name())});
      }
      graph.SetInput(node, i, {placeholder, 0});
    }
  }
  std::vector<std::string> inputs;
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    const Endpoint& input = graph.inputs()[i];
    if (input.node == nullptr) continue;
    const bool is_read = std::any_of(input.node->uses().begin(), input.node->uses().end(),
                                     [&](const Use& use) { return is_kept(*use.consumer); });
    if (!is_read) continue;
    inputs.push_back(input.text);
    part.model.inputs.push_back(i < whole.inputs.size() ? whole.inputs[i] : Tensor());
  }
  for (const CutTensor& cut : part.cut) {
    inputs.push_back(cut.placeholder);
    part.model.inputs.emplace_back();
  }
  PF_RETURN_IF_ERROR(graph.DeclareInterface(inputs, outputs));

  // Everything that the kept nodes do not read goes.
  std::vector<bool> remove(graph.id_limit(), false);
  for (Node* node : graph.Nodes()) {
    const bool is_read =
        std::any_of(node->uses().begin(), node->uses().end(), [&](const Use& use) { return is_kept(*use.consumer); });
    if (!is_kept(*node) && !(is_read && (is_source(*node) || node->op() == ops::kPlaceholder))) {
      remove[node->id()] = true;
    }
  }
  // Control inputs of constants from nodes that go.
  for (Node* node : graph.Nodes()) {
    if (remove[node->id()]) continue;
    for (int i = node->num_inputs() - 1; i >= 0; --i) {
      if (node->input(i).is_control() && remove[node->input(i).node->id()]) graph.RemoveInput(node, i);
    }
  }
  PF_RETURN_IF_ERROR(graph.RemoveNodes(remove));
  if (!part.model.graph->library().empty()) {
    if (absl::StatusOr<FunctionLibrary> library = FunctionLibrary::Of(graph); library.ok()) {
      const auto called = library->Reachable(library->CalledBy(graph));
      if (called.ok()) {
        library->Retain(*called);
        library->Store(&graph);
      }
    }
  }
  return part;
}

void SetInputValue(ReducibleModel* model, size_t index, Tensor value) {
  Node* node = model->graph->inputs()[index].node;
  if (node != nullptr && node->op() == ops::kPlaceholder) {
    node->SetAttr("dtype", AttrValue::Type(value.dtype()));
    node->SetAttr("shape", AttrValue::OfShape(value.shape()));
  }
  model->inputs[index] = std::move(value);
}

absl::StatusOr<std::unique_ptr<ReducibleModel>> WithSmallerDimension(const ReducibleModel& model, int64_t from,
                                                                     int64_t to) {
  auto smaller = std::make_unique<ReducibleModel>(model.Copy());
  bool is_changed = false;
  for (Node* node : smaller->graph->Nodes()) {
    if (node->op() != ops::kConst) continue;
    absl::StatusOr<Tensor> value = ConstValue(*node);
    if (!value.ok() || value->dtype() == DType::kString) continue;
    if (IsShapeLike(*value)) {
      bool has_size = false;
      Tensor changed = value->dtype() == DType::kInt32 ? WithValue<int32_t>(*value, from, to, &has_size)
                                                       : WithValue<int64_t>(*value, from, to, &has_size);
      if (has_size) node->SetAttr("value", AttrValue::OfTensor(std::move(changed)));
    } else if (HasDimension(value->shape(), from)) {
      PF_ASSIGN_OR_RETURN(Tensor first, FirstElements(*value, from, to));
      node->SetAttr("value", AttrValue::OfTensor(std::move(first)));
      is_changed = true;
    }
  }
  for (size_t i = 0; i < smaller->inputs.size(); ++i) {
    const Tensor& value = smaller->inputs[i];
    if (value.dtype() == DType::kInvalid || value.dtype() == DType::kString || !HasDimension(value.shape(), from)) {
      continue;
    }
    PF_ASSIGN_OR_RETURN(Tensor first, FirstElements(value, from, to));
    SetInputValue(smaller.get(), i, std::move(first));
    is_changed = true;
  }
  if (!is_changed) smaller.reset();
  return smaller;
}

std::vector<int64_t> DimensionSizes(const ReducibleModel& model) {
  std::set<int64_t> sizes;
  const auto add = [&](const Shape& shape) {
    if (shape.has_rank()) sizes.insert(shape.dims().begin(), shape.dims().end());
  };
  for (const Tensor& value : model.inputs) {
    if (value.dtype() != DType::kInvalid) add(value.shape());
  }
  for (const Node* node = model.graph->first(); node != nullptr; node = node->next()) {
    if (node->op() != ops::kConst) continue;
    const absl::StatusOr<Tensor> value = ConstValue(*node);
    if (value.ok() && value->dtype() != DType::kString && !IsShapeLike(*value)) add(value->shape());
  }
  std::vector<int64_t> result;
  for (auto size = sizes.rbegin(); size != sizes.rend(); ++size) {
    if (*size > 1) result.push_back(*size);
  }
  return result;
}

Tensor NoiseLike(const Tensor& tensor, uint64_t seed) {
  if (tensor.dtype() != DType::kFloat) return tensor;
  const auto values = tensor.elements<float>();
  double sum = 0, squares = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    sum += values[i];
    squares += static_cast<double>(values[i]) * values[i];
  }
  const double count = std::max<double>(1, static_cast<double>(values.size()));
  const double mean = sum / count, deviation = std::sqrt(std::max(0.0, squares / count - mean * mean));
  SplitMix64 random(seed);
  std::vector<float> noise;
  // Uniform over mean +- sqrt(3) deviations, which has that deviation; over half the mean on both sides if all are
  // equal.
  for (size_t i = 0; i < values.size(); ++i) {
    const double unit = static_cast<double>(random.Next() >> 11) * 0x1p-53;
    const double reach = deviation > 0 ? deviation * std::sqrt(3.0) : std::fabs(mean) / 2;
    noise.push_back(static_cast<float>(mean + reach * (2 * unit - 1)));
  }
  return Tensor::FromVector(tensor.shape(), std::move(noise));
}

}  // namespace permafrost
