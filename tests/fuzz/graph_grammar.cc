// Draws nodes one by one, with inputs from the values that exist.
#include "tests/fuzz/graph_grammar.h"

#include <algorithm>
#include <complex>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/ops/op_schema.h"
#include "runtime_check/checking/evaluate.h"
#include "runtime_check/kernel.h"
#include "tests/fuzz/extremes.h"

namespace permafrost {
namespace {

using Kind = AttrValue::Kind;

constexpr int64_t kMemoryLimit = 1 << 20;

// Ops that passes rewrite or rely on, which are drawn more often than others.
constexpr const char* kCommonOps[] = {"Identity",
                                      "Add",
                                      "AddV2",
                                      "Sub",
                                      "Mul",
                                      "RealDiv",
                                      "Neg",
                                      "Relu",
                                      "Relu6",
                                      "MatMul",
                                      "BatchMatMul",
                                      "Conv2D",
                                      "DepthwiseConv2dNative",
                                      "BiasAdd",
                                      "FusedBatchNorm",
                                      "FusedBatchNormV3",
                                      "BatchNormWithGlobalNormalization",
                                      "Reshape",
                                      "Transpose",
                                      "ConcatV2",
                                      "Pad",
                                      "PadV2",
                                      "Mean",
                                      "Sum",
                                      "Max",
                                      "StridedSlice",
                                      "Slice",
                                      "Squeeze",
                                      "ExpandDims",
                                      "Split",
                                      "SplitV",
                                      "Pack",
                                      "Unpack",
                                      "Shape",
                                      "Cast",
                                      "GatherV2",
                                      "Tile",
                                      "Fill",
                                      "Rsqrt",
                                      "Sqrt",
                                      "Square",
                                      "Maximum",
                                      "Minimum",
                                      "Softmax",
                                      "Sigmoid",
                                      "Tanh",
                                      "MaxPool",
                                      "AvgPool",
                                      "ResizeBilinear",
                                      "SpaceToDepth",
                                      "DepthToSpace",
                                      "SpaceToBatchND",
                                      "BatchToSpaceND",
                                      "Select",
                                      "SelectV2",
                                      "Equal",
                                      "Greater",
                                      "Dequantize",
                                      "QuantizeV2",
                                      "FakeQuantWithMinMaxVars",
                                      "IdentityN",
                                      "Einsum",
                                      "Erf",
                                      "Pow",
                                      "SquaredDifference",
                                      "AddN",
                                      "StopGradient",
                                      "CheckNumerics",
                                      "ReverseV2",
                                      "TopKV2",
                                      "ArgMax",
                                      "OneHot",
                                      "Cumsum",
                                      "LogSoftmax",
                                      "LeakyRelu",
                                      "Elu",
                                      "Rank",
                                      "Size",
                                      "ZerosLike",
                                      "OnesLike",
                                      "NoOp"};

constexpr DType kCommonTypes[] = {DType::kFloat, DType::kFloat, DType::kFloat,  DType::kInt32, DType::kInt64,
                                  DType::kBool,  DType::kHalf,  DType::kDouble, DType::kUint8, DType::kString};

const std::vector<Shape>& Shapes() {
  static const auto* const kShapes = new std::vector<Shape>{
      {},           {1},          {2},    {3},       {4},       {2, 3},       {3, 2},       {3, 3},
      {1, 4},       {4, 4},       {2, 4}, {2, 3, 4}, {1, 4, 4}, {1, 4, 4, 2}, {1, 5, 5, 3}, {2, 4, 4, 4},
      {3, 3, 2, 4}, {1, 1, 4, 4}, {0},    {0, 3},    {2, 0, 4}, {3, 3, 3, 2}, {2, 2, 4, 1}, {1, 1, 1, 1}};
  return *kShapes;
}

constexpr const char* kTexts[] = {"",          "SAME",         "VALID",     "EXPLICIT",     "NHWC",   "NCHW",
                                  "REFLECT",   "SYMMETRIC",    "MIN_FIRST", "MIN_COMBINED", "SCALED", "HALF_TO_EVEN",
                                  "ij,jk->ik", "bij,bjk->bik", "x",         "\xff\xfe"};

class Drawing {
 public:
  Drawing(Choices* choices, const GrammarOptions& options)
      : choices_(*choices), options_(options), evaluator_(kMemoryLimit) {
    evaluator_.LimitTime(2);
    is_wrong_ = options.may_be_wrong && choices_.OneIn(4);
    is_extreme_ = options.may_be_extreme && choices_.OneIn(3);
  }

  DrawnGraph Draw() {
    for (size_t count = 1 + choices_.Below(2); count > 0; --count) AddPlaceholder();
    const size_t nodes = 1 + choices_.Below(static_cast<size_t>(options_.most_nodes));
    for (size_t i = 0; i < nodes; ++i) {
      // A node that fails is drawn again; few ops accept what exists.
      for (int tries = 0; tries < 4 && !AddNode(); ++tries) {
      }
    }
    if (choices_.OneIn(3)) AddControlInput();
    DeclareOutputs();
    return std::move(drawn_);
  }

 private:
  struct Value {
    TensorRef ref;
    Tensor tensor;  // Empty if it could not be computed.
    bool is_known = false;
    DType dtype = DType::kInvalid;
  };

  Graph& graph() { return *drawn_.graph; }

  static bool HasElements(DType dtype) { return dtype == DType::kString || SizeOf(dtype) != 0; }

  Tensor DrawTensor(DType dtype, const Shape& shape) {
    if (dtype == DType::kString) {
      std::vector<std::string> texts(static_cast<size_t>(shape.num_elements()));
      for (std::string& text : texts) text = choices_.Of(kTexts);
      return Tensor::FromStrings(shape, std::move(texts));
    }
    char* data = nullptr;
    Tensor tensor = *Tensor::Allocate(dtype, shape, &data);
    const auto count = static_cast<size_t>(shape.num_elements());
    const bool is_small = choices_.OneIn(2);
    const auto fill = [&](auto tag) {
      using T = typename decltype(tag)::type;
      T* values = reinterpret_cast<T*>(data);
      for (size_t i = 0; i < count; ++i) {
        // Powers of two and small integers keep sums exact, so that results can be compared.
        const int number = static_cast<int>(choices_.Below(is_small ? 4 : 16)) - (is_small ? 0 : 6);
        if constexpr (std::is_same_v<T, Half>) {
          values[i] = ToHalf(static_cast<float>(number) / 4);
        } else if constexpr (std::is_same_v<T, BFloat16>) {
          values[i] = ToBFloat16(static_cast<float>(number) / 4);
        } else if constexpr (std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>) {
          const int imaginary = static_cast<int>(choices_.Below(4)) - 1;
          values[i] =
              T(static_cast<typename T::value_type>(number) / 4, static_cast<typename T::value_type>(imaginary));
        } else if constexpr (std::is_floating_point_v<T>) {
          values[i] = static_cast<T>(number) / 4;
          if (is_extreme_ && choices_.OneIn(16)) values[i] = static_cast<T>(choices_.Of(kExtremeFloats));
        } else {
          values[i] = static_cast<T>(number);
          if (is_extreme_ && choices_.OneIn(16)) values[i] = static_cast<T>(choices_.Of(kExtremeIntegers));
        }
      }
    };
    if (!DispatchOn<float, double, int32_t, uint8_t, int16_t, int8_t, int64_t, BFloat16, uint16_t, Half, uint32_t,
                    uint64_t, std::complex<float>, std::complex<double>>(dtype, fill)) {
      for (int64_t i = 0; i < static_cast<int64_t>(tensor.bytes().size()); ++i) {
        data[i] = static_cast<char>(choices_.Below(dtype == DType::kBool ? 2 : 8));
      }
    }
    return tensor;
  }

  void AddPlaceholder() {
    const DType dtype = choices_.OneIn(4) ? choices_.Of(kCommonTypes) : DType::kFloat;
    const Shape shape = choices_.Of(Shapes());
    const std::string name = absl::StrCat("input", drawn_.inputs.size());
    Node* node = *graph().AddNode(name, ops::kPlaceholder);
    node->SetAttr("dtype", AttrValue::Type(dtype));
    node->SetAttr("shape", AttrValue::OfShape(choices_.OneIn(4) ? Shape::UnknownRank() : shape));
    Tensor value = DrawTensor(dtype, shape);
    drawn_.inputs.push_back(name);
    drawn_.feeds.push_back(value);
    values_.push_back({{node, 0}, std::move(value), true, dtype});
  }

  TensorRef AddConst(Tensor value) {
    Node* node = *graph().AddConst(graph().UniqueName("const"), value);
    const DType dtype = value.dtype();
    values_.push_back({{node, 0}, std::move(value), true, dtype});
    return {node, 0};
  }

  AttrValue DrawAttr(const AttrSpec& spec, const OpSchema& schema) {
    const auto counts = [&](const std::vector<ArgSpec>& args) {
      return std::any_of(args.begin(), args.end(), [&](const ArgSpec& arg) { return arg.number_attr == spec.name; });
    };
    const bool is_count = counts(schema.inputs) || counts(schema.outputs);
    const auto integer = [&]() -> int64_t {
      if (is_extreme_ && choices_.OneIn(4)) return choices_.Of(kExtremeIntegers);
      return static_cast<int64_t>(is_count ? 1 + choices_.Below(3) : choices_.Below(4));
    };
    const auto type = [&]() {
      if (spec.allowed_types.empty() || (is_wrong_ && choices_.OneIn(8))) return choices_.Of(kCommonTypes);
      const DType common = choices_.Of(kCommonTypes);
      const auto& allowed = spec.allowed_types;
      if (std::find(allowed.begin(), allowed.end(), common) != allowed.end()) return common;
      return choices_.Of(allowed);
    };
    if (!spec.is_list) {
      switch (spec.kind) {
        case Kind::kInt:
          return AttrValue::Int(integer());
        case Kind::kFloat:
          return AttrValue::Float(is_extreme_ ? choices_.Of(kExtremeFloats)
                                              : static_cast<float>(choices_.Below(8)) / 8);
        case Kind::kBool:
          return AttrValue::Bool(choices_.OneIn(2));
        case Kind::kString:
          return AttrValue::String(choices_.Of(kTexts));
        case Kind::kType:
          return AttrValue::Type(type());
        case Kind::kShape:
          return AttrValue::OfShape(choices_.OneIn(4) ? Shape::UnknownRank() : choices_.Of(Shapes()));
        case Kind::kTensor:
          return AttrValue::OfTensor(DrawTensor(DType::kFloat, choices_.Of(Shapes())));
        default:
          return AttrValue::Function({"no_function", {}});
      }
    }
    const bool is_window = choices_.OneIn(2);  // [1,x,x,1], as strides, windows and dilations are.
    const size_t count = is_window ? 4 : choices_.Below(5);
    std::vector<int64_t> integers;
    std::vector<float> floats;
    std::vector<std::string> texts;
    std::vector<DType> types;
    std::vector<Shape> shapes;
    for (size_t i = 0; i < count; ++i) {
      integers.push_back(is_window && (i == 0 || i == 3) ? 1 : is_window ? 1 + integer() : integer());
      floats.push_back(static_cast<float>(choices_.Below(4)));
      texts.push_back(choices_.Of(kTexts));
      types.push_back(type());
      shapes.push_back(choices_.Of(Shapes()));
    }
    if (spec.kind == Kind::kFloat) return AttrValue::FloatList(floats);
    if (spec.kind == Kind::kString) return AttrValue::StringList(texts);
    if (spec.kind == Kind::kType) return AttrValue::TypeList(types);
    if (spec.kind == Kind::kShape) return AttrValue::ShapeList(shapes);
    return AttrValue::IntList(integers);
  }

  // Picks a value of the type, or makes a constant.
  const Value* PickInput(DType dtype) {
    std::vector<size_t> fitting;
    for (size_t i = 0; i < values_.size(); ++i) {
      if (values_[i].dtype == dtype || (is_wrong_ && choices_.OneIn(16))) fitting.push_back(i);
    }
    if (!fitting.empty() && !choices_.OneIn(3)) {
      // Recent values make graphs deep.
      const size_t from = choices_.OneIn(2) ? fitting.size() - 1 : choices_.Below(fitting.size());
      return &values_[fitting[from]];
    }
    if (!HasElements(dtype)) return nullptr;
    const bool is_vector = (dtype == DType::kInt32 || dtype == DType::kInt64) && choices_.OneIn(2);
    const Shape like = values_[choices_.Below(values_.size())].tensor.shape();
    const Shape shape = is_vector ? choices_.OneIn(3) ? Shape() : Shape({1 + static_cast<int64_t>(choices_.Below(4))})
                        : choices_.OneIn(2) && like.num_elements() <= kMostElements ? like
                                                                                    : choices_.Of(Shapes());
    AddConst(DrawTensor(dtype, shape));
    return &values_.back();
  }

  // Returns false if the node was dropped.
  bool AddNode() {
    static const std::vector<Op> kOps = KernelOps();
    const Op op = choices_.OneIn(4) ? choices_.Of(kOps) : Op::Named(choices_.Of(kCommonOps));
    const OpSchema* schema = FindSchema(op);
    if (schema == nullptr) return false;
    const size_t values_before = values_.size();
    Node* node = *graph().AddNode(graph().UniqueName(absl::StrCat("n_", op.name())), op);
    for (const AttrSpec& spec : schema->attrs) {
      const bool is_left_out = spec.has_default ? !choices_.OneIn(4) : is_wrong_ && choices_.OneIn(16);
      if (!is_left_out) node->SetAttr(spec.name, DrawAttr(spec, *schema));
    }
    // Types of the present values, so that ops chain: the first type attribute takes that of a recent value.
    for (const AttrSpec& spec : schema->attrs) {
      if (spec.kind != Kind::kType || spec.is_list) continue;
      const DType recent = values_[values_.size() - 1 - choices_.Below(std::min<size_t>(values_.size(), 3))].dtype;
      const auto& allowed = spec.allowed_types;
      if (!allowed.empty() && std::find(allowed.begin(), allowed.end(), recent) == allowed.end()) continue;
      if (!choices_.OneIn(4)) node->SetAttr(spec.name, AttrValue::Type(recent));
      break;
    }
    const auto drop = [&] {
      (void)graph().RemoveNode(node);
      while (values_.size() > values_before) {
        (void)graph().RemoveNode(values_.back().ref.node);
        values_.pop_back();
      }
      return false;
    };
    const absl::StatusOr<std::vector<DType>> types = InputTypes(*node);
    constexpr size_t kMostInputs = 6;
    if (!types.ok() || types->size() > kMostInputs) return drop();
    std::vector<Tensor> inputs;
    bool is_known = true;
    for (const DType dtype : *types) {
      const Value* value = PickInput(RemoveRef(dtype));
      if (value == nullptr) return drop();
      graph().AddInput(node, value->ref);
      inputs.push_back(value->tensor);
      is_known &= value->is_known;
    }
    const absl::StatusOr<std::vector<DType>> outputs = OutputTypes(*node);
    constexpr size_t kMostOutputs = 8;
    if (!outputs.ok() || outputs->size() > kMostOutputs) return drop();
    std::vector<Tensor> results;
    if (is_known) {
      absl::StatusOr<std::vector<Tensor>> computed = evaluator_.Evaluate(*node, inputs);
      const bool is_kept = computed.ok() || (is_wrong_ && choices_.OneIn(8));
      if (!is_kept) return drop();
      if (computed.ok()) results = *std::move(computed);
      for (const Tensor& result : results) {
        if (result.shape().num_elements() > kMostElements) return drop();
      }
    }
    for (size_t i = 0; i < outputs->size(); ++i) {
      Value value{{node, static_cast<int>(i)}, Tensor(), i < results.size(), RemoveRef((*outputs)[i])};
      if (i < results.size()) value.tensor = results[i];
      values_.push_back(std::move(value));
    }
    return true;
  }

  void AddControlInput() {
    const std::vector<Node*> nodes = graph().Nodes();
    const size_t consumer = choices_.Below(nodes.size());
    // A constant comes after the node for which it was made.
    if (consumer == 0 || nodes[consumer]->num_data_inputs() == 0) return;
    graph().AddControlInput(nodes[consumer], nodes[choices_.Below(consumer)]);
  }

  void DeclareOutputs() {
    std::vector<std::string> unread;
    for (const Value& value : values_) {
      const bool is_source = value.ref.node->op() == ops::kPlaceholder || value.ref.node->op() == ops::kConst;
      if (is_source || !HasElements(value.dtype) || graph().HasDataUses(value.ref)) continue;
      unread.push_back(value.ref.ToString());
    }
    constexpr size_t kMostDeclared = 3;
    while (unread.size() > kMostDeclared)
      unread.erase(unread.begin() + static_cast<int>(choices_.Below(unread.size())));
    if (unread.empty()) unread.push_back(values_.back().ref.ToString());
    drawn_.outputs = unread;
    (void)graph().DeclareInterface(drawn_.inputs, drawn_.outputs);
  }

  static constexpr int64_t kMostElements = 4096;

  Choices& choices_;
  const GrammarOptions& options_;
  KernelEvaluator evaluator_;
  bool is_wrong_ = false, is_extreme_ = false;
  DrawnGraph drawn_{std::make_unique<Graph>(), {}, {}, {}};
  std::vector<Value> values_;
};

}  // namespace

DrawnGraph DrawGraph(Choices* choices, const GrammarOptions& options) { return Drawing(choices, options).Draw(); }

}  // namespace permafrost
