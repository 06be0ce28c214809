// Implements the import of subgraphs: visits their operators in order and adds their nodes.
#include "io/formats/tflite/subgraph_import.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "graph/analysis/uniform_quantization.h"
#include "graph/analysis/variable_initializers.h"
#include "graph/base/status.h"
#include "graph/base/wire.h"
#include "graph/functions/function_definition.h"
#include "graph/ops/op_schema.h"
#include "io/formats/tflite/operator_import.h"

namespace permafrost {
namespace {

// Further problems are counted but not listed.
constexpr size_t kMostProblems = 20;
// Maximum nesting of calls between subgraphs. IF and WHILE of real models nest about 5 deep.
constexpr size_t kMostCalls = 64;

}  // namespace

absl::StatusOr<std::unique_ptr<Graph>> ImportTflite(TfliteContainer container, int entry,
                                                    std::vector<OperatorTrace>* trace) {
  const int64_t count = container.model().subgraphs()->size();
  if (entry < 0 || entry >= count) {
    return absl::InvalidArgumentError(absl::StrCat("found subgraph ", entry, ", expected less than ", count));
  }
  auto graph = std::make_unique<Graph>();
  ModelImport model(&container, graph.get());
  SubgraphImport import(&model, entry, SubgraphRole::kGraph, graph.get());
  import.set_trace(trace);
  PF_RETURN_IF_ERROR(import.Run());
  PF_RETURN_IF_ERROR(model.Finish(graph.get()));
  return graph;
}

absl::StatusOr<FunctionRef> ModelImport::FunctionOf(int subgraph) {
  const int64_t count = container_->model().subgraphs()->size();
  if (subgraph < 0 || subgraph >= count) {
    return absl::InvalidArgumentError(absl::StrCat("found subgraph ", subgraph, ", expected less than ", count));
  }
  const auto found = functions_.find(subgraph);
  if (found != functions_.end()) return FunctionRef{found->second, {}};
  if (under_way_.size() >= kMostCalls) {
    return absl::InvalidArgumentError(absl::StrCat("subgraphs call each other more than ", kMostCalls, " deep"));
  }
  if (!under_way_.insert(subgraph).second) {
    return absl::InvalidArgumentError(absl::StrCat("subgraph ", subgraph, " calls itself"));
  }
  auto body = std::make_unique<Graph>();
  SubgraphImport import(this, subgraph, SubgraphRole::kFunction, body.get());
  PF_RETURN_IF_ERROR(Annotate(import.Run(), absl::StrCat("subgraph ", subgraph)));
  under_way_.erase(subgraph);
  if (import.is_stateful()) stateful_.insert(subgraph);
  const std::string name = absl::StrCat("subgraph_", subgraph);
  functions_[subgraph] = name;
  body_names_.push_back(name);
  bodies_.push_back(std::move(body));
  return FunctionRef{name, {}};
}

namespace {

std::string ResourceKey(absl::string_view container, absl::string_view name) {
  return absl::StrCat(container.size(), "/", container, name);
}

absl::string_view TextOf(const flatbuffers::String* text) {
  return text == nullptr ? absl::string_view() : absl::string_view(text->c_str(), text->size());
}

}  // namespace

// Visits the operators of each subgraph in order: the type of a variable is that of the value that READ_VARIABLE
// returns or ASSIGN_VARIABLE takes.
void ModelImport::FindVariables() {
  has_found_variables_ = true;
  absl::flat_hash_set<std::string> has_constant;
  for (uint32_t s = 0; s < container_->model().subgraphs()->size(); ++s) {
    const tflite::SubGraph& subgraph = container_->subgraph(static_cast<int>(s));
    if (subgraph.operators() == nullptr) continue;
    absl::flat_hash_map<int32_t, std::string> names;  // By tensor.
    for (const tflite::Operator* op : *subgraph.operators()) {
      const tflite::BuiltinOperator number = container_->OperatorOf(*op);
      const auto tensor_at = [](const flatbuffers::Vector<int32_t>* tensors, uint32_t i) {
        return tensors == nullptr || i >= tensors->size() ? -1 : tensors->Get(i);
      };
      if (number == tflite::BuiltinOperator::VAR_HANDLE) {
        const auto* options = op->builtin_options_as<tflite::VarHandleOptions>();
        const int32_t handle = tensor_at(op->outputs(), 0);
        if (options == nullptr || handle < 0) continue;
        names[handle] = ResourceKey(TextOf(options->container()), TextOf(options->shared_name()));
        continue;
      }
      const bool reads = number == tflite::BuiltinOperator::READ_VARIABLE;
      if (!reads && number != tflite::BuiltinOperator::ASSIGN_VARIABLE) continue;
      const auto name = names.find(tensor_at(op->inputs(), 0));
      const int32_t value = reads ? tensor_at(op->outputs(), 0) : tensor_at(op->inputs(), 1);
      if (name == names.end() || value < 0) continue;
      const tflite::Tensor& tensor = container_->tensor(static_cast<int>(s), value);
      const DType dtype = DTypeOfTflite(tensor.type());
      const absl::StatusOr<Shape> shape = OpenShapeOfTflite(tensor);
      const auto [found, is_new] = variables_.try_emplace(name->second);
      Variable& variable = found->second;
      if (is_new) variable.dtype = dtype;
      if (variable.dtype != dtype) variable.dtype = DType::kInvalid;
      if (reads) continue;
      if (container_->IsConstant(tensor)) has_constant.insert(name->second);
      if (!shape.ok() || !shape->IsFullyKnown()) {
        variable.shape = Shape({-1});  // No shape equals it.
      } else if (!variable.shape.has_rank()) {
        variable.shape = *shape;
      } else if (variable.shape != *shape) {
        variable.shape = Shape({-1});
      }
    }
  }
  for (auto& [name, variable] : variables_) {
    if (!variable.shape.IsFullyKnown() || !has_constant.contains(name)) variable.shape = Shape::UnknownRank();
  }
}

ModelImport::Variable ModelImport::VariableOf(const tflite::VarHandleOptions& options) {
  if (!has_found_variables_) FindVariables();
  const auto found = variables_.find(ResourceKey(TextOf(options.container()), TextOf(options.shared_name())));
  return found == variables_.end() ? Variable() : found->second;
}

namespace {

absl::StatusOr<Node*> AddHandleNode(Graph* graph, std::string name, const std::string& container,
                                    const std::string& shared_name, const ModelImport::Variable& variable) {
  PF_ASSIGN_OR_RETURN(Node * node, graph->AddNode(std::move(name), ops::kVarHandleOp));
  node->SetAttr("container", AttrValue::String(container));
  node->SetAttr("shared_name", AttrValue::String(shared_name));
  node->SetAttr("dtype", AttrValue::Type(variable.dtype));
  node->SetAttr("shape", AttrValue::OfShape(variable.shape));
  return node;
}

}  // namespace

std::string NodeNameOfTensor(absl::string_view text) {
  // Converters write the first output of a node as "name:0".
  std::string name(absl::StripSuffix(text, ":0"));
  for (char& c : name) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '_' && c != '-' && c != '/') c = '_';
  }
  // The first character must be a letter, a digit or a dot.
  if (name.empty() || (!absl::ascii_isalnum(static_cast<unsigned char>(name[0])) && name[0] != '.'))
    name = absl::StrCat("t", name);
  return name;
}

absl::StatusOr<Node*> ModelImport::AddHandle(const std::string& container, const std::string& shared_name,
                                             const Variable& variable) {
  Node*& handle = handles_[ResourceKey(container, shared_name)];
  if (handle == nullptr) {
    PF_ASSIGN_OR_RETURN(handle, AddHandleNode(graph_, graph_->UniqueName(NodeNameOfTensor(shared_name)), container,
                                              shared_name, variable));
  }
  return handle;
}

namespace {

// Number and types determine the table.
absl::StatusOr<Node*> AddTableNode(Graph* graph, const tflite::HashtableOptions& options) {
  const std::string name = absl::StrCat("tflite_table/", options.table_id());
  PF_ASSIGN_OR_RETURN(Node * node, graph->AddNode(graph->UniqueName(name), ops::kHashTableV2));
  node->SetAttr("shared_name", AttrValue::String(name));
  node->SetAttr("key_dtype", AttrValue::Type(DTypeOfTflite(options.key_dtype())));
  node->SetAttr("value_dtype", AttrValue::Type(DTypeOfTflite(options.value_dtype())));
  return node;
}

}  // namespace

absl::StatusOr<Node*> ModelImport::AddTable(const tflite::HashtableOptions& options) {
  Node*& table = tables_[options.table_id()];
  if (table == nullptr) {
    PF_ASSIGN_OR_RETURN(table, AddTableNode(graph_, options));
  }
  return table;
}

absl::StatusOr<Node*> ModelImport::AddInitializer(Node* handle, TensorRef value) {
  const std::string name = VariableInitializerName(*handle);
  if (Node* earlier = graph_->Find(name); earlier != nullptr) {
    PF_RETURN_IF_ERROR(graph_->Rename(earlier, graph_->UniqueName(name)));
  }
  PF_ASSIGN_OR_RETURN(Node * node, graph_->AddNode(name, ops::kAssignVariableOp));
  graph_->AddInput(node, {handle, 0});
  graph_->AddInput(node, value);
  PF_ASSIGN_OR_RETURN(const DType dtype, TypeAttr(*handle, "dtype"));
  node->SetAttr("dtype", AttrValue::Type(dtype));
  return node;
}

absl::Status ModelImport::CallOnce(int subgraph) {
  const int64_t count = container_->model().subgraphs()->size();
  if (subgraph < 0 || subgraph >= count) {
    return absl::InvalidArgumentError(absl::StrCat("found subgraph ", subgraph, ", expected less than ", count));
  }
  if (!initializers_.insert(subgraph).second) return absl::OkStatus();
  return Annotate(SubgraphImport(this, subgraph, SubgraphRole::kInitializer, graph_).Run(),
                  absl::StrCat("subgraph ", subgraph));
}

absl::Status ModelImport::Finish(Graph* graph) {
  if (!problems_.empty()) {
    const size_t shown = std::min(problems_.size(), kMostProblems);
    std::string text = absl::StrJoin(problems_.begin(), problems_.begin() + static_cast<ptrdiff_t>(shown), "; ");
    if (shown < problems_.size()) absl::StrAppend(&text, "; and ", problems_.size() - shown, " more");
    return absl::UnimplementedError(absl::StrCat(problems_.size(), problems_.size() == 1 ? " operator" : " operators",
                                                 " cannot be imported: ", text));
  }
  if (bodies_.empty()) return absl::OkStatus();
  std::string functions;
  for (size_t i = 0; i < bodies_.size(); ++i) functions += EmptyFunction(body_names_[i], *bodies_[i]);
  // Field 2 is GraphDef.library.
  std::string library;
  AppendBytesField(2, functions, &library);
  graph->set_library(library);
  PF_ASSIGN_OR_RETURN(FunctionLibrary filled, FunctionLibrary::Of(*graph));
  for (size_t i = 0; i < bodies_.size(); ++i) PF_RETURN_IF_ERROR(filled.SetBody(body_names_[i], *bodies_[i]));
  filled.Store(graph);
  return absl::OkStatus();
}

std::string SubgraphImport::TensorName(int i) const {
  const auto* name = tensor(i).name();
  return name == nullptr || name->size() == 0 ? absl::StrCat("tensor_", i) : std::string(name->c_str(), name->size());
}

std::string SubgraphImport::NodeName(absl::string_view text) const {
  return graph_->UniqueName(NodeNameOfTensor(text));
}

// --- State -----------------------------------------------------------------------------------------------------------

absl::StatusOr<Node*> SubgraphImport::HandleOf(const std::string& container, const std::string& shared_name,
                                               const ModelImport::Variable& variable) {
  if (variable.dtype == DType::kInvalid) {
    return absl::UnimplementedError(
        absl::StrCat("the operators that read and assign the variable '", absl::CEscape(shared_name),
                     "' are in other subgraphs or have several types, so its type is not known"));
  }
  // The graph's handle is the one that is initialised.
  PF_ASSIGN_OR_RETURN(Node * handle, model_->AddHandle(container, shared_name, variable));
  if (role_ != SubgraphRole::kFunction) return handle;
  Node*& own = handles_[ResourceKey(container, shared_name)];
  if (own == nullptr) {
    PF_ASSIGN_OR_RETURN(own, AddHandleNode(graph_, NodeName(shared_name), container, shared_name, variable));
  }
  return own;
}

absl::StatusOr<Node*> SubgraphImport::TableOf(const tflite::HashtableOptions& options) {
  PF_ASSIGN_OR_RETURN(Node * table, model_->AddTable(options));
  if (role_ != SubgraphRole::kFunction) return table;
  Node*& own = tables_[options.table_id()];
  if (own == nullptr) {
    PF_ASSIGN_OR_RETURN(own, AddTableNode(graph_, options));
  }
  return own;
}

absl::StatusOr<Node*> SubgraphImport::StateOf(int i) {
  Node*& state = states_[i];
  if (state != nullptr) return state;
  const std::string place = absl::StrCat("tensor ", i, " '", absl::CEscape(TensorName(i)), "'");
  if (!tensor(i).is_variable() || values_[static_cast<size_t>(i)].node != nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("its state, ", place, ", is not a variable tensor"));
  }
  absl::StatusOr<Tensor> initial = model_->container().InitialState(tensor(i));
  PF_RETURN_IF_ERROR(Annotate(initial.status(), place));
  ModelImport::Variable variable;
  variable.dtype = initial->dtype();
  variable.shape = initial->shape();
  // Names of tensors need not be unique.
  const std::string name = absl::StrCat("tflite_state/", index_, "/", i, "/", TensorName(i));
  PF_ASSIGN_OR_RETURN(state, HandleOf("", name, variable));
  Graph& graph = model_->graph();
  PF_ASSIGN_OR_RETURN(Node * handle, model_->AddHandle("", name, variable));
  PF_ASSIGN_OR_RETURN(Node * value,
                      graph.AddConst(graph.UniqueName(absl::StrCat(handle->name(), "/initial")), *std::move(initial)));
  PF_RETURN_IF_ERROR(model_->AddInitializer(handle, {value, 0}).status());
  return state;
}

void SubgraphImport::Order(Node* node, const Node* handle, bool changes) {
  is_stateful_ = true;
  const auto follow = [&](Node* other) {
    if (other != nullptr) graph_->AddControlInput(node, other);
  };
  if (handle == nullptr || handle->op() == ops::k_Arg) {
    follow(barrier_);
    for (const Node* resource : resources_) {
      follow(effects_[resource].last_change);
      for (Node* read : effects_[resource].reads) follow(read);
    }
    resources_.clear();
    effects_.clear();
    barrier_ = node;
    return;
  }
  const auto [found, is_new] = effects_.try_emplace(handle);
  if (is_new) {
    resources_.push_back(handle);
    found->second.last_change = barrier_;
  }
  Effects& effects = found->second;
  follow(effects.last_change);
  if (!changes) {
    effects.reads.push_back(node);
    return;
  }
  for (Node* read : effects.reads) follow(read);
  effects.last_change = node;
  effects.reads.clear();
}

absl::StatusOr<Node*> SubgraphImport::AllEffects() {
  std::vector<Node*> last;
  if (barrier_ != nullptr) last.push_back(barrier_);
  for (const Node* resource : resources_) {
    Node* change = effects_[resource].last_change;
    if (change != nullptr && change != barrier_) last.push_back(change);
  }
  if (last.size() < 2) return last.empty() ? nullptr : last[0];
  PF_ASSIGN_OR_RETURN(Node * node, graph_->AddNode(NodeName("all_effects"), ops::kNoOp));
  for (Node* effect : last) graph_->AddControlInput(node, effect);
  return node;
}

absl::StatusOr<const Tensor*> SubgraphImport::ConstantOf(int i) {
  const auto found = constants_.find(i);
  if (found != constants_.end()) return &found->second;
  TfliteContainer& container = model_->container();
  if (!container.IsConstant(tensor(i))) return nullptr;
  absl::StatusOr<Tensor> value = container.Value(tensor(i));
  PF_RETURN_IF_ERROR(Annotate(value.status(), absl::StrCat("tensor ", i, " '", absl::CEscape(TensorName(i)), "'")));
  return &constants_.emplace(i, *std::move(value)).first->second;
}

absl::StatusOr<TensorRef> SubgraphImport::ValueOf(int i) {
  TensorRef& value = values_[static_cast<size_t>(i)];
  if (value.node != nullptr) return value;
  PF_ASSIGN_OR_RETURN(const Tensor* constant, ConstantOf(i));
  if (constant == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("tensor ", i, " '", absl::CEscape(TensorName(i)),
                                                   "' is read, and neither an input, a constant nor a result of an "
                                                   "earlier operator"));
  }
  PF_ASSIGN_OR_RETURN(Node * node, graph_->AddConst(NodeName(TensorName(i)), *constant));
  value = {node, 0};
  return value;
}

void SubgraphImport::Scales::SetAttrs(Node* node) const {
  node->SetAttr("quantization_axis", AttrValue::Int(axis));
  node->SetAttr("quantization_min_val", AttrValue::Int(lowest));
  node->SetAttr("quantization_max_val", AttrValue::Int(highest));
}

absl::StatusOr<SubgraphImport::Scales> SubgraphImport::ScalesOf(int i) {
  const auto found = scales_.find(i);
  if (found != scales_.end()) return found->second;
  const tflite::QuantizationParameters& quantization = *tensor(i).quantization();
  const std::string place = absl::StrCat("tensor ", i, " '", absl::CEscape(TensorName(i)), "'");
  if (quantization.details() != nullptr) {
    return absl::UnimplementedError(
        absl::StrCat("reads ", place, ", which has scales of blocks or of several axes; these are not supported"));
  }
  Scales result;
  const uint32_t count = quantization.scale()->size();
  const auto* points = quantization.zero_point();
  const uint32_t num_points = points == nullptr ? 0 : points->size();
  if (count > 1) {
    PF_ASSIGN_OR_RETURN(const Shape shape, ShapeOfTflite(tensor(i)));
    result.axis = quantization.quantized_dimension();
    if (result.axis < 0 || result.axis >= shape.rank() || shape.dim(result.axis) != count) {
      return absl::InvalidArgumentError(
          absl::StrCat(place, " of shape ", shape.ToString(), " has ", count, " scales for dimension ", result.axis));
    }
  }
  if (num_points > 1 && num_points != count) {
    return absl::InvalidArgumentError(absl::StrCat(place, " has ", num_points, " zero points and ", count, " scales"));
  }
  const CodeLimits limits = LimitsOf(DTypeOfTflite(tensor(i).type()));
  result.lowest = limits.low;
  result.highest = limits.high;
  std::vector<float> scales(count);
  std::vector<int32_t> zero_points(count, 0);
  for (uint32_t k = 0; k < count; ++k) {
    scales[k] = quantization.scale()->Get(k);
    if (!(scales[k] > 0) || !std::isfinite(scales[k])) {
      return absl::InvalidArgumentError(
          absl::StrCat(place, " has the scale ", scales[k], ", expected a positive finite number"));
    }
    const int64_t point = num_points == 0 ? 0 : points->Get(num_points == 1 ? 0 : k);
    if (point < limits.low || point > limits.high) {
      return absl::InvalidArgumentError(
          absl::StrCat(place, " has the zero point ", point, ", expected ", limits.low, " to ", limits.high));
    }
    zero_points[k] = static_cast<int32_t>(point);
  }
  const std::string name = TensorName(i);
  const Shape shape = count > 1 ? Shape({count}) : Shape();
  PF_ASSIGN_OR_RETURN(Node * scale_node, graph_->AddConst(NodeName(absl::StrCat(name, "/scales")),
                                                          Tensor::FromVector(shape, std::move(scales))));
  PF_ASSIGN_OR_RETURN(Node * point_node, graph_->AddConst(NodeName(absl::StrCat(name, "/zero_points")),
                                                          Tensor::FromVector(shape, std::move(zero_points))));
  result.scales = {scale_node, 0};
  result.zero_points = {point_node, 0};
  scales_.emplace(i, result);
  return result;
}

absl::StatusOr<TensorRef> SubgraphImport::DequantizedOf(int i) {
  const auto found = dequantized_.find(i);
  if (found != dequantized_.end()) return found->second;
  PF_ASSIGN_OR_RETURN(const TensorRef codes, ValueOf(i));
  PF_ASSIGN_OR_RETURN(const Scales scales, ScalesOf(i));
  PF_ASSIGN_OR_RETURN(Node * node,
                      graph_->AddNode(NodeName(absl::StrCat(TensorName(i), "/Dequantize")), UniformDequantizeOp()));
  for (const TensorRef input : {codes, scales.scales, scales.zero_points}) graph_->AddInput(node, input);
  node->SetAttr("Tin", AttrValue::Type(DTypeOfTflite(tensor(i).type())));
  node->SetAttr("Tout", AttrValue::Type(DType::kFloat));
  scales.SetAttrs(node);
  dequantized_.emplace(i, TensorRef{node, 0});
  return TensorRef{node, 0};
}

absl::Status SubgraphImport::AddInputs() {
  const bool is_function = role_ == SubgraphRole::kFunction;
  const auto* inputs = subgraph().inputs();
  const uint32_t count = inputs == nullptr ? 0 : inputs->size();
  std::vector<std::string> names;
  for (uint32_t i = 0; i < count; ++i) {
    const int index = inputs->Get(i);
    const DType dtype = DTypeOfTflite(tensor(index).type());
    if (dtype == DType::kInvalid) {
      return absl::UnimplementedError(
          absl::StrCat("input ", i, " is of type ", tflite::EnumNameTensorType(tensor(index).type())));
    }
    if (values_[static_cast<size_t>(index)].node != nullptr) {
      return absl::InvalidArgumentError(absl::StrCat("inputs: found tensor ", index, " twice"));
    }
    PF_ASSIGN_OR_RETURN(Node * node,
                        graph_->AddNode(NodeName(TensorName(index)), is_function ? ops::k_Arg : ops::kPlaceholder));
    if (is_function) {
      node->SetAttr("T", AttrValue::Type(dtype));
      node->SetAttr("index", AttrValue::Int(i));
    } else {
      PF_ASSIGN_OR_RETURN(const Shape shape, OpenShapeOfTflite(tensor(index)));
      node->SetAttr("dtype", AttrValue::Type(dtype));
      node->SetAttr("shape", AttrValue::OfShape(shape));
    }
    values_[static_cast<size_t>(index)] = {node, 0};
  }
  return absl::OkStatus();
}

absl::Status SubgraphImport::AddOutputs() {
  const bool is_function = role_ == SubgraphRole::kFunction;
  const auto* outputs = subgraph().outputs();
  const uint32_t count = outputs == nullptr ? 0 : outputs->size();
  std::vector<std::string> input_names, output_names;
  if (is_function) {
    for (Node* node = graph_->first(); node != nullptr; node = node->next()) {
      if (node->op() == ops::k_Arg) input_names.emplace_back(node->name());
    }
  } else if (subgraph().inputs() != nullptr) {
    // The first nodes are the inputs, whose values an operator may have replaced by a result.
    for (Node* node = graph_->first(); node != nullptr && input_names.size() < subgraph().inputs()->size();
         node = node->next()) {
      if (node->op() == ops::kPlaceholder) input_names.push_back(TensorRef{node, 0}.ToString());
    }
  }
  absl::flat_hash_set<std::string> taken(input_names.begin(), input_names.end());
  PF_ASSIGN_OR_RETURN(Node * effects, AllEffects());
  for (uint32_t i = 0; i < count; ++i) {
    const int index = outputs->Get(i);
    PF_ASSIGN_OR_RETURN(TensorRef value, ValueOf(index));
    PF_ASSIGN_OR_RETURN(const std::vector<DType> types, OutputTypes(*value.node));
    const AttrValue type = AttrValue::Type(types[static_cast<size_t>(value.port)]);
    if (is_function) {
      if (effects != nullptr) {
        PF_ASSIGN_OR_RETURN(Node * node, graph_->AddNode(NodeName(TensorName(index)), ops::kIdentity));
        graph_->AddInput(node, value);
        graph_->AddControlInput(node, effects);
        node->SetAttr("T", type);
        value = {node, 0};
      }
      PF_ASSIGN_OR_RETURN(Node * node, graph_->AddNode(NodeName(absl::StrCat("result_", i)), ops::k_Retval));
      graph_->AddInput(node, value);
      node->SetAttr("T", type);
      node->SetAttr("index", AttrValue::Int(i));
      output_names.emplace_back(node->name());
      continue;
    }
    // An output needs a node of its own if it is an input, a constant, one of several results of a node, or listed
    // before, and if it must wait for operators that change resources. That node has the name of the tensor.
    const bool is_own = value.port == 0 && value.node->op() != ops::kConst && !taken.contains(value.ToString());
    if (!is_own || effects != nullptr) {
      const std::string name = NodeNameOfTensor(TensorName(index));
      if (is_own && value.node->name() == name) {
        PF_RETURN_IF_ERROR(graph_->Rename(value.node, graph_->UniqueName(absl::StrCat(name, "/value"))));
      }
      PF_ASSIGN_OR_RETURN(Node * node, graph_->AddNode(graph_->UniqueName(name), ops::kIdentity));
      graph_->AddInput(node, value);
      if (effects != nullptr) graph_->AddControlInput(node, effects);
      node->SetAttr("T", type);
      value = {node, 0};
    }
    output_names.push_back(value.ToString());
    taken.insert(output_names.back());
  }
  return graph_->DeclareInterface(input_names, output_names);
}

std::string SubgraphImport::Obstacle(const OperatorRow& row, const tflite::Operator& op) const {
  const int num_inputs = op.inputs() == nullptr ? 0 : static_cast<int>(op.inputs()->size());
  const int num_outputs = op.outputs() == nullptr ? 0 : static_cast<int>(op.outputs()->size());
  if (num_inputs < row.least_inputs) {
    return absl::StrCat("has ", num_inputs, " operands, expected at least ", row.least_inputs);
  }
  if (row.num_outputs >= 0 && num_outputs != row.num_outputs) {
    return absl::StrCat("has ", num_outputs, " results, expected ", row.num_outputs);
  }
  for (int i = 0; i < row.least_inputs; ++i) {
    if (op.inputs()->Get(static_cast<uint32_t>(i)) < 0) return absl::StrCat("lacks operand ", i);
  }
  return "";
}

bool SubgraphImport::HasRefusedCodes(const OperatorRow& row, const tflite::Operator& op) const {
  if (row.codes != Codes::kRefused) return false;
  for (const auto* tensors : {op.inputs(), op.outputs()}) {
    if (tensors == nullptr) continue;
    for (const int32_t i : *tensors) {
      if (i >= 0 && IsQuantized(tensor(i))) return true;
    }
  }
  return false;
}

absl::Status SubgraphImport::AddCarried(const tflite::Operator& op, const std::string& name,
                                        const OperatorImport* failed, const Node* before, const std::string& reason) {
  if (failed != nullptr) {
    has_failed_ = true;
    std::vector<Node*> own;
    for (Node* node = graph_->last(); node != before; node = node->previous()) {
      if (!failed->IsOwn(*node)) continue;
      own.push_back(node);
      const OpSchema* schema = FindSchema(node->op());
      if (schema == nullptr || schema->Is(kStateful | kHasSideEffect)) return AddProblem(op, reason);
    }
    for (Node* node : own) {
      if (node->uses().empty()) PF_RETURN_IF_ERROR(graph_->RemoveNode(node));
    }
  }
  absl::StatusOr<Node*> node = carrier_.Add(op, NodeName(name), nullptr, [this](int i) { return ValueOf(i); });
  if (absl::IsUnimplemented(node.status())) return AddProblem(op, reason);
  PF_RETURN_IF_ERROR(node.status());
  const int count = op.outputs() == nullptr ? 0 : static_cast<int>(op.outputs()->size());
  for (int k = 0; k < count; ++k) {
    values_[static_cast<size_t>(op.outputs()->Get(static_cast<uint32_t>(k)))] = {*node, k};
  }
  bool has_state = false;
  for (const auto* tensors : {op.inputs(), op.outputs()}) {
    if (tensors == nullptr) continue;
    for (const int32_t i : *tensors) {
      has_state |= i >= 0 && (tensor(i).is_variable() || tensor(i).type() == tflite::TensorType::RESOURCE);
    }
  }
  if (has_state) Order(*node, nullptr, true);
  return absl::OkStatus();
}

absl::Status SubgraphImport::RemoveUnread() {
  absl::flat_hash_set<const Node*> removed;
  for (bool is_done = false; !is_done;) {
    is_done = true;
    for (Node* node = graph_->last(); node != nullptr;) {
      Node* const previous = node->previous();
      if (node->uses().empty() && !graph_->IsEndpoint(node) &&
          (node->op() == ops::kConst || node->op() == UniformDequantizeOp())) {
        is_done &= node->op() == ops::kConst;
        removed.insert(node);
        PF_RETURN_IF_ERROR(graph_->RemoveNode(node));
      }
      node = previous;
    }
  }
  if (trace_ != nullptr) {
    for (OperatorTrace& traced : *trace_) {
      const auto is_removed = [&](const Node* node) { return removed.contains(node); };
      traced.created.erase(std::remove_if(traced.created.begin(), traced.created.end(), is_removed),
                           traced.created.end());
    }
  }
  return absl::OkStatus();
}

absl::Status SubgraphImport::AddProblem(const tflite::Operator& op, std::string problem) {
  model_->AddProblem(std::move(problem));
  if (op.outputs() == nullptr) return absl::OkStatus();
  for (const int32_t output : *op.outputs()) {
    if (output < 0) continue;
    PF_ASSIGN_OR_RETURN(Node * node, graph_->AddNode(NodeName(TensorName(output)), ops::kPlaceholder));
    const DType dtype = DTypeOfTflite(tensor(output).type());
    node->SetAttr("dtype", AttrValue::Type(dtype == DType::kInvalid ? DType::kFloat : dtype));
    values_[static_cast<size_t>(output)] = {node, 0};
  }
  return absl::OkStatus();
}

absl::Status SubgraphImport::AddOperator(int i) {
  const tflite::Operator& op = *subgraph().operators()->Get(static_cast<uint32_t>(i));
  const std::string name = op.outputs() == nullptr || op.outputs()->size() == 0 ? absl::StrCat("operator_", i)
                                                                                : TensorName(op.outputs()->Get(0));
  const std::string place =
      absl::StrCat("operator ", i, " (", model_->container().OperatorName(op), ", '", absl::CEscape(name), "')");
  for (uint32_t k = 0; op.outputs() != nullptr && k < op.outputs()->size(); ++k) {
    const int32_t output = op.outputs()->Get(k);
    if (output < 0 || !model_->container().HasData(tensor(output))) continue;
    return AddProblem(op, absl::StrCat(place, " computes tensor ", output, " '", absl::CEscape(TensorName(output)),
                                       "', which is a constant; expected a tensor without data"));
  }
  const OperatorRow* row = FindOperator(model_->container(), op);
  if (row == nullptr || HasRefusedCodes(*row, op)) {
    const absl::string_view why = row == nullptr ? WhyNoRow(model_->container().OperatorOf(op)) : "";
    const std::string reason = row != nullptr ? " computes with codes, without a kernel"
                               : why.empty()  ? " is not supported"
                                              : absl::StrCat(" is not supported: it ", why);
    return Annotate(AddCarried(op, name, nullptr, nullptr, absl::StrCat(place, reason)), place);
  }
  const std::string obstacle = Obstacle(*row, op);
  if (!obstacle.empty()) return AddProblem(op, absl::StrCat(place, " ", obstacle));
  const Node* const before = graph_->last();
  OperatorImport import(this, op, NodeName(name), row->codes);
  absl::StatusOr<std::vector<TensorRef>> results = row->import(&import);
  if (results.ok())
    results = [&]() -> Results {
      PF_RETURN_IF_ERROR(import.Quantize(&*results));
      return results;
    }();
  if (absl::IsUnimplemented(results.status())) {
    return Annotate(AddCarried(op, name, &import, before, absl::StrCat(place, " ", results.status().message())), place);
  }
  PF_RETURN_IF_ERROR(Annotate(results.status(), place));
  for (int k = 0; k < import.num_outputs(); ++k) {
    const int32_t output = op.outputs()->Get(static_cast<uint32_t>(k));
    if (static_cast<size_t>(k) >= results->size()) break;
    const TensorRef result = (*results)[static_cast<size_t>(k)];
    values_[static_cast<size_t>(output)] = result;
    if (k == 0 && result.port == 0 && import.IsOwn(*result.node)) {
      PF_RETURN_IF_ERROR(graph_->Rename(result.node, NodeName(TensorName(output))));
    }
  }
  return absl::OkStatus();
}

absl::Status SubgraphImport::AddTracedOperator(int i) {
  if (trace_ == nullptr) return AddOperator(i);
  const tflite::Operator& op = *subgraph().operators()->Get(static_cast<uint32_t>(i));
  const auto values = [this](const flatbuffers::Vector<int32_t>* tensors) {
    std::vector<TensorRef> refs;
    if (tensors == nullptr) return refs;
    for (const int32_t t : *tensors) {
      const bool is_value = t >= 0 && !model_->container().IsConstantOperand(index_, t);
      refs.push_back(is_value ? values_[static_cast<size_t>(t)] : TensorRef());
    }
    return refs;
  };
  const std::vector<TensorRef> earlier = values(op.inputs());
  Node* const last = graph_->last();
  PF_RETURN_IF_ERROR(AddOperator(i));
  OperatorTrace operator_trace;
  // A failed import may have removed what was last.
  for (Node* node = last == nullptr ? graph_->first() : last->next(); node != nullptr; node = node->next()) {
    operator_trace.created.push_back(node);
  }
  operator_trace.inputs = values(op.inputs());
  operator_trace.results = values(op.outputs());
  // An operand that is a result, too, has its earlier value.
  for (size_t k = 0; k < earlier.size(); ++k) {
    const auto& results = operator_trace.results;
    const TensorRef operand = operator_trace.inputs[k];
    if (operand.node == nullptr || std::find(results.begin(), results.end(), operand) == results.end()) continue;
    operator_trace.inputs[k] = earlier[k];
  }
  trace_->push_back(std::move(operator_trace));
  return absl::OkStatus();
}

absl::Status SubgraphImport::Run() {
  values_.assign(subgraph().tensors() == nullptr ? 0 : subgraph().tensors()->size(), TensorRef());
  const int count = subgraph().operators() == nullptr ? 0 : static_cast<int>(subgraph().operators()->size());
  if (role_ == SubgraphRole::kInitializer) {
    const auto size_of = [](const auto* vector) { return vector == nullptr ? 0 : vector->size(); };
    if (size_of(subgraph().inputs()) != 0 || size_of(subgraph().outputs()) != 0) {
      return absl::InvalidArgumentError("an initialiser has inputs or outputs, expected none");
    }
  } else {
    PF_RETURN_IF_ERROR(AddInputs());
  }
  for (int i = 0; i < count; ++i) PF_RETURN_IF_ERROR(AddTracedOperator(i));
  if (role_ != SubgraphRole::kInitializer) PF_RETURN_IF_ERROR(AddOutputs());
  // The constants of an initialiser may be read by operators of the graph that follow.
  return has_failed_ && role_ != SubgraphRole::kInitializer ? RemoveUnread() : absl::OkStatus();
}

}  // namespace permafrost
