// Draws nodes with their inputs, and runs them.
#include "tests/kernels/any_input_trial.h"

#include <algorithm>
#include <complex>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/hash/hash.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/status.h"
#include "graph/graph.h"
#include "graph/ops/op_schema.h"
#include "runtime_check/kernel.h"
#include "runtime_check/session.h"
#include "tests/allocations.h"
#include "tests/fuzz/extremes.h"
#include "tests/kernels/recorded_cases.h"
#include "tests/kernels/through_merge.h"

namespace permafrost {
namespace {

using Kind = AttrValue::Kind;

// Larger than the tensors of any recorded case, and small enough that an op which asks for more ends at once.
constexpr int64_t kMemoryLimit = int64_t{4} << 20;
constexpr int64_t kMostIterations = 100;

constexpr DType kTypes[] = {
#define DTYPE(enumerator, number, text, type, field) DType::enumerator,
#include "graph/dtypes.def"
#undef DTYPE
};

// Numbers that attributes often have.
constexpr float kOrdinaryFloats[] = {1, 0.5f, 1e-3f, -2.5f};

// Values of string attributes, besides the defaults of the op and those of recorded cases.
const std::vector<std::string> kTexts = {
    "",        "SAME",  "VALID",       "EXPLICIT", "NHWC",      "NCHW",
    "NDHWC",   "NCDHW", "NCHW_VECT_C", "REFLECT",  "SYMMETRIC", "bilinear",
    "nearest", "area",  "MIN_FIRST",   "SCALED",   "UTF-8",     "BYTE",
    "(a|b)*c", "\\1[",  "%s %d %",     "{}",       "\xff\xfe",  "a longer text, with words"};

const std::vector<Shape> kShapes = {{},
                                    {0},
                                    {1},
                                    {2},
                                    {3},
                                    {2, 3},
                                    {3, 2},
                                    {3, 3},
                                    {0, 3},
                                    {3, 0},
                                    {1, 1},
                                    {2, 2, 2},
                                    {1, 4, 4, 2},
                                    {2, 3, 3, 4},
                                    {3, 3, 2, 4},
                                    {1, 0, 4, 2},
                                    {1, 2, 2, 2, 3},
                                    {4},
                                    {1, 1, 1, 1, 1, 1, 1, 1, 2},
                                    {int64_t{1} << 40, 0},
                                    {70}};

template <typename T>
T Number(int value) {
  if constexpr (std::is_same_v<T, Half>) {
    return ToHalf(static_cast<float>(value));
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    return ToBFloat16(static_cast<float>(value));
  } else if constexpr (std::is_same_v<T, QInt8> || std::is_same_v<T, QUint8> || std::is_same_v<T, QInt16> ||
                       std::is_same_v<T, QUint16> || std::is_same_v<T, QInt32>) {
    return T{static_cast<decltype(T::value)>(value)};
  } else {
    return static_cast<T>(value);
  }
}

// Fills a tensor of numbers: small integers, which are often indices, sizes and axes; or any bits.
Tensor AnyNumbers(DType dtype, const Shape& shape, Choices* random) {
  char* data = nullptr;
  Tensor tensor = *Tensor::Allocate(dtype, shape, &data);
  const auto count = static_cast<size_t>(shape.num_elements());
  const bool any_bits = random->OneIn(6), one_value = random->OneIn(3);
  const int least = random->OneIn(3) ? -3 : 0, range = random->OneIn(4) ? 100 : 4;
  const auto fill = [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* values = reinterpret_cast<T*>(data);
    for (size_t i = 0; i < count; ++i) {
      if (one_value && i > 0) {
        values[i] = values[0];
      } else if (any_bits) {
        char bits[sizeof(T)];
        for (char& byte : bits) byte = static_cast<char>(random->OneIn(3) ? 0xff : random->Bits());
        std::memcpy(&values[i], bits, sizeof(T));
      } else if (std::is_floating_point_v<T> && random->OneIn(8)) {
        values[i] = Number<T>(0);
        if constexpr (std::is_floating_point_v<T>) values[i] = static_cast<T>(random->Of(kExtremeFloats));
      } else {
        values[i] = Number<T>(least + static_cast<int>(random->Below(static_cast<size_t>(range))));
      }
    }
  };
  if (dtype == DType::kBool) {
    for (size_t i = 0; i < count; ++i) data[i] = static_cast<char>(random->Below(2));
    return tensor;
  }
  DispatchOn<float, double, int32_t, uint8_t, int16_t, int8_t, std::complex<float>, int64_t, QInt8, QUint8, QInt32,
             BFloat16, QInt16, QUint16, uint16_t, std::complex<double>, Half, uint32_t, uint64_t>(dtype, fill);
  return tensor;
}

// An input: a tensor, or for types whose elements are objects the name of the object that is passed.
struct Input {
  DType dtype = DType::kInvalid;
  Tensor value;
  std::string object;
};

// The objects that a graph has for inputs: outputs of a node for each kind.
const std::vector<std::string> kVariants = {"empty_list", "reserved_list", "list"};
const std::vector<std::string> kResources = {"array", "table", "mutable_table", "variable"};

// One node and what it reads.
class Trial {
 public:
  Trial(Op op, const std::vector<RecordedCase>& cases, Choices choices)
      : random_(choices), op_(op), schema_(FindSchema(op)) {
    node_ = *holder_.AddNode("node", op);
    if (!cases.empty() && !random_.OneIn(4)) {
      const RecordedCase& recorded = random_.Of(cases);
      node_->CopyAttrs(*recorded.node);
      for (const Tensor& value : recorded.inputs) inputs_.push_back({value.dtype(), value, ""});
    } else {
      if (schema_ != nullptr) {
        for (const AttrSpec& attr : schema_->attrs) {
          if (!attr.has_default || random_.OneIn(2)) SetAttr(attr);
        }
      }
      RelateTypes();
      MakeInputs();
    }
    for (size_t changes = random_.Below(4); changes > 0; --changes) Change();
  }

  std::string Describe() const {
    std::vector<std::string> parts;
    for (const Attr& attr : node_->attrs()) {
      const absl::StatusOr<DType> dtype = attr.value.AsType();
      parts.push_back(absl::StrCat(
          attr.key, "=", dtype.ok() ? DTypeName(*dtype) : absl::CHexEscape(attr.value.Encoded().substr(0, 60))));
    }
    for (const Input& input : inputs_) {
      parts.push_back(input.object.empty() ? absl::StrCat(DTypeName(input.dtype), input.value.shape().ToString())
                                           : input.object);
    }
    return absl::StrCat(op_.name(), "(", absl::StrJoin(parts, ", "), ")");
  }

  // Runs the node in two sessions, whose memory holds other bytes. Each input is a constant, fed, or comes from a
  // Merge.
  absl::StatusOr<std::vector<Tensor>> Run(std::vector<DType>* types) {
    Graph graph;
    std::vector<std::string> feeds;
    std::vector<Tensor> values;
    const auto feed = [&](const std::string& name, const Tensor& value) {
      Node* node = *graph.AddNode(name, ops::kPlaceholder);
      node->SetAttr("dtype", AttrValue::Type(value.dtype()));
      node->SetAttr("shape", AttrValue::OfShape(random_.OneIn(2) ? value.shape() : Shape::UnknownRank()));
      feeds.push_back(name);
      values.push_back(value);
      return TensorRef{node, 0};
    };
    char* chosen = nullptr;
    const Tensor choice_value = *Tensor::Allocate(DType::kBool, Shape(), &chosen);
    *chosen = static_cast<char>(random_.Below(2));
    Node* node = *graph.AddNode("node", op_);
    node->CopyAttrs(*node_);
    const bool through_merge = random_.OneIn(4), all_constant = random_.OneIn(3);
    TensorRef choice;
    if (through_merge) choice = feed("choice", choice_value);
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const Input& input = inputs_[i];
      if (!input.object.empty()) {
        graph.AddInput(node, Object(&graph, input.object));
        continue;
      }
      if (all_constant || random_.OneIn(3)) {
        graph.AddInput(node, {*graph.AddConst(absl::StrCat("const", i), input.value), 0});
        continue;
      }
      const TensorRef fed = feed(absl::StrCat("input", i), input.value);
      graph.AddInput(node, through_merge ? ThroughMerge(&graph, i, fed, choice, input.dtype) : fed);
    }
    const absl::StatusOr<std::vector<DType>> outputs = OutputTypes(*node);
    std::vector<std::string> fetches;
    if (!outputs.ok()) fetches.push_back("node");
    for (size_t i = 0; outputs.ok() && i < outputs->size(); ++i) {
      if (HoldsObjects(RemoveRef((*outputs)[i]))) continue;
      fetches.push_back(absl::StrCat("node:", i));
      types->push_back(RemoveRef((*outputs)[i]));
    }
    SessionOptions options;
    if (fetches.empty()) options.targets = {"node"};
    options.memory_limit = kMemoryLimit;
    options.loop_limits.most_iterations = kMostIterations;
    options.num_threads = random_.OneIn(4) ? 3 : 1;
    options.print = [](absl::string_view, absl::string_view) {};
    const auto run = [&](unsigned char fill) -> absl::StatusOr<std::vector<Tensor>> {
      FillAllocations(fill);
      PF_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Create(graph, feeds, fetches, options));
      PF_RETURN_IF_ERROR(session->Run(values).status());
      return session->Run(values);  // With what the first run prepared.
    };
    PF_ASSIGN_OR_RETURN(std::vector<Tensor> results, run(0x3c));  // About 0.01 as a float, half or bfloat16.
    if (schema_ == nullptr || schema_->traits != kPure) return results;
    const absl::StatusOr<std::vector<Tensor>> again = run(0x41);  // A few units.
    if (!again.ok()) return absl::InternalError(absl::StrCat("a second session fails: ", again.status().ToString()));
    for (size_t i = 0; i < results.size(); ++i) {
      if (!AreIdentical(results[i], (*again)[i])) {
        return absl::InternalError(
            absl::StrCat(fetches[i], " depends on memory that was not written: ", Difference(results[i], (*again)[i])));
      }
    }
    return results;
  }

 private:
  static bool AreIdentical(const Tensor& a, const Tensor& b) {
    if (a.dtype() != b.dtype() || a.shape() != b.shape()) return false;
    return a.dtype() == DType::kString ? a.strings() == b.strings() : a.bytes() == b.bytes();
  }

  // The bytes of the first element that differs.
  static std::string Difference(const Tensor& a, const Tensor& b) {
    const size_t size = SizeOf(a.dtype());
    if (a.dtype() != b.dtype() || a.shape() != b.shape() || size == 0) return "types, shapes or texts";
    size_t at = 0;
    while (a.bytes().substr(at, size) == b.bytes().substr(at, size)) at += size;
    return absl::StrCat("element ", at / size, " of ", a.shape().ToString(), " is ",
                        absl::BytesToHexString(a.bytes().substr(at, size)), " and ",
                        absl::BytesToHexString(b.bytes().substr(at, size)));
  }

  // A type that the kernel has, that the schema allows, or any.
  DType AnyType(absl::string_view attr) {
    if (!random_.OneIn(12)) {
      for (const TypeConstraint& constraint : FindKernel(op_)->constraints()) {
        if (constraint.attr == attr) return random_.Of(constraint.types);
      }
      const AttrSpec* spec = schema_ == nullptr ? nullptr : schema_->FindAttr(attr);
      if (spec != nullptr && !spec->allowed_types.empty()) return random_.Of(spec->allowed_types);
    }
    return random_.Of(kTypes);
  }

  // Whether the attribute is the number of inputs or outputs, of which a node has few.
  bool IsCount(absl::string_view attr) const {
    const auto has = [&](const std::vector<ArgSpec>& args) {
      return std::any_of(args.begin(), args.end(), [&](const ArgSpec& arg) { return arg.number_attr == attr; });
    };
    return has(schema_->inputs) || has(schema_->outputs);
  }

  int64_t AnyInteger() {
    return random_.OneIn(3) ? random_.Of(kExtremeIntegers) : 1 + static_cast<int64_t>(random_.Below(3));
  }

  float AnyFloat() { return random_.OneIn(2) ? random_.Of(kOrdinaryFloats) : random_.Of(kExtremeFloats); }

  void SetAttr(const AttrSpec& spec) {
    const Kind kind =
        random_.OneIn(30) ? random_.Of(std::vector<Kind>{Kind::kInt, Kind::kString, Kind::kType}) : spec.kind;
    node_->SetAttr(spec.name, spec.is_list ? AnyList(spec.name, kind) : AnyValue(spec.name, kind));
  }

  AttrValue AnyValue(const std::string& name, Kind kind) {
    switch (kind) {
      case Kind::kInt:
        if (IsCount(name) && !random_.OneIn(8)) return AttrValue::Int(static_cast<int64_t>(random_.Below(4)));
        return AttrValue::Int(AnyInteger());
      case Kind::kFloat:
        return AttrValue::Float(AnyFloat());
      case Kind::kBool:
        return AttrValue::Bool(random_.OneIn(2));
      case Kind::kString:
        return AttrValue::String(random_.Of(kTexts));
      case Kind::kType:
        return AttrValue::Type(AnyType(name));
      case Kind::kShape:
        return AttrValue::OfShape(random_.OneIn(4) ? Shape::UnknownRank() : random_.Of(kShapes));
      case Kind::kTensor:
        return AttrValue::OfTensor(AnyTensor(random_.Of(kTypes), random_.Of(kShapes)));
      default:
        return AttrValue::Function({"no_function", {}});
    }
  }

  AttrValue AnyList(const std::string& name, Kind kind) {
    const size_t count = random_.Below(6);
    std::vector<int64_t> integers;
    std::vector<float> floats;
    std::vector<std::string> texts;
    std::vector<DType> types;
    std::vector<Shape> shapes;
    for (size_t i = 0; i < count; ++i) {
      integers.push_back(random_.OneIn(2) ? 1 : AnyInteger());
      floats.push_back(AnyFloat());
      texts.push_back(random_.Of(kTexts));
      types.push_back(AnyType(name));
      shapes.push_back(random_.Of(kShapes));
    }
    if (kind == Kind::kFloat) return AttrValue::FloatList(floats);
    if (kind == Kind::kString) return AttrValue::StringList(texts);
    if (kind == Kind::kType) return AttrValue::TypeList(types);
    if (kind == Kind::kShape) return AttrValue::ShapeList(shapes);
    return AttrValue::IntList(integers);
  }

  // Makes most nodes satisfy the relations of their type attributes.
  void RelateTypes() {
    if (schema_ == nullptr || random_.OneIn(8)) return;
    for (const TypeRelation& relation : schema_->type_relations) {
      if (!relation.is_complex_of) continue;
      const bool is_wide = random_.OneIn(2);
      node_->SetAttr(relation.attr, AttrValue::Type(is_wide ? DType::kComplex128 : DType::kComplex64));
      node_->SetAttr(relation.other, AttrValue::Type(is_wide ? DType::kDouble : DType::kFloat));
    }
  }

  Tensor AnyTensor(DType dtype, const Shape& shape) {
    if (dtype != DType::kString && SizeOf(dtype) != 0) return AnyNumbers(dtype, shape, &random_);
    std::vector<std::string> texts(static_cast<size_t>(shape.num_elements()));
    for (std::string& text : texts) text = random_.Of(kTexts);
    return Tensor::FromStrings(shape, std::move(texts));
  }

  Input AnyInput(DType dtype, const Shape& shape) {
    dtype = RemoveRef(dtype);
    if (HoldsObjects(dtype)) return {dtype, Tensor(), random_.Of(dtype == DType::kVariant ? kVariants : kResources)};
    if (dtype == DType::kFloat && op_.name().substr(0, 11) == "TensorArray" && random_.OneIn(2)) {
      return {dtype, Tensor(), "flow"};
    }
    Tensor value = AnyTensor(dtype, shape);
    return {value.dtype(), value, ""};
  }

  // Inputs of the types that the attributes specify, often of one shape; of any types if they specify none.
  void MakeInputs() {
    const absl::StatusOr<std::vector<DType>> types = InputTypes(*node_);
    std::vector<DType> wanted = types.value_or(std::vector<DType>());
    if (!types.ok() || wanted.size() > 16) {
      wanted.clear();
      for (size_t i = random_.Below(4); i > 0; --i) wanted.push_back(random_.Of(kTypes));
    }
    const Shape common = random_.Of(kShapes);
    const bool is_common = random_.OneIn(2);
    for (const DType dtype : wanted) {
      const bool is_small = random_.OneIn(3);  // As sizes, axes and ranges are.
      inputs_.push_back(AnyInput(dtype, is_small    ? random_.OneIn(2) ? Shape() : Shape({2})
                                           : is_common ? common
                                                    : random_.Of(kShapes)));
    }
  }

  void Change() {
    const size_t i = inputs_.empty() ? 0 : random_.Below(inputs_.size());
    const size_t kind = random_.Below(10);
    if (kind <= 2) {
      if (schema_ != nullptr && !schema_->attrs.empty()) SetAttr(random_.Of(schema_->attrs));
      FollowTypes();
    } else if (kind == 3) {
      if (!node_->attrs().empty()) node_->RemoveAttr(std::string(random_.Of(node_->attrs()).key));
    } else if (kind == 4 && random_.OneIn(2)) {
      inputs_.push_back(AnyInput(random_.Of(kTypes), random_.Of(kShapes)));
    } else if (inputs_.empty()) {
      return;
    } else if (kind == 4) {
      inputs_.pop_back();
    } else if (kind == 5) {
      inputs_[i] = AnyInput(random_.Of(kTypes), inputs_[i].object.empty() ? inputs_[i].value.shape() : Shape());
    } else if (kind <= 7) {
      inputs_[i] = AnyInput(inputs_[i].dtype, random_.Of(kShapes));
    } else if (kind == 8 && inputs_[i].object.empty()) {
      inputs_[i] = AnyInput(inputs_[i].dtype, inputs_[i].value.shape());
    } else if (inputs_[i].object.empty()) {
      ChangeBytes(&inputs_[i]);
    }
  }

  // Gives the inputs the types that the attributes now specify.
  void FollowTypes() {
    const absl::StatusOr<std::vector<DType>> types = InputTypes(*node_);
    if (!types.ok() || random_.OneIn(8)) return;
    for (size_t i = 0; i < std::min(inputs_.size(), types->size()); ++i) {
      if (RemoveRef((*types)[i]) == inputs_[i].dtype) continue;
      inputs_[i] = AnyInput((*types)[i], inputs_[i].object.empty() ? inputs_[i].value.shape() : random_.Of(kShapes));
    }
  }

  // Changes a few bytes of the content: of a file in a string, of numbers.
  void ChangeBytes(Input* input) {
    const auto change = [&](std::string* bytes) {
      for (size_t count = 1 + random_.Below(3); count > 0 && !bytes->empty(); --count) {
        (*bytes)[random_.Below(bytes->size())] = static_cast<char>(random_.OneIn(3) ? 0xff : random_.Bits());
      }
    };
    if (input->dtype == DType::kString) {
      std::vector<std::string> texts = input->value.strings();
      if (texts.empty()) return;
      std::string* text = &texts[random_.Below(texts.size())];
      if (random_.OneIn(3)) text->resize(random_.Below(text->size() + 1));
      change(text);
      input->value = Tensor::FromStrings(input->value.shape(), std::move(texts));
      return;
    }
    const auto bytes = std::make_shared<std::string>(input->value.bytes());
    change(bytes.get());
    input->value = *Tensor::FromBytes(input->dtype, input->value.shape(), *bytes, bytes);
  }

  static TensorRef ConstOf(Graph* graph, Tensor value) {
    return {*graph->AddConst(graph->UniqueName("of_object"), std::move(value)), 0};
  }

  // The type in one of these attributes of the node, so that an object often fits it; sometimes any.
  DType TypeOf(const std::vector<std::string>& attrs) {
    for (const std::string& attr : attrs) {
      if (!node_->HasAttr(attr) || random_.OneIn(8)) continue;
      const absl::StatusOr<DType> dtype = TypeAttr(*node_, attr);
      if (dtype.ok()) return *dtype;
    }
    return random_.OneIn(2) ? DType::kFloat : random_.Of(kTypes);
  }

  // Adds the node that makes the object, once.
  TensorRef Object(Graph* graph, const std::string& name) {
    const bool is_flow = name == "flow";
    const std::string producer = is_flow ? "array" : name;
    Node* node = graph->Find(producer);
    if (node == nullptr) {
      const DType dtype = TypeOf({"dtype", "element_dtype", "Tout", "Tval", "T"});
      const auto attr = [&](absl::string_view key, DType type) { node->SetAttr(key, AttrValue::Type(type)); };
      const auto make = [&](absl::string_view op) { node = *graph->AddNode(producer, Op::Named(op)); };
      const Tensor element_shape = Tensor::FromVector<int32_t>(Shape({1}), {random_.OneIn(2) ? -1 : 2});
      if (producer == "array") {
        make("TensorArrayV3");
        attr("dtype", dtype);
        graph->AddInput(node, ConstOf(graph, Tensor::Scalar<int32_t>(3)));
      } else if (producer == "table" || producer == "mutable_table") {
        make(producer == "table" ? "HashTableV2" : "MutableHashTableV2");
        attr("key_dtype", TypeOf({"Tin", "Tkey", "key_dtype"}));
        attr("value_dtype", dtype);
      } else if (producer == "variable") {
        make("VarHandleOp");
        attr("dtype", dtype);
        node->SetAttr("shape", AttrValue::OfShape(Shape({2})));
      } else if (producer == "list") {
        make("TensorListFromTensor");
        attr("element_dtype", dtype == DType::kVariant || dtype == DType::kResource ? DType::kFloat : dtype);
        attr("shape_type", DType::kInt32);
        graph->AddInput(node, ConstOf(graph, AnyTensor(*TypeAttr(*node, "element_dtype"), Shape({3, 2}))));
        graph->AddInput(node, ConstOf(graph, element_shape));
      } else {
        make(producer == "empty_list" ? "EmptyTensorList" : "TensorListReserve");
        attr("element_dtype", dtype);
        attr("shape_type", DType::kInt32);
        graph->AddInput(node, ConstOf(graph, element_shape));
        graph->AddInput(node, ConstOf(graph, Tensor::Scalar<int32_t>(3)));
      }
    }
    return {node, is_flow ? 1 : 0};
  }

  Choices random_;
  Op op_;
  const OpSchema* schema_;
  Graph holder_;
  Node* node_;
  std::vector<Input> inputs_;
};

// The recorded cases of all families, by op.
const std::map<std::string, std::vector<RecordedCase>>& CasesByOp() {
  static const auto* const kCases = [] {
    auto* cases = new std::map<std::string, std::vector<RecordedCase>>;
    for (const std::string& family : RecordedFamilies()) {
      const Graph* graph = ReadRecordedFamily(family)->release();
      for (const Node* node : RecordedNodes(*graph)) {
        (*cases)[std::string(node->op().name())].push_back(*ReadRecordedCase(*graph, *node));
      }
    }
    return cases;
  }();
  return *kCases;
}

// Reads every byte, so that a sanitizer finds memory that is not the tensor's.
uint64_t Touch(const Tensor& tensor) {
  uint64_t sum = 0;
  if (tensor.dtype() == DType::kString) {
    for (const std::string& text : tensor.strings()) sum += absl::HashOf(text);
  }
  for (const char byte : tensor.bytes()) sum += static_cast<unsigned char>(byte);
  return sum;
}

}  // namespace

TrialOutcome RunAnyInputTrial(Op op, Choices choices, void (*describe)(const std::string& text)) {
  static const std::vector<RecordedCase> kNone;
  const auto found = CasesByOp().find(std::string(op.name()));
  Trial trial(op, found == CasesByOp().end() ? kNone : found->second, choices);
  if (describe != nullptr) describe(trial.Describe());
  std::vector<DType> types;
  const absl::StatusOr<std::vector<Tensor>> outputs = trial.Run(&types);
  TrialOutcome outcome{outputs.status(), ""};
  if (absl::IsInternal(outputs.status()) || absl::IsUnknown(outputs.status())) {
    outcome.finding = outputs.status().ToString();
  } else if (outputs.ok() && outputs->size() != types.size()) {
    outcome.finding = absl::StrCat(outputs->size(), " outputs, expected ", types.size());
  } else if (outputs.ok()) {
    for (size_t k = 0; k < types.size(); ++k) {
      if ((*outputs)[k].dtype() != types[k]) {
        outcome.finding =
            absl::StrCat("output ", k, " is ", DTypeName((*outputs)[k].dtype()), ", expected ", DTypeName(types[k]));
      }
      Touch((*outputs)[k]);
    }
  }
  if (!outcome.finding.empty()) outcome.finding = absl::StrCat(trial.Describe(), ": ", outcome.finding);
  return outcome;
}

}  // namespace permafrost
