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
#include "graph/base/status.h"
#include "graph/base/wire.h"
#include "io/formats/tflite/operator_import.h"

namespace permafrost {
namespace {

// Further problems are counted but not listed.
constexpr size_t kMostProblems = 20;
// Maximum nesting of calls between subgraphs. IF and WHILE of real models nest about 5 deep.
constexpr size_t kMostCalls = 64;

// Returns an empty function with the argument and result types of a body, as a field of FunctionDefLibrary.
std::string EmptyFunction(absl::string_view name, const Graph& body) {
  // Field numbers of OpDef (name 1, input_arg 2, output_arg 3), ArgDef (name 1, type 3), FunctionDef (signature 1, ret
  // 4) and FunctionDefLibrary (function 1): io/formats/proto/graphdef.proto.
  std::string signature, function, result;
  AppendBytesField(1, name, &signature);
  const auto append = [&signature](uint32_t field, absl::string_view arg, const Node& node) {
    std::string encoded;
    AppendBytesField(1, arg, &encoded);
    const absl::StatusOr<DType> type = TypeAttr(node, "T");
    AppendVarintField(3, static_cast<uint64_t>(type.ok() ? *type : DType::kInvalid), &encoded);
    AppendBytesField(field, encoded, &signature);
  };
  int i = 0;
  for (const Node* arg : ArgsOf(body)) append(2, absl::StrCat("arg", i++), *arg);
  i = 0;
  for (const Node* result_node : RetvalsOf(body)) append(3, absl::StrCat("result", i++), *result_node);
  AppendBytesField(1, signature, &function);
  // The entries of results are filled in with the body; until then each result needs a placeholder entry.
  for (int k = 0; k < i; ++k) {
    std::string entry;
    AppendBytesField(1, absl::StrCat("result", k), &entry);
    AppendBytesField(2, absl::StrCat("result", k), &entry);
    AppendBytesField(4, entry, &function);
  }
  AppendBytesField(1, function, &result);
  return result;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Graph>> ImportTflite(TfliteContainer container) {
  auto graph = std::make_unique<Graph>();
  ModelImport model(&container);
  PF_RETURN_IF_ERROR(SubgraphImport(&model, 0, graph.get()).Run(/*is_function=*/false));
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
  PF_RETURN_IF_ERROR(Annotate(SubgraphImport(this, subgraph, body.get()).Run(/*is_function=*/true),
                              absl::StrCat("subgraph ", subgraph)));
  under_way_.erase(subgraph);
  const std::string name = absl::StrCat("subgraph_", subgraph);
  functions_[subgraph] = name;
  body_names_.push_back(name);
  bodies_.push_back(std::move(body));
  return FunctionRef{name, {}};
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
  // Converters write the first output of a node as "name:0".
  std::string name(absl::StripSuffix(text, ":0"));
  for (char& c : name) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '_' && c != '-' && c != '/') c = '_';
  }
  // The first character must be a letter, a digit or a dot.
  if (name.empty() || (!absl::ascii_isalnum(static_cast<unsigned char>(name[0])) && name[0] != '.'))
    name = absl::StrCat("t", name);
  return graph_->UniqueName(name);
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

absl::Status SubgraphImport::AddInputs(bool is_function) {
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

absl::Status SubgraphImport::AddOutputs(bool is_function) {
  const auto* outputs = subgraph().outputs();
  const uint32_t count = outputs == nullptr ? 0 : outputs->size();
  std::vector<std::string> input_names, output_names;
  if (is_function) {
    for (Node* node = graph_->first(); node != nullptr; node = node->next()) {
      if (node->op() == ops::k_Arg) input_names.emplace_back(node->name());
    }
  } else if (subgraph().inputs() != nullptr) {
    for (const int32_t i : *subgraph().inputs()) input_names.push_back(values_[static_cast<size_t>(i)].ToString());
  }
  absl::flat_hash_set<std::string> taken(input_names.begin(), input_names.end());
  for (uint32_t i = 0; i < count; ++i) {
    const int index = outputs->Get(i);
    PF_ASSIGN_OR_RETURN(TensorRef value, ValueOf(index));
    PF_ASSIGN_OR_RETURN(const std::vector<DType> types, OutputTypes(*value.node));
    const AttrValue type = AttrValue::Type(types[static_cast<size_t>(value.port)]);
    if (is_function) {
      PF_ASSIGN_OR_RETURN(Node * node, graph_->AddNode(NodeName(absl::StrCat("result_", i)), ops::k_Retval));
      graph_->AddInput(node, value);
      node->SetAttr("T", type);
      node->SetAttr("index", AttrValue::Int(i));
      output_names.emplace_back(node->name());
      continue;
    }
    // An output needs a node of its own if it is an input, a constant, one of several results of a node, or listed
    // before.
    if (value.port != 0 || value.node->op() == ops::kConst || taken.contains(value.ToString())) {
      PF_ASSIGN_OR_RETURN(Node * node, graph_->AddNode(NodeName(TensorName(index)), ops::kIdentity));
      graph_->AddInput(node, value);
      node->SetAttr("T", type);
      value = {node, 0};
    }
    output_names.push_back(value.ToString());
    taken.insert(output_names.back());
  }
  return graph_->DeclareInterface(input_names, output_names);
}

std::string SubgraphImport::Obstacle(const tflite::Operator& op) const {
  const OperatorRow* row = FindOperator(model_->container(), op);
  if (row == nullptr) return "is not supported";
  const int num_inputs = op.inputs() == nullptr ? 0 : static_cast<int>(op.inputs()->size());
  const int num_outputs = op.outputs() == nullptr ? 0 : static_cast<int>(op.outputs()->size());
  if (num_inputs < row->least_inputs) {
    return absl::StrCat("has ", num_inputs, " operands, expected at least ", row->least_inputs);
  }
  if (row->num_outputs >= 0 && num_outputs != row->num_outputs) {
    return absl::StrCat("has ", num_outputs, " results, expected ", row->num_outputs);
  }
  for (int i = 0; i < row->least_inputs; ++i) {
    if (op.inputs()->Get(static_cast<uint32_t>(i)) < 0) return absl::StrCat("lacks operand ", i);
  }
  if (row->codes != Codes::kRefused) return "";
  for (const auto* tensors : {op.inputs(), op.outputs()}) {
    if (tensors == nullptr) continue;
    for (const int32_t i : *tensors) {
      if (i >= 0 && IsQuantized(tensor(i))) {
        return absl::StrCat("computes with ", tflite::EnumNameTensorType(tensor(i).type()),
                            " codes, for which there is no kernel");
      }
    }
  }
  return "";
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
  const std::string obstacle = Obstacle(op);
  if (!obstacle.empty()) return AddProblem(op, absl::StrCat(place, " ", obstacle));
  const OperatorRow& row = *FindOperator(model_->container(), op);
  OperatorImport import(this, op, NodeName(name), row.codes);
  absl::StatusOr<std::vector<TensorRef>> results = row.import(&import);
  if (results.ok())
    results = [&]() -> Results {
      PF_RETURN_IF_ERROR(import.Quantize(&*results));
      return results;
    }();
  if (absl::IsUnimplemented(results.status())) {
    return AddProblem(op, absl::StrCat(place, " ", results.status().message()));
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

absl::Status SubgraphImport::Run(bool is_function) {
  values_.assign(subgraph().tensors() == nullptr ? 0 : subgraph().tensors()->size(), TensorRef());
  PF_RETURN_IF_ERROR(AddInputs(is_function));
  const int count = subgraph().operators() == nullptr ? 0 : static_cast<int>(subgraph().operators()->size());
  for (int i = 0; i < count; ++i) PF_RETURN_IF_ERROR(AddOperator(i));
  return AddOutputs(is_function);
}

}  // namespace permafrost
