// Builds large graphs from small pieces.
#include "tests/transforms/large_graphs.h"

#include <initializer_list>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/status.h"
#include "io/formats/graphdef_text.h"
#include "transforms/pipeline/presets.h"

namespace permafrost {
namespace {

constexpr char kLogFile[] = "ranges.log";

// Passes with required arguments, and assign_layout with the format that the graphs do not have.
constexpr struct {
  absl::string_view pass, call;
} kCallsWithArguments[] = {
    {"assign_layout", "assign_layout(format=NCHW)"},
    {"freeze_requantization_ranges", "freeze_requantization_ranges(min_max_log_file=ranges.log)"},
    {"insert_logging", "insert_logging(op=Relu)"},
    {"remove_attribute", "remove_attribute(attribute_name=_note)"},
    {"remove_nodes", "remove_nodes(op=\"Identity|CheckNumerics|StopGradient\")"},
    {"rename_attribute", "rename_attribute(old_attribute_name=_note, new_attribute_name=_remark)"},
    {"rescale_for_half", "rescale_for_half(largest=\"start=70000\")"},
    {"rename_node", "rename_node(old_node_name=start, new_node_name=begin)"},
    {"rename_op", "rename_op(old_op_name=Relu, new_op_name=Relu6)"},
    // The graphs add constants with their own batch, so that no other batch fits.
    {"set_batch", "set_batch(size=1)"},
    {"set_device", "set_device(device=\"/device:CPU:0\")"},
};

constexpr char kFunctions[] = R"(
library {
  function { signature { name: "half" input_arg { name: "x" type: DT_FLOAT } output_arg { name: "y" type: DT_FLOAT } }
    node_def { name: "h" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
      attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { } float_val: 0.5 } } } }
    node_def { name: "m" op: "Mul" input: "x" input: "h:output:0" attr { key: "T" value { type: DT_FLOAT } } }
    ret { key: "y" value: "m:z:0" } }
  function { signature { name: "neg" input_arg { name: "x" type: DT_FLOAT } output_arg { name: "y" type: DT_FLOAT } }
    node_def { name: "n" op: "Neg" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
    ret { key: "y" value: "n:y:0" } }
  function { signature { name: "never" input_arg { name: "x" type: DT_FLOAT } output_arg { name: "p" type: DT_BOOL } }
    node_def { name: "f" op: "Const" attr { key: "dtype" value { type: DT_BOOL } }
      attr { key: "value" value { tensor { dtype: DT_BOOL tensor_shape { } bool_val: false } } } }
    ret { key: "p" value: "f:output:0" } }
}
)";

class Builder {
 public:
  Builder(LargeShape shape, int num_nodes) : shape_(shape), num_nodes_(static_cast<size_t>(num_nodes)) {}

  absl::StatusOr<std::unique_ptr<Graph>> Build() {
    PF_ASSIGN_OR_RETURN(graph_, ReadGraphDefText(kFunctions));
    x_ = Add(ops::kPlaceholder, {}, "x");
    x_->SetAttr("dtype", float_);
    x_->SetAttr("shape", AttrValue::OfShape(Shape({1, 4, 4, 2})));
    start_ = Add(ops::kNoOp, {}, "start");
    end_ = Add(ops::kNoOp, {}, "end");
    TensorRef last = {x_, 0};
    std::vector<TensorRef> ends;
    for (int i = 0; graph_->num_nodes() < num_nodes_; ++i) {
      const TensorRef from = IsChain() ? last : TensorRef{x_, 0};
      last = shape_ == LargeShape::kCalls ? Call(i, i % 2 == 0 ? last : TensorRef{x_, 0}) : Piece(i, from);
      // Every control edge of a chain points back, so that removed nodes have control inputs to pass on.
      if (IsChain()) {
        if (i % 16 == 3) graph_->AddInput(last.node, {start_, kControlPort});
      } else {
        graph_->AddInput(last.node, {start_, kControlPort});
        graph_->AddInput(end_, {last.node, kControlPort});
        ends.push_back(last);
      }
      if (i % 8 == 0) last.node->SetAttr("_note", AttrValue::Int(i % 3));
    }
    if (ends.empty()) ends.push_back(last);
    if (shape_ == LargeShape::kCalls) ends.push_back(Piece(23, last));
    Node* y = Add(ops::kAddN, ends, "y");
    y->SetAttr("N", AttrValue::Int(static_cast<int64_t>(ends.size())));
    y->SetAttr("T", float_);
    if (!status_.ok()) return status_;
    PF_RETURN_IF_ERROR(graph_->DeclareInterface({"x"}, {"y", "end"}));
    return std::move(graph_);
  }

 private:
  bool IsChain() const { return shape_ == LargeShape::kChain || shape_ == LargeShape::kChainOwnConstants; }
  bool OwnsConstants() const { return shape_ == LargeShape::kChainOwnConstants || shape_ == LargeShape::kDuplicates; }

  Node* Add(Op op, absl::Span<const TensorRef> inputs, std::string name = "") {
    if (name.empty()) name = absl::StrCat("n", graph_->num_nodes());
    auto node = graph_->AddNode(name, op);
    if (!node.ok()) {
      status_.Update(node.status());
      return x_;
    }
    for (const TensorRef& input : inputs) graph_->AddInput(*node, input);
    return *node;
  }
  TensorRef Typed(Op op, absl::Span<const TensorRef> inputs) {
    Node* node = Add(op, inputs);
    node->SetAttr("T", float_);
    return {node, 0};
  }
  // Returns the constant of that name, or another with the same value.
  TensorRef Const(absl::string_view name, const Tensor& value) {
    const auto [found, is_new] = constants_.try_emplace(name, nullptr);
    if (is_new || OwnsConstants()) {
      found->second = Add(ops::kConst, {}, is_new ? std::string(name) : "");
      found->second->SetAttr("dtype", AttrValue::Type(value.dtype()));
      found->second->SetAttr("value", AttrValue::OfTensor(value));
      if (shape_ == LargeShape::kDuplicates) graph_->AddInput(end_, {found->second, kControlPort});
    }
    return {found->second, 0};
  }
  TensorRef Ints(absl::string_view name, Shape shape, const std::vector<int32_t>& values) {
    return Const(name, Tensor::FromVector<int32_t>(std::move(shape), values));
  }
  TensorRef Floats(absl::string_view name, Shape shape, const std::vector<float>& values) {
    return Const(name, Tensor::FromVector<float>(std::move(shape), values));
  }
  TensorRef Transposed(TensorRef x, absl::string_view name, const std::vector<int32_t>& order) {
    TensorRef y = Typed(ops::kTranspose, {x, Ints(name, Shape({4}), order)});
    y.node->SetAttr("Tperm", AttrValue::Type(DType::kInt32));
    return y;
  }
  TensorRef Reshaped(TensorRef x, absl::string_view name, const std::vector<int32_t>& shape) {
    TensorRef y = Typed(ops::kReshape, {x, Ints(name, Shape({static_cast<int64_t>(shape.size())}), shape)});
    y.node->SetAttr("Tshape", AttrValue::Type(DType::kInt32));
    return y;
  }
  TensorRef Convolved(TensorRef x, bool is_same) {
    const std::vector<float> values(is_same ? 4 : 36, 0.25);
    const Shape shape = is_same ? Shape({1, 1, 2, 2}) : Shape({3, 3, 2, 2});
    TensorRef y = Typed(ops::kConv2D, {x, Floats(is_same ? "pointwise" : "filter", shape, values)});
    y.node->SetAttr("strides", AttrValue::IntList({1, 1, 1, 1}));
    y.node->SetAttr("padding", AttrValue::String("VALID"));
    return y;
  }
  TensorRef Padded(TensorRef x, Op op) {
    TensorRef y = Typed(op, {x, Ints("margins", Shape({4, 2}), {0, 0, 1, 1, 1, 1, 0, 0})});
    y.node->SetAttr("Tpaddings", AttrValue::Type(DType::kInt32));
    if (op == ops::kMirrorPad) y.node->SetAttr("mode", AttrValue::String("REFLECT"));
    return y;
  }
  TensorRef Cast(TensorRef x, DType from, DType to) {
    Node* y = Add(ops::kCast, {x});
    y->SetAttr("SrcT", AttrValue::Type(from));
    y->SetAttr("DstT", AttrValue::Type(to));
    return {y, 0};
  }

  // Adds a piece from float[1,4,4,2] to float[1,4,4,2].
  TensorRef Piece(int i, TensorRef x) {
    switch (i % 27) {
      case 0:
        return Typed(ops::kRelu, {x});
      case 1:
        return Typed(ops::kIdentity, {x});
      case 2:
        return Typed(ops::kMul, {x, Floats("one", {}, {1})});
      case 3:
        return Typed(ops::kAddV2, {Typed(ops::kMul, {x, Floats("two", {}, {2})}), Floats("zero", {}, {0})});
      case 4:
        return Transposed(Typed(ops::kRelu6, {Transposed(x, "to_nchw", {0, 3, 1, 2})}), "to_nhwc", {0, 2, 3, 1});
      case 5:
        return Transposed(Transposed(x, "to_nchw", {0, 3, 1, 2}), "to_nhwc", {0, 2, 3, 1});
      case 6:
        return Reshaped(Reshaped(x, "flat", {1, 32}), "square", {1, 4, 4, 2});
      case 7:
        return Typed(ops::kMul, {Convolved(x, true), Floats("scales", Shape({2}), {1, 2})});
      case 8: {
        const TensorRef y = Typed(ops::kBiasAdd, {Convolved(x, true), Floats("biases", Shape({2}), {1, 2})});
        return Typed(ops::kRelu, {y});
      }
      case 9:
        return Convolved(Padded(x, ops::kPad), false);
      case 10:
        return Convolved(Padded(x, ops::kMirrorPad), false);
      case 11: {
        const std::vector<float> ones = {1, 1};
        TensorRef y = Typed(ops::kFusedBatchNormV3,
                            {Convolved(x, true), Floats("gamma", Shape({2}), ones), Floats("beta", Shape({2}), ones),
                             Floats("mean", Shape({2}), ones), Floats("variance", Shape({2}), ones)});
        y.node->SetAttr("U", float_);
        y.node->SetAttr("is_training", AttrValue::Bool(false));
        return y;
      }
      case 12: {
        const TensorRef block = Ints("block", Shape({2}), {2, 2});
        const TensorRef y = Typed(ops::kSpaceToBatchND, {x, block, Ints("grown", Shape({2, 2}), {2, 2, 2, 2})});
        return Typed(ops::kBatchToSpaceND, {Convolved(y, false), block, Ints("crops", Shape({2, 2}), {0, 0, 0, 0})});
      }
      case 13: {
        Node* y = Add(ops::kFakeQuantWithMinMaxVars, {x, Floats("low", {}, {-1}), Floats("high", {}, {1})});
        return {y, 0};
      }
      case 14: {
        const TensorRef y = Typed(ops::kCheckNumerics, {x});
        y.node->SetAttr("message", AttrValue::String("here"));
        return Typed(ops::kStopGradient, {y});
      }
      case 15: {
        TensorRef y = Typed(ops::kConcatV2,
                            {x, Floats("four", Shape({1, 4, 4, 2}), std::vector<float>(32, 4)), Ints("axis", {}, {0})});
        y.node->SetAttr("N", AttrValue::Int(2));
        y.node->SetAttr("Tidx", AttrValue::Type(DType::kInt32));
        TensorRef z = Typed(ops::kMean, {y, Ints("first", Shape({1}), {0})});
        z.node->SetAttr("Tidx", AttrValue::Type(DType::kInt32));
        z.node->SetAttr("keep_dims", AttrValue::Bool(true));
        return z;
      }
      case 16:
        return Cast(Cast(x, DType::kFloat, DType::kDouble), DType::kDouble, DType::kFloat);
      case 17: {
        // Computed from constants alone.
        const TensorRef sum = Typed(ops::kAddV2, {Floats("two", {}, {2}), Floats("three", {}, {3})});
        return Typed(ops::kSub, {x, Typed(ops::kNeg, {sum})});
      }
      case 18: {
        const TensorRef y = Typed(ops::kExpandDims, {x, Ints("axis", {}, {0})});
        y.node->SetAttr("Tdim", AttrValue::Type(DType::kInt32));
        const TensorRef z = Typed(ops::kSqueeze, {y});
        z.node->SetAttr("squeeze_dims", AttrValue::IntList({0}));
        return z;
      }
      case 19: {
        // An id for each element, and its entry in the table of mostly zeros.
        const TensorRef ids = Cast(x, DType::kFloat, DType::kInt64);
        std::vector<float> weights(64, 0);
        weights[3] = 1;
        const TensorRef read = Typed(ops::kIdentity, {Floats("weights", Shape({64, 1}), weights)});
        Node* y = Add(ops::kGather, {read, ids});
        y->SetAttr("Tparams", float_);
        y->SetAttr("Tindices", AttrValue::Type(DType::kInt64));
        const TensorRef z = Typed(ops::kSqueeze, {{y, 0}});
        z.node->SetAttr("squeeze_dims", AttrValue::IntList({-1}));
        return z;
      }
      case 20: {
        Node* array = Add(ops::kTensorArrayV3, {Ints("size", {}, {1})});
        array->SetAttr("dtype", float_);
        const TensorRef at = Ints("index", {}, {0});
        const TensorRef write = Typed(ops::kTensorArrayWriteV3, {{array, 0}, at, x, {array, 1}});
        Node* y = Add(ops::kTensorArrayReadV3, {{array, 0}, at, write});
        y->SetAttr("dtype", float_);
        return {y, 0};
      }
      case 21: {
        const TensorRef y = Typed(ops::kResizeBilinear, {x, Ints("resized", Shape({2}), {4, 4})});
        return Convolved(Padded(y, ops::kMirrorPad), false);
      }
      case 22: {
        // Too large to count as a small constant.
        const TensorRef table = Floats("large", Shape({1, 4, 4, 2}), std::vector<float>(32, 0.5));
        return Typed(ops::kMaximum, {x, Typed(ops::kIdentity, {table})});
      }
      case 23: {
        Node* coded = Add(ops::kQuantizeV2, {x, Floats("low", {}, {-1}), Floats("high", {}, {1})});
        coded->SetAttr("T", AttrValue::Type(DType::kQInt32));
        coded->SetAttr("mode", AttrValue::String("MIN_FIRST"));
        Node* range = Add(ops::kRequantizationRange, {{coded, 0}, {coded, 1}, {coded, 2}});
        range->SetAttr("Tinput", AttrValue::Type(DType::kQInt32));
        Node* narrow = Add(ops::kRequantize, {{coded, 0}, {coded, 1}, {coded, 2}, {range, 0}, {range, 1}});
        narrow->SetAttr("Tinput", AttrValue::Type(DType::kQInt32));
        narrow->SetAttr("out_type", AttrValue::Type(DType::kQUint8));
        Node* y = Add(ops::kDequantize, {{narrow, 0}, {narrow, 1}, {narrow, 2}});
        y->SetAttr("T", AttrValue::Type(DType::kQUint8));
        y->SetAttr("mode", AttrValue::String("MIN_FIRST"));
        return {y, 0};
      }
      case 24:
        return Convolved(Typed(ops::kResizeBilinear, {x, Ints("resized", Shape({2}), {4, 4})}), true);
      case 25: {
        const TensorRef filter = Floats("pointwise", Shape({1, 1, 2, 2}), {0.25, 0.25, 0.25, 0.25});
        const TensorRef y = Typed(ops::k_FusedConv2D, {x, filter, Floats("biases", Shape({2}), {1, 2})});
        y.node->SetAttr("strides", AttrValue::IntList({1, 1, 1, 1}));
        y.node->SetAttr("padding", AttrValue::String("VALID"));
        y.node->SetAttr("num_args", AttrValue::Int(1));
        y.node->SetAttr("fused_ops", AttrValue::StringList({"BiasAdd", "Relu"}));
        return y;
      }
      default:
        return Typed(ops::kRelu, {Typed(ops::kAddV2, {Typed(ops::kRelu, {x}), Typed(ops::kRelu, {x})})});
    }
  }

  TensorRef Call(int i, TensorRef x) {
    const AttrValue types = AttrValue::TypeList({DType::kFloat});
    switch (i % 6) {
      case 0:
      case 1:
        return FunctionNode("PartitionedCall", {x}, {{"f", i % 4 == 0 ? "half" : "neg"}});
      case 2:
      case 3: {
        const TensorRef p = Const("false", Tensor::Scalar<bool>(false));
        TensorRef y = FunctionNode("StatelessIf", {p, x}, {{"then_branch", "half"}, {"else_branch", "neg"}});
        y.node->SetAttr("Tcond", AttrValue::Type(DType::kBool));
        return y;
      }
      default: {
        TensorRef y = FunctionNode("StatelessWhile", {x}, {{"cond", "never"}, {"body", "half"}});
        y.node->RemoveAttr("Tin");
        y.node->RemoveAttr("Tout");
        y.node->SetAttr("T", types);
        return y;
      }
    }
  }
  TensorRef FunctionNode(absl::string_view op, absl::Span<const TensorRef> inputs,
                         std::initializer_list<std::pair<absl::string_view, absl::string_view>> functions) {
    Node* node = Add(Op::Named(op), inputs);
    node->SetAttr("Tin", AttrValue::TypeList({DType::kFloat}));
    node->SetAttr("Tout", AttrValue::TypeList({DType::kFloat}));
    for (const auto& [key, function] : functions) {
      FunctionRef called;
      called.name = std::string(function);
      node->SetAttr(key, AttrValue::Function(called));
    }
    return {node, 0};
  }

  const LargeShape shape_;
  const size_t num_nodes_;
  absl::Status status_;
  std::unique_ptr<Graph> graph_;
  Node* x_ = nullptr;
  Node* start_ = nullptr;
  Node* end_ = nullptr;
  absl::flat_hash_map<std::string, Node*> constants_;
  AttrValue float_ = AttrValue::Type(DType::kFloat);
};

}  // namespace

const char* Name(LargeShape shape) {
  switch (shape) {
    case LargeShape::kChain:
      return "chain";
    case LargeShape::kChainOwnConstants:
      return "chain_own_constants";
    case LargeShape::kFanOut:
      return "fan_out";
    case LargeShape::kDuplicates:
      return "duplicates";
    case LargeShape::kCalls:
      return "calls";
  }
  return "";
}

absl::StatusOr<std::unique_ptr<Graph>> MakeLargeGraph(LargeShape shape, int num_nodes) {
  return Builder(shape, num_nodes).Build();
}

absl::StatusOr<std::vector<PassCall>> CallsOfEveryPass() {
  std::vector<PassCall> calls;
  for (const PassDefinition& pass : AllPasses()) {
    PassCall call;
    call.name = pass.name;
    for (const auto& [name, text] : kCallsWithArguments) {
      if (name != pass.name) continue;
      PF_ASSIGN_OR_RETURN(const std::vector<PassCall> written, ParsePipeline(text));
      call = written.front();
    }
    if (const absl::Status status = pass.check_arguments(call.arguments); !status.ok()) {
      return absl::NotFoundError(
          absl::StrCat("pass '", pass.name, "' needs a line in the table of calls with arguments: ", status.message()));
    }
    calls.push_back(std::move(call));
  }
  for (const Preset& preset : AllPresets()) {
    PassCall call;
    call.name = std::string(preset.name);
    calls.push_back(std::move(call));
  }
  return calls;
}

PassContext ContextOfEveryPass(const Graph& graph) {
  std::string log;
  for (const Node* node = graph.first(); node != nullptr; node = node->next()) {
    if (node->op() != ops::kRequantizationRange) continue;
    absl::StrAppend(&log, ";", node->name(), "__print__;__requant_min_max:[-1][1]\n");
  }
  PassContext context;
  context.read_file = [log](absl::string_view path) -> absl::StatusOr<std::string> {
    if (path != kLogFile) return absl::NotFoundError(absl::StrCat("'", path, "' is not there"));
    return log;
  };
  return context;
}

}  // namespace permafrost
