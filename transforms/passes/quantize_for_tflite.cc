// Quantises a graph to the operators on codes that TensorFlow Lite has.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "graph/analysis/uniform_quantization.h"
#include "graph/base/status.h"
#include "graph/ops/op_schema.h"
#include "graph/shapes/shape_inference.h"
#include "transforms/pass.h"
#include "transforms/rewrites/constant_values.h"
#include "transforms/rewrites/quantizable_operators.h"
#include "transforms/rewrites/splicing.h"

namespace permafrost {
namespace {

struct Params {
  std::string mode = "int8";
  std::string calibration;
  std::vector<std::string> keep_float;
  std::string io_type = "float";
  int32_t minimum_size = 1024;
};

// Weights of dynamic and int4 models: fewer elements than this stay float (TensorFlow's converter has the same bound).
constexpr int kInt8Steps = 127, kInt4Steps = 7;
// A bias whose code would exceed this share of its type raises the scale of the weights. Accumulators keep room.
constexpr double kMostBias32 = 1 << 30;
constexpr double kMostBias64 = static_cast<double>(int64_t{1} << 46);  // Multipliers of int16x8 take 48 bits.
// The scale of a tensor that is always 0, and of channels whose weights are.
constexpr float kScaleOfZero = 1.f / 127;

using Attrs = std::vector<std::pair<absl::string_view, AttrValue>>;

// One scale and zero point.
struct Affine {
  float scale = 1;
  int32_t zero_point = 0;
  friend bool operator==(const Affine& a, const Affine& b) {
    return a.scale == b.scale && a.zero_point == b.zero_point;
  }
};

struct ValueRange {
  double low = 0, high = 0;  // Contains 0.
  void Add(const ValueRange& other) {
    low = std::min(low, other.low);
    high = std::max(high, other.high);
  }
};

// Lines of a calibration file about an operator with weights.
struct WeightLines {
  std::vector<float> scales;  // By output channel.
  std::vector<float> bias;    // To be added to the bias.
  std::string codes;          // Of int8, in the layout of the weights.
};

// A calibration file: ranges by the names of tensors ("conv", "split:1"), and weights by the names of the last nodes of
// operators.
struct Calibration {
  absl::flat_hash_map<std::string, ValueRange> ranges;
  absl::flat_hash_map<std::string, WeightLines> weights;
};

absl::StatusOr<Calibration> ParseCalibration(absl::string_view text) {
  Calibration calibration;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = absl::StripAsciiWhitespace(line);
    if (line.empty() || line[0] == '#') continue;
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    const auto malformed = [&] {
      return absl::InvalidArgumentError(absl::StrCat(
          "line ", number, " of the calibration begins with '", line.substr(0, 60),
          "', expected 'TENSOR LOW HIGH' with LOW <= HIGH, or '@scales', '@bias' or '@codes' with a node"));
    };
    if (absl::StartsWith(line, "@rounded ") || absl::StartsWith(line, "@channels ")) continue;  // Of other passes.
    if (line[0] == '@') {
      if (words.size() < 3) return malformed();
      WeightLines& weights = calibration.weights[std::string(words[1])];
      if (words[0] == "@codes") {
        if (words.size() != 3 || !absl::Base64Unescape(words[2], &weights.codes)) return malformed();
        continue;
      }
      if (words[0] != "@scales" && words[0] != "@bias") return malformed();
      std::vector<float>& values = words[0] == "@bias" ? weights.bias : weights.scales;
      values.clear();
      for (size_t i = 2; i < words.size(); ++i) {
        float value = 0;
        if (!absl::SimpleAtof(words[i], &value) || !std::isfinite(value)) return malformed();
        if (words[0] == "@scales" && !(value > 0)) return malformed();
        values.push_back(value);
      }
      continue;
    }
    double low = 0, high = 0;
    if (words.size() != 3 || !absl::SimpleAtod(words[1], &low) || !absl::SimpleAtod(words[2], &high) ||
        !std::isfinite(low) || !std::isfinite(high) || low > high) {
      return malformed();
    }
    calibration.ranges[std::string(words[0])] = {std::min(low, 0.0), std::max(high, 0.0)};
  }
  return calibration;
}

// Classes of tensors with one scale: a union-find structure.
class ScaleClasses {
 public:
  int ClassOf(TensorRef ref) {
    const auto [found, is_new] = index_.try_emplace(ref, static_cast<int>(parent_.size()));
    if (is_new) {
      parent_.push_back(found->second);
      ranges_.emplace_back();
      fixed_.emplace_back();
    }
    return Root(found->second);
  }
  void Join(int a, int b) {
    a = Root(a);
    b = Root(b);
    if (a == b) return;
    parent_[static_cast<size_t>(b)] = a;
    range(a).Add(range(b));
    if (!fixed(a).has_value()) fixed(a) = fixed(b);
  }
  ValueRange& range(int i) { return ranges_[static_cast<size_t>(Root(i))]; }
  std::optional<FixedScale>& fixed(int i) { return fixed_[static_cast<size_t>(Root(i))]; }

 private:
  int Root(int i) {
    while (parent_[static_cast<size_t>(i)] != i) {
      parent_[static_cast<size_t>(i)] = parent_[static_cast<size_t>(parent_[static_cast<size_t>(i)])];
      i = parent_[static_cast<size_t>(i)];
    }
    return i;
  }
  absl::flat_hash_map<TensorRef, int> index_;
  std::vector<int> parent_;
  std::vector<ValueRange> ranges_;
  std::vector<std::optional<FixedScale>> fixed_;
};

ValueRange RangeOf(const Tensor& value) {
  ValueRange range;
  const UnalignedSpan<float> elements = value.elements<float>();
  for (size_t i = 0; i < elements.size(); ++i) {
    range.low = std::min<double>(range.low, elements[i]);
    range.high = std::max<double>(range.high, elements[i]);
  }
  return range;
}

bool AllFinite(const Tensor& value) {
  const UnalignedSpan<float> elements = value.elements<float>();
  for (size_t i = 0; i < elements.size(); ++i) {
    if (!std::isfinite(elements[i])) return false;
  }
  return true;
}

// An operator, with the scales of its tensors.
struct Planned {
  QuantizableOperator op;
  std::vector<Affine> operands;
  Affine result;
};

class Quantizer {
 public:
  Quantizer(Graph* graph, const Params& params, PassContext* context)
      : graph_(graph),
        params_(params),
        context_(context),
        code_(params.mode == "int16x8" ? DType::kInt16 : DType::kInt8) {}

  absl::StatusOr<int64_t> Run() {
    const bool is_integer = params_.mode == "int8" || params_.mode == "int16x8";
    if (!is_integer && params_.mode != "dynamic" && params_.mode != "int4") {
      return absl::InvalidArgumentError(
          absl::StrCat("mode is '", params_.mode, "', expected int8, int16x8, dynamic or int4"));
    }
    if (params_.io_type != "float" && (!is_integer || (params_.io_type != "int8" && params_.io_type != "uint8"))) {
      return absl::InvalidArgumentError(absl::StrCat("io_type is '", params_.io_type, "' for the mode ", params_.mode,
                                                     ", expected float, or int8 or uint8 for integer modes"));
    }
    PF_ASSIGN_OR_RETURN(shapes_, InferShapes(*graph_));
    PF_ASSIGN_OR_RETURN(std::vector<QuantizableOperator> found, FindQuantizableOperators(*graph_, shapes_));
    NoteUnknownNames();
    int64_t count = 0;
    std::string text;
    if (!params_.calibration.empty()) {
      if (!context_->read_file) return absl::FailedPreconditionError("there is nothing to read files with");
      PF_ASSIGN_OR_RETURN(text, context_->read_file(params_.calibration));
    }
    PF_ASSIGN_OR_RETURN(calibration_, ParseCalibration(text));
    if (is_integer) {
      PF_ASSIGN_OR_RETURN(count, QuantizeAll(std::move(found)));
    } else {
      PF_ASSIGN_OR_RETURN(count, QuantizeWeights(found));
    }
    PF_RETURN_IF_ERROR(RemoveUnread(graph_, maybe_unread_).status());
    return count;
  }

 private:
  // --- Choice ---------------------------------------------------------------------------------------------------
  bool IsKept(const QuantizableOperator& op) const {
    for (const std::string& name : params_.keep_float) {
      for (const Node* node : op.nodes) {
        if (node->name() == name) return true;
        absl::string_view prefix = name;
        if (absl::ConsumeSuffix(&prefix, "*") && absl::StartsWith(node->name(), prefix)) return true;
      }
    }
    return false;
  }

  void NoteUnknownNames() {
    for (const std::string& name : params_.keep_float) {
      if (!absl::EndsWith(name, "*") && graph_->Find(name) == nullptr) {
        context_->NoteAbsent(absl::StrCat("keep_float: no node has the name '", name, "'"));
      }
    }
  }

  const ValueRange* RangeOfTensor(TensorRef ref) const {
    const auto found = calibration_.ranges.find(ref.ToString());
    return found == calibration_.ranges.end() ? nullptr : &found->second;
  }

  std::vector<TensorRef> Results(const QuantizableOperator& op) const {
    std::vector<TensorRef> results;
    const absl::StatusOr<std::vector<DType>> types = OutputTypes(*op.root);
    if (!types.ok() || !op.has_code_result) return results;
    for (int port = 0; static_cast<size_t>(port) < types->size(); ++port) {
      if (graph_->HasDataUses({op.root, port}) || (port == 0 && graph_->IsOutput(op.root))) {
        results.push_back({op.root, port});
      }
    }
    return results;
  }

  // Returns the reason why the operator stays float, or an empty string.
  std::string Obstacle(const QuantizableOperator& op) const {
    if (IsKept(op)) return "is kept in float";
    if (code_ == DType::kInt16 && !op.takes_int16) return "has no kernel for int16";
    const bool has_several = NumOutputs(*op.root).value_or(1) > 1;
    if (has_several && op.root->num_inputs() > op.root->num_data_inputs()) return "has control inputs";
    if (has_several && graph_->IsOutput(op.root)) return "has several outputs, of which one is an output of the model";
    for (size_t i = 0; i < op.operands.size(); ++i) {
      const TensorRef operand = op.Operand(i);
      const std::optional<Tensor> value = FloatConstant(operand);
      if (value.has_value() && (value->num_elements() == 0 || !AllFinite(*value))) {
        return "reads a constant that is empty or not finite";
      }
      if (!value.has_value() && RangeOfTensor(operand) == nullptr) {
        return absl::StrCat("reads '", operand.ToString(), "', whose range is not known");
      }
    }
    const std::optional<FixedScale>& fixed = code_ == DType::kInt16 ? op.fixed16 : op.fixed8;
    for (const TensorRef result : Results(op)) {
      if (!op.has_one_scale && !fixed.has_value() && RangeOfTensor(result) == nullptr) {
        return absl::StrCat("has the result '", result.ToString(), "', whose range is not known");
      }
    }
    if (op.kind == QuantizableKind::kWeighted) {
      const std::optional<Tensor> weights = FloatConstant(op.core->input(op.weights));
      if (!AllFinite(*weights)) return "has weights that are not finite";
      if (op.bias.node != nullptr && !AllFinite(*FloatConstant(op.bias))) return "has a bias that is not finite";
      if (op.core->op() == ops::kMatMul && BoolAttr(*op.core, "transpose_a").value_or(false)) {
        return "transposes its input";
      }
      if (op.core->op() == ops::kBatchMatMulV2) {
        if (BoolAttr(*op.core, "adj_x").value_or(false)) return "transposes its input";
        const Shape shape = shapes_.Of({op.core, 0});
        int open = 0;
        for (int i = 0; shape.has_rank() && i < shape.rank(); ++i) open += shape.dim(i) < 0 ? 1 : 0;
        if (!shape.has_rank() || open > 1) return "has a result of unknown shape";
      }
    }
    return "";
  }

  Affine AffineOf(const ValueRange& range, const std::optional<FixedScale>& fixed) const {
    if (fixed.has_value()) return {fixed->scale, fixed->zero_point};
    Affine affine;
    if (code_ == DType::kInt16) {
      const double most = std::max(-range.low, range.high);
      affine.scale = most > 0 ? static_cast<float>(most / 32767) : kScaleOfZero;
      if (!(affine.scale > 0)) affine.scale = std::numeric_limits<float>::min();
      return affine;
    }
    const double scale = (range.high - range.low) / 255;
    affine.scale = scale > 0 ? static_cast<float>(scale) : kScaleOfZero;
    if (!(affine.scale > std::numeric_limits<float>::min())) affine.scale = std::numeric_limits<float>::min();
    affine.zero_point =
        static_cast<int32_t>(std::clamp(std::round(-128 - range.low / static_cast<double>(affine.scale)), -128., 127.));
    return affine;
  }

  absl::StatusOr<int64_t> QuantizeAll(std::vector<QuantizableOperator> found) {
    // Operators that move codes are worth it only beside others.
    absl::flat_hash_map<TensorRef, bool> has_codes;  // Results of chosen operators.
    std::vector<QuantizableOperator> chosen;
    for (QuantizableOperator& op : found) {
      std::string obstacle = Obstacle(op);
      if (obstacle.empty() && op.kind == QuantizableKind::kMoved) {
        bool is_fed_by_codes = false;
        for (size_t i = 0; i < op.operands.size(); ++i) {
          const TensorRef operand = op.Operand(i);
          is_fed_by_codes |= has_codes.contains(operand) || graph_->IsInput(operand.node);
        }
        if (!is_fed_by_codes) obstacle = "moves numbers that are not quantised";
      }
      if (!obstacle.empty()) {
        context_->MissIfWanted(*op.root, obstacle);
        continue;
      }
      for (const TensorRef result : Results(op)) has_codes[result] = true;
      chosen.push_back(std::move(op));
    }
    // Scales: classes of tensors that share one.
    ScaleClasses classes;
    std::vector<std::pair<size_t, size_t>> rescaled;  // Operator and operand.
    for (size_t k = 0; k < chosen.size(); ++k) {
      const QuantizableOperator& op = chosen[k];
      const std::vector<TensorRef> results = Results(op);
      for (size_t i = 0; i < op.operands.size(); ++i) {
        const TensorRef operand = op.Operand(i);
        if (FloatConstant(operand).has_value()) continue;
        const int found_class = classes.ClassOf(operand);
        if (const ValueRange* range = RangeOfTensor(operand); range != nullptr) classes.range(found_class).Add(*range);
      }
      const std::optional<FixedScale>& fixed = code_ == DType::kInt16 ? op.fixed16 : op.fixed8;
      for (const TensorRef result : results) {
        const int found_class = classes.ClassOf(result);
        if (fixed.has_value()) classes.fixed(found_class) = fixed;
        if (const ValueRange* range = RangeOfTensor(result); range != nullptr && !op.has_one_scale) {
          classes.range(found_class).Add(*range);
        }
      }
      if (!op.has_one_scale) continue;
      // Several operands: one with a fixed scale is rescaled, for the others may exceed its range.
      int joined = -1;
      for (size_t i = 0; i < op.operands.size(); ++i) {
        const TensorRef operand = op.Operand(i);
        if (FloatConstant(operand).has_value()) continue;
        const int of_operand = classes.ClassOf(operand);
        if (op.operands.size() > 1 && classes.fixed(of_operand).has_value()) continue;
        if (joined >= 0) classes.Join(joined, of_operand);
        joined = joined < 0 ? of_operand : joined;
      }
      for (const TensorRef result : results) {
        if (joined >= 0) classes.Join(joined, classes.ClassOf(result));
        joined = classes.ClassOf(result);
      }
      if (joined < 0) continue;
      for (size_t i = 0; i < op.operands.size(); ++i) {
        const TensorRef operand = op.Operand(i);
        if (const std::optional<Tensor> value = FloatConstant(operand); value.has_value()) {
          classes.range(joined).Add(RangeOf(*value));
        } else if (const ValueRange* range = RangeOfTensor(operand); range != nullptr) {
          classes.range(joined).Add(*range);
        }
      }
    }
    std::vector<Planned> plan;
    for (QuantizableOperator& op : chosen) {
      Planned planned;
      const std::vector<TensorRef> results = Results(op);
      const auto affine_of = [&](TensorRef ref) {
        const int of_ref = classes.ClassOf(ref);
        return AffineOf(classes.range(of_ref), classes.fixed(of_ref));
      };
      if (!results.empty()) planned.result = affine_of(results[0]);
      for (size_t i = 0; i < op.operands.size(); ++i) {
        const TensorRef operand = op.Operand(i);
        const std::optional<Tensor> value = FloatConstant(operand);
        if (op.has_one_scale && !results.empty()) {
          planned.operands.push_back(planned.result);
        } else if (value.has_value()) {
          planned.operands.push_back(AffineOf(RangeOf(*value), std::nullopt));
        } else {
          planned.operands.push_back(affine_of(operand));
        }
      }
      planned.op = std::move(op);
      plan.push_back(std::move(planned));
    }
    int64_t count = 0;
    for (Planned& planned : plan) {
      std::vector<const Node*> matched(planned.op.nodes.begin(), planned.op.nodes.end());
      const RewriteScope rewrite(context_, graph_, matched);
      if (!rewrite) return count;
      PF_RETURN_IF_ERROR(Quantize(&planned));
      ++count;
    }
    if (params_.io_type != "float") {
      PF_ASSIGN_OR_RETURN(const int64_t changed, ChangeInterface());
      count += changed;
    }
    return count;
  }

  // --- Nodes ----------------------------------------------------------------------------------------------------
  std::string NameOf(const Node& node, absl::string_view suffix) const {
    return graph_->UniqueName(absl::StrCat(node.name(), "/", suffix));
  }

  absl::StatusOr<TensorRef> Const(const Node& near, absl::string_view suffix, Tensor value) {
    PF_ASSIGN_OR_RETURN(Node * node, graph_->AddConst(NameOf(near, suffix), std::move(value), position_));
    return TensorRef{node, 0};
  }

  absl::StatusOr<TensorRef> Add(const Node& near, absl::string_view suffix, Op op, absl::Span<const TensorRef> inputs,
                                Attrs attrs) {
    PF_ASSIGN_OR_RETURN(Node * node, graph_->AddNode(NameOf(near, suffix), op, position_));
    node->set_device(near.device());
    for (const TensorRef& input : inputs) graph_->AddInput(node, input);
    for (auto& [key, value] : attrs) node->SetAttr(key, std::move(value));
    return TensorRef{node, 0};
  }

  static AttrValue Float() { return AttrValue::Type(DType::kFloat); }

  // Attributes of a Uniform node.
  static Attrs UniformAttrs(bool quantizes, DType codes, int axis, int64_t lowest, int64_t highest) {
    return {{"Tin", quantizes ? Float() : AttrValue::Type(codes)},
            {"Tout", quantizes ? AttrValue::Type(codes) : Float()},
            {"quantization_axis", AttrValue::Int(axis)},
            {"quantization_min_val", AttrValue::Int(lowest)},
            {"quantization_max_val", AttrValue::Int(highest)}};
  }

  static std::pair<int64_t, int64_t> LimitsOf(DType dtype) {
    if (dtype == DType::kInt16) return {-32768, 32767};
    if (dtype == DType::kUint8) return {0, 255};
    return {-128, 127};
  }

  absl::StatusOr<TensorRef> Uniform(const Node& near, absl::string_view suffix, TensorRef x, const Affine& affine,
                                    DType codes, bool quantizes) {
    PF_ASSIGN_OR_RETURN(const TensorRef scale, Const(near, "scale", Tensor::Scalar(affine.scale)));
    PF_ASSIGN_OR_RETURN(const TensorRef point, Const(near, "zero_point", Tensor::Scalar(affine.zero_point)));
    const auto [lowest, highest] = LimitsOf(codes);
    return Add(near, suffix, quantizes ? UniformQuantizeOp() : UniformDequantizeOp(), {x, scale, point},
               UniformAttrs(quantizes, codes, -1, lowest, highest));
  }

  // Returns whether a tensor is the numbers of codes with this scale.
  bool IsOf(TensorRef ref, const Affine& affine, DType codes) const {
    if (ref.port != 0 || ref.node->op() != UniformDequantizeOp()) return false;
    const absl::StatusOr<UniformScales> scales = ReadUniformScales(*ref.node);
    return scales.ok() && scales->axis < 0 && scales->scales[0] == affine.scale &&
           scales->zero_points[0] == affine.zero_point && TypeAttr(*ref.node, "Tin").value_or(DType::kInvalid) == codes;
  }

  // Returns the codes of a float tensor: those that it was made from, the codes of a constant, or a new quantisation.
  absl::StatusOr<TensorRef> Codes(TensorRef ref, const Affine& affine) {
    if (IsOf(ref, affine, code_)) return ref.node->input(0);
    const std::tuple<TensorRef, float, int32_t> key(ref, affine.scale, affine.zero_point);
    if (const auto found = codes_.find(key); found != codes_.end()) return found->second;
    TensorRef codes;
    if (const std::optional<Tensor> value = FloatConstant(ref); value.has_value()) {
      PF_ASSIGN_OR_RETURN(codes, Const(*ref.node, "codes", CodesOf(*value, affine)));
      maybe_unread_.push_back(ref.node);
    } else {
      PF_ASSIGN_OR_RETURN(codes, Uniform(*ref.node, "quantized", ref, affine, code_, true));
      // Codes of another scale are rescaled by an integer kernel.
      if (ref.node->op() == UniformDequantizeOp()) codes.node->SetAttr(kRoundingAttr, AttrValue::String("twice"));
    }
    codes_.emplace(key, codes);
    return codes;
  }

  // Returns a float tensor behind a dequantisation of codes with this scale.
  absl::StatusOr<TensorRef> Numbers(TensorRef ref, const Affine& affine) {
    if (IsOf(ref, affine, code_)) return ref;
    PF_ASSIGN_OR_RETURN(const TensorRef codes, Codes(ref, affine));
    if (const auto found = numbers_.find(codes); found != numbers_.end()) return found->second;
    PF_ASSIGN_OR_RETURN(const TensorRef numbers, Uniform(*codes.node, "numbers", codes, affine, code_, false));
    numbers_.emplace(codes, numbers);
    return numbers;
  }

  template <typename T>
  static Tensor CodesAs(const Tensor& value, const Affine& affine) {
    const auto [lowest, highest] = LimitsOf(sizeof(T) == 1 ? DType::kInt8 : DType::kInt16);
    const UnalignedSpan<float> elements = value.elements<float>();
    std::vector<T> codes(elements.size());
    for (size_t i = 0; i < codes.size(); ++i) {
      const double code = std::round(elements[i] / affine.scale) + affine.zero_point;
      codes[i] = static_cast<T>(std::clamp(code, static_cast<double>(lowest), static_cast<double>(highest)));
    }
    return Tensor::FromVector(value.shape(), std::move(codes));
  }
  Tensor CodesOf(const Tensor& value, const Affine& affine) const {
    return code_ == DType::kInt16 ? CodesAs<int16_t>(value, affine) : CodesAs<int8_t>(value, affine);
  }

  // --- Weights --------------------------------------------------------------------------------------------------
  struct WeightCodes {
    std::vector<int8_t> codes;  // As the weights.
    std::vector<float> scales;  // By channel.
  };

  // Finds the channel of each weight: channel = (i / inner) % channels.
  struct ChannelLayout {
    int64_t channels = 1, inner = 1;
    int axis = 0;  // Of the constant that is written.
  };
  static ChannelLayout LayoutOf(const Node& core, const Shape& shape) {
    ChannelLayout layout;
    if (core.op() == ops::kConv2D) {
      layout = {shape.dim(3), 1, 3};
    } else if (core.op() == ops::kDepthwiseConv2dNative) {
      layout = {shape.dim(2) * shape.dim(3), 1, 3};
    } else if (core.op() == ops::kConv2DBackpropInput) {
      layout = {shape.dim(2), shape.dim(3), 2};
    } else {
      const bool transposes = BoolAttr(core, core.op() == ops::kMatMul ? "transpose_b" : "adj_y").value_or(false);
      layout = transposes ? ChannelLayout{shape.dim(0), shape.dim(1), 0} : ChannelLayout{shape.dim(1), 1, 1};
    }
    return layout;
  }

  // Returns std::round(value) between -most and most, without a call; -most for NaN.
  static int RoundedAway(double value, double most) {
    const double limited = !(value > -most) ? -most : value > most ? most : value;
    const int whole = static_cast<int>(limited);
    const double rest = limited - static_cast<double>(whole);
    return whole + (rest >= 0.5 ? 1 : 0) - (rest <= -0.5 ? 1 : 0);
  }

  // Quantises weights symmetrically by channel. `least_scales`, if not empty, are lower bounds of the scales.
  static WeightCodes EncodeWeights(const Tensor& weights, const ChannelLayout& layout, int steps,
                                   const std::vector<double>& least_scales) {
    WeightCodes result;
    const UnalignedSpan<float> elements = weights.elements<float>();
    const size_t channels = static_cast<size_t>(layout.channels), inner = static_cast<size_t>(layout.inner);
    // The weights are [outer][channels][inner], of which one of the last two is usually 1.
    const size_t outer = elements.size() / std::max<size_t>(1, channels * inner);
    std::vector<float> most(channels, 0);
    size_t at = 0;
    for (size_t o = 0; o < outer; ++o) {
      for (size_t c = 0; c < channels; ++c) {
        for (size_t i = 0; i < inner; ++i) most[c] = std::max(most[c], std::abs(elements[at++]));
      }
    }
    // Weights of few significant bits are often halfway between two codes. The scale before it is rounded to a float
    // decides them, as in TensorFlow's converter.
    std::vector<double> exact(channels);
    result.scales.resize(channels);
    for (size_t c = 0; c < channels; ++c) {
      double scale = most[c] > 0 ? static_cast<double>(most[c]) / steps : kScaleOfZero;
      if (!least_scales.empty()) scale = std::max(scale, least_scales[c]);
      exact[c] = std::max(scale, static_cast<double>(std::numeric_limits<float>::min()));
      result.scales[c] = static_cast<float>(exact[c]);
    }
    result.codes.resize(elements.size());
    at = 0;
    for (size_t o = 0; o < outer; ++o) {
      for (size_t c = 0; c < channels; ++c) {
        const double scale = exact[c];
        for (size_t i = 0; i < inner; ++i, ++at) {
          result.codes[at] = static_cast<int8_t>(RoundedAway(static_cast<double>(elements[at]) / scale, steps));
        }
      }
    }
    return result;
  }

  // Returns the lines of the calibration for an operator, or null if there are none that fit it.
  const WeightLines* LinesOf(const QuantizableOperator& op, const Tensor& weights, const ChannelLayout& layout) {
    const auto found = calibration_.weights.find(std::string(op.root->name()));
    if (found == calibration_.weights.end()) return nullptr;
    const WeightLines& lines = found->second;
    const auto channels = static_cast<size_t>(layout.channels);
    if (lines.scales.size() == channels && lines.bias.size() == channels &&
        lines.codes.size() == static_cast<size_t>(weights.num_elements())) {
      return &lines;
    }
    context_->Note(absl::StrCat("the calibration has weights of another size for '", op.root->name(), "'"));
    return nullptr;
  }

  static void UseLines(const WeightLines& lines, int steps, WeightCodes* coded, std::vector<double>* bias) {
    coded->scales = lines.scales;
    for (size_t i = 0; i < coded->codes.size(); ++i) {
      coded->codes[i] = static_cast<int8_t>(std::clamp<int>(static_cast<int8_t>(lines.codes[i]), -steps, steps));
    }
    for (size_t c = 0; c < bias->size(); ++c) (*bias)[c] += lines.bias[c];
  }

  // Adds the weights as codes, and returns the numbers in the layout of the op.
  absl::StatusOr<TensorRef> AddWeights(const QuantizableOperator& op, const Shape& shape, WeightCodes weights,
                                       const ChannelLayout& layout, int steps) {
    const Node& near = *op.core->input(op.weights).node;
    const bool is_depthwise = op.core->op() == ops::kDepthwiseConv2dNative;
    const Shape stored = is_depthwise ? Shape({1, shape.dim(0), shape.dim(1), layout.channels}) : shape;
    PF_ASSIGN_OR_RETURN(const TensorRef codes,
                        Const(near, "codes", Tensor::FromVector(stored, std::move(weights.codes))));
    PF_ASSIGN_OR_RETURN(TensorRef numbers, AddScaled(near, codes, DType::kInt8, std::move(weights.scales), layout.axis,
                                                     steps == kInt4Steps ? -8 : -128, steps));
    maybe_unread_.push_back(op.core->input(op.weights).node);
    if (!is_depthwise) return numbers;
    std::vector<int32_t> dims;
    for (const int64_t dim : shape.dims()) dims.push_back(static_cast<int32_t>(dim));
    PF_ASSIGN_OR_RETURN(const TensorRef form, Const(near, "shape", Tensor::FromVector(Shape({4}), std::move(dims))));
    return Add(near, "filter", ops::kReshape, {numbers, form},
               {{"T", Float()}, {"Tshape", AttrValue::Type(DType::kInt32)}});
  }

  absl::StatusOr<TensorRef> AddScaled(const Node& near, TensorRef codes, DType dtype, std::vector<float> scales,
                                      int axis, int64_t lowest, int64_t highest) {
    const int64_t count = static_cast<int64_t>(scales.size());
    PF_ASSIGN_OR_RETURN(const TensorRef scale,
                        Const(near, "scales", Tensor::FromVector(Shape({count}), std::move(scales))));
    PF_ASSIGN_OR_RETURN(const TensorRef point,
                        Const(near, "zero_points",
                              Tensor::FromVector(Shape({count}), std::vector<int32_t>(static_cast<size_t>(count), 0))));
    return Add(near, "numbers", UniformDequantizeOp(), {codes, scale, point},
               UniformAttrs(false, dtype, count > 1 ? axis : -1, lowest, highest));
  }

  // --- Operators ------------------------------------------------------------------------------------------------
  // Makes `op`'s root the dequantised result, or gives the readers of each output one.
  absl::Status Finish(const QuantizableOperator& op, TensorRef codes, const Affine& affine) {
    Node* root = op.root;
    for (Node* node : op.nodes) {
      for (int i = 0; i < node->num_data_inputs(); ++i) maybe_unread_.push_back(node->input(i).node);
    }
    PF_ASSIGN_OR_RETURN(const TensorRef scale, Const(*root, "scale", Tensor::Scalar(affine.scale)));
    PF_ASSIGN_OR_RETURN(const TensorRef point, Const(*root, "zero_point", Tensor::Scalar(affine.zero_point)));
    const auto [lowest, highest] = LimitsOf(code_);
    // Control inputs of the operator's nodes move to its last node.
    std::vector<Node*> controls;
    for (const Node* node : op.nodes) {
      for (int i = node->num_data_inputs(); i < node->num_inputs(); ++i) controls.push_back(node->input(i).node);
    }
    graph_->ClearInputs(root);
    root->set_op(UniformDequantizeOp());
    root->ClearAttrs();
    for (const TensorRef input : {codes, scale, point}) graph_->AddInput(root, input);
    for (auto& [key, value] : UniformAttrs(false, code_, -1, lowest, highest)) root->SetAttr(key, std::move(value));
    for (Node* control : controls) graph_->AddControlInput(root, control);
    return absl::OkStatus();
  }

  absl::StatusOr<Node*> CopyOf(const Node& node, absl::string_view suffix, absl::Span<const TensorRef> inputs) {
    PF_ASSIGN_OR_RETURN(const TensorRef copy, Add(node, suffix, node.op(), inputs, {}));
    copy.node->CopyAttrs(node);
    return copy.node;
  }

  absl::Status Quantize(Planned* planned) {
    const QuantizableOperator& op = planned->op;
    position_ = op.root;
    if (op.kind == QuantizableKind::kMoved) return QuantizeMoved(*planned);
    TensorRef value;
    absl::string_view rounding = "twice";
    if (op.kind == QuantizableKind::kWeighted) {
      PF_ASSIGN_OR_RETURN(value, WeightedValue(*planned));
      if (op.core->op() == ops::kMatMul || op.core->op() == ops::kBatchMatMulV2) rounding = "exact";
    } else if (op.composition.has_value()) {
      PF_ASSIGN_OR_RETURN(value, ComposedValue(*planned));
    } else {
      std::vector<TensorRef> inputs;
      for (int i = 0; i < op.core->num_data_inputs(); ++i) inputs.push_back(op.core->input(i));
      for (size_t k = 0; k < op.operands.size(); ++k) {
        TensorRef& input = inputs[static_cast<size_t>(op.operands[k])];
        PF_ASSIGN_OR_RETURN(input, Numbers(input, planned->operands[k]));
      }
      PF_ASSIGN_OR_RETURN(Node * core, CopyOf(*op.core, "float", inputs));
      if (core->op() == ops::kAdd || core->op() == ops::kBiasAdd) {
        core->set_op(ops::kAddV2);
        core->RemoveAttr("data_format");
      }
      value = {core, 0};
    }
    if (op.activation != nullptr) {
      PF_ASSIGN_OR_RETURN(Node * activation, CopyOf(*op.activation, "float", {value}));
      value = {activation, 0};
    }
    // The last reshape of a product of more than two dimensions.
    if (op.kind == QuantizableKind::kWeighted && op.core->op() == ops::kBatchMatMulV2) {
      PF_ASSIGN_OR_RETURN(value, ReshapedTo(*op.root, value, shapes_.Of({op.core, 0})));
    }
    PF_ASSIGN_OR_RETURN(const TensorRef codes, Uniform(*op.root, "quantized", value, planned->result, code_, true));
    codes.node->SetAttr(kRoundingAttr, AttrValue::String(rounding));
    return Finish(op, codes, planned->result);
  }

  absl::StatusOr<TensorRef> ReshapedTo(const Node& near, TensorRef x, const Shape& shape) {
    std::vector<int32_t> dims;
    for (const int64_t dim : shape.dims()) dims.push_back(static_cast<int32_t>(dim));
    const int64_t rank = static_cast<int64_t>(dims.size());
    PF_ASSIGN_OR_RETURN(const TensorRef form, Const(near, "shape", Tensor::FromVector(Shape({rank}), std::move(dims))));
    return Add(near, "reshaped", ops::kReshape, {x, form},
               {{"T", Float()}, {"Tshape", AttrValue::Type(DType::kInt32)}});
  }

  absl::StatusOr<TensorRef> WeightedValue(const Planned& planned) {
    const QuantizableOperator& op = planned.op;
    const Tensor weights = *FloatConstant(op.core->input(op.weights));
    const ChannelLayout layout = LayoutOf(*op.core, weights.shape());
    const size_t channels = static_cast<size_t>(layout.channels);
    const double input_scale = planned.operands[0].scale;
    std::vector<double> bias(channels, 0);
    if (op.bias.node != nullptr) {
      const Tensor value = *FloatConstant(op.bias);
      for (size_t c = 0; c < channels; ++c) bias[c] = value.elements<float>()[value.num_elements() == 1 ? 0 : c];
    }
    const double most_bias = code_ == DType::kInt16 ? kMostBias64 : kMostBias32;
    std::vector<double> least(channels);
    for (size_t c = 0; c < channels; ++c) least[c] = std::abs(bias[c]) / (input_scale * most_bias);
    WeightCodes coded = EncodeWeights(weights, layout, kInt8Steps, least);
    if (const WeightLines* lines = LinesOf(op, weights, layout); lines != nullptr) {
      bool fits = true;
      for (size_t c = 0; c < channels; ++c) fits = fits && lines->scales[c] >= least[c];
      if (fits) UseLines(*lines, kInt8Steps, &coded, &bias);
    }
    std::vector<float> bias_scales(channels);
    std::vector<int32_t> codes32;
    std::vector<int64_t> codes64;
    for (size_t c = 0; c < channels; ++c) {
      // The product in float, as the reader of a file computes it.
      bias_scales[c] = std::max(coded.scales[c] * planned.operands[0].scale, std::numeric_limits<float>::min());
      const double code = std::round(bias[c] / (static_cast<double>(coded.scales[c]) * input_scale));
      if (code_ == DType::kInt16) {
        codes64.push_back(static_cast<int64_t>(std::clamp(code, -2 * kMostBias64, 2 * kMostBias64)));
      } else {
        codes32.push_back(static_cast<int32_t>(std::clamp(code, -2147483647., 2147483647.)));
      }
    }
    std::vector<TensorRef> inputs;
    for (int i = 0; i < op.core->num_data_inputs(); ++i) inputs.push_back(op.core->input(i));
    TensorRef& x = inputs[static_cast<size_t>(op.operands[0])];
    PF_ASSIGN_OR_RETURN(x, Numbers(x, planned.operands[0]));
    PF_ASSIGN_OR_RETURN(inputs[static_cast<size_t>(op.weights)],
                        AddWeights(op, weights.shape(), std::move(coded), layout, kInt8Steps));
    TensorRef value;
    if (op.core->op() == ops::kBatchMatMulV2) {
      const bool transposes = BoolAttr(*op.core, "adj_y").value_or(false);
      PF_ASSIGN_OR_RETURN(x, ReshapedTo(*op.core, x, Shape({-1, weights.shape().dim(transposes ? 1 : 0)})));
      PF_ASSIGN_OR_RETURN(
          value,
          Add(*op.core, "float", ops::kMatMul, inputs,
              {{"T", Float()}, {"transpose_a", AttrValue::Bool(false)}, {"transpose_b", AttrValue::Bool(transposes)}}));
    } else {
      PF_ASSIGN_OR_RETURN(Node * core, CopyOf(*op.core, "float", inputs));
      value = {core, 0};
    }
    const int64_t count = layout.channels;
    Tensor codes = code_ == DType::kInt16 ? Tensor::FromVector(Shape({count}), std::move(codes64))
                                          : Tensor::FromVector(Shape({count}), std::move(codes32));
    const DType dtype = codes.dtype();
    PF_ASSIGN_OR_RETURN(const TensorRef constant, Const(*op.root, "bias", std::move(codes)));
    PF_ASSIGN_OR_RETURN(const TensorRef addend,
                        AddScaled(*constant.node, constant, dtype, std::move(bias_scales), 0,
                                  std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()));
    return Add(*op.root, "biased", ops::kBiasAdd, {value, addend}, {{"T", Float()}});
  }

  // The formulas have the forms that the session's integer fusion knows (runtime_check/program/integer_fusion.cc).
  absl::StatusOr<TensorRef> ComposedValue(const Planned& planned) {
    const Composition& composition = *planned.op.composition;
    const Node& near = *planned.op.root;
    PF_ASSIGN_OR_RETURN(const TensorRef a, Numbers(composition.x, planned.operands[0]));
    const Attrs t = {{"T", Float()}};
    const auto number = [&](float value) { return Const(near, "constant", Tensor::Scalar(value)); };
    const auto unary = [&](Op op, TensorRef x) { return Add(near, "float", op, {x}, t); };
    const auto binary = [&](Op op, TensorRef x, TensorRef y) { return Add(near, "float", op, {x, y}, t); };
    switch (composition.function) {
      case ComposedFunction::kHardSwish: {
        PF_ASSIGN_OR_RETURN(const TensorRef three, number(3));
        PF_ASSIGN_OR_RETURN(const TensorRef sixth, number(1.f / 6));
        PF_ASSIGN_OR_RETURN(const TensorRef sum, binary(ops::kAddV2, a, three));
        PF_ASSIGN_OR_RETURN(const TensorRef gate, unary(ops::kRelu6, sum));
        PF_ASSIGN_OR_RETURN(const TensorRef scaled, binary(ops::kMul, gate, sixth));
        return binary(ops::kMul, a, scaled);
      }
      case ComposedFunction::kGelu: {
        PF_ASSIGN_OR_RETURN(const TensorRef half, number(0.5f));
        PF_ASSIGN_OR_RETURN(const TensorRef root, number(0.70710678f));
        PF_ASSIGN_OR_RETURN(const TensorRef one, number(1));
        PF_ASSIGN_OR_RETURN(const TensorRef halved, binary(ops::kMul, a, half));
        PF_ASSIGN_OR_RETURN(const TensorRef scaled, binary(ops::kMul, a, root));
        PF_ASSIGN_OR_RETURN(const TensorRef erf, unary(ops::kErf, scaled));
        PF_ASSIGN_OR_RETURN(const TensorRef sum, binary(ops::kAddV2, erf, one));
        return binary(ops::kMul, halved, sum);
      }
      case ComposedFunction::kGeluApproximate: {
        PF_ASSIGN_OR_RETURN(const TensorRef half, number(0.5f));
        PF_ASSIGN_OR_RETURN(const TensorRef cubic, number(0.044715f));
        PF_ASSIGN_OR_RETURN(const TensorRef root, number(0.79788456f));
        PF_ASSIGN_OR_RETURN(const TensorRef one, number(1));
        PF_ASSIGN_OR_RETURN(const TensorRef halved, binary(ops::kMul, a, half));
        PF_ASSIGN_OR_RETURN(const TensorRef square, unary(ops::kSquare, a));
        PF_ASSIGN_OR_RETURN(const TensorRef cube, binary(ops::kMul, square, a));
        PF_ASSIGN_OR_RETURN(const TensorRef part, binary(ops::kMul, cube, cubic));
        PF_ASSIGN_OR_RETURN(const TensorRef sum, binary(ops::kAddV2, a, part));
        PF_ASSIGN_OR_RETURN(const TensorRef scaled, binary(ops::kMul, sum, root));
        PF_ASSIGN_OR_RETURN(const TensorRef tanh, unary(ops::kTanh, scaled));
        PF_ASSIGN_OR_RETURN(const TensorRef gate, binary(ops::kAddV2, tanh, one));
        return binary(ops::kMul, halved, gate);
      }
      case ComposedFunction::kPRelu: {
        std::vector<float> slopes;
        const UnalignedSpan<float> values = composition.slope_value.elements<float>();
        for (size_t i = 0; i < values.size(); ++i) slopes.push_back(composition.slope_factor * values[i]);
        const Tensor slope = Tensor::FromVector(composition.slope_value.shape(), std::move(slopes));
        const Affine affine = AffineOf(RangeOf(slope), std::nullopt);
        PF_ASSIGN_OR_RETURN(const TensorRef codes, Const(near, "slope", CodesOf(slope, affine)));
        PF_ASSIGN_OR_RETURN(const TensorRef b, Uniform(*codes.node, "numbers", codes, affine, code_, false));
        PF_ASSIGN_OR_RETURN(const TensorRef positive, unary(ops::kRelu, a));
        PF_ASSIGN_OR_RETURN(const TensorRef opposite, unary(ops::kNeg, a));
        PF_ASSIGN_OR_RETURN(const TensorRef negative, unary(ops::kRelu, opposite));
        PF_ASSIGN_OR_RETURN(const TensorRef scaled, binary(ops::kMul, b, negative));
        return binary(ops::kSub, positive, scaled);
      }
      case ComposedFunction::kL2Normalization: {
        PF_ASSIGN_OR_RETURN(const TensorRef least, number(1e-6f));
        PF_ASSIGN_OR_RETURN(const TensorRef axis, Const(near, "axis", Tensor::Scalar<int32_t>(-1)));
        PF_ASSIGN_OR_RETURN(const TensorRef square, unary(ops::kSquare, a));
        PF_ASSIGN_OR_RETURN(
            const TensorRef sum,
            Add(near, "float", ops::kSum, {square, axis},
                {{"T", Float()}, {"Tidx", AttrValue::Type(DType::kInt32)}, {"keep_dims", AttrValue::Bool(true)}}));
        PF_ASSIGN_OR_RETURN(const TensorRef length, unary(ops::kSqrt, sum));
        PF_ASSIGN_OR_RETURN(const TensorRef divisor, binary(ops::kMaximum, length, least));
        return binary(ops::kRealDiv, a, divisor);
      }
    }
    return absl::InternalError("an unknown function");
  }

  // The op itself, on codes.
  absl::Status QuantizeMoved(const Planned& planned) {
    const QuantizableOperator& op = planned.op;
    std::vector<TensorRef> inputs;
    for (int i = 0; i < op.core->num_data_inputs(); ++i) inputs.push_back(op.core->input(i));
    for (size_t k = 0; k < op.operands.size(); ++k) {
      TensorRef& input = inputs[static_cast<size_t>(op.operands[k])];
      PF_ASSIGN_OR_RETURN(input, Codes(input, planned.operands[k]));
    }
    const bool is_pad = op.core->op() == ops::kPad;
    if (is_pad) {
      const int32_t point = planned.result.zero_point;
      Tensor value = code_ == DType::kInt16 ? Tensor::Scalar(static_cast<int16_t>(point))
                                            : Tensor::Scalar(static_cast<int8_t>(point));
      PF_ASSIGN_OR_RETURN(inputs.emplace_back(), Const(*op.root, "padding", std::move(value)));
    }
    if (!op.has_code_result) {
      // Indices: the node stays, and reads codes.
      for (int i = 0; i < op.core->num_data_inputs(); ++i) {
        maybe_unread_.push_back(op.core->input(i).node);
        graph_->SetInput(op.core, i, inputs[static_cast<size_t>(i)]);
      }
      op.core->SetAttr("T", AttrValue::Type(code_));
      return absl::OkStatus();
    }
    PF_ASSIGN_OR_RETURN(Node * node, CopyOf(*op.core, "codes", inputs));
    if (is_pad) node->set_op(ops::kPadV2);
    node->SetAttr(op.core->op() == ops::kGatherV2 ? "Tparams" : "T", AttrValue::Type(code_));
    const std::vector<TensorRef> results = Results(op);
    const int outputs = NumOutputs(*op.root).value_or(1);
    if (outputs == 1) return Finish(op, {node, 0}, planned.result);
    for (const TensorRef result : results) {
      PF_ASSIGN_OR_RETURN(const TensorRef numbers,
                          Uniform(*op.root, "numbers", {node, result.port}, planned.result, code_, false));
      graph_->ReplaceUses(result, numbers);
    }
    maybe_unread_.push_back(op.root);
    return absl::OkStatus();
  }

  // --- Interface ------------------------------------------------------------------------------------------------
  absl::StatusOr<int64_t> ChangeInterface() {
    const DType io = params_.io_type == "uint8" ? DType::kUint8 : DType::kInt8;
    if (code_ == DType::kInt16) {
      return absl::InvalidArgumentError("io_type is for the mode int8: inputs of int16x8 are float");
    }
    int64_t count = 0;
    const auto outer = [&](const Affine& inner) {
      return Affine{inner.scale, io == DType::kUint8 ? inner.zero_point + 128 : inner.zero_point};
    };
    for (const Endpoint& input : graph_->inputs()) {
      if (input.node == nullptr || input.node->op() != ops::kPlaceholder) continue;
      if (TypeAttr(*input.node, "dtype").value_or(DType::kInvalid) != DType::kFloat) continue;
      // The quantisation that reads it.
      Node* quantize = nullptr;
      for (const Use& use : graph_->UsesOf({input.node, 0})) {
        if (use.consumer->op() == UniformQuantizeOp() && quantize == nullptr) quantize = use.consumer;
      }
      if (quantize == nullptr) {
        context_->Note(absl::StrCat("input '", input.text, "' stays float: no operator on codes reads it"));
        continue;
      }
      PF_ASSIGN_OR_RETURN(const UniformScales scales, ReadUniformScales(*quantize));
      const Affine inner{scales.scales[0], scales.zero_points[0]};
      const RewriteScope rewrite(context_, graph_, {input.node});
      if (!rewrite) return count;
      ++count;
      position_ = quantize;
      std::vector<Use> uses = graph_->UsesOf({input.node, 0});
      input.node->SetAttr("dtype", AttrValue::Type(io));
      RecordScale(input.node, outer(inner));
      PF_ASSIGN_OR_RETURN(const TensorRef numbers,
                          Uniform(*input.node, "numbers", {input.node, 0}, outer(inner), io, false));
      for (const Use& use : uses) graph_->SetInput(use.consumer, static_cast<int>(use.index), numbers);
      if (io == DType::kInt8) {
        graph_->ReplaceUses({quantize, 0}, {input.node, 0});
        maybe_unread_.push_back(quantize);
      } else {
        quantize->SetAttr(kRoundingAttr, AttrValue::String("twice"));
      }
      maybe_unread_.push_back(numbers.node);
    }
    for (const Endpoint& output : graph_->outputs()) {
      Node* node = output.node;
      if (node->op() == ops::kIdentity && !graph_->IsInput(node)) {
        // A name for another tensor.
        const TensorRef source = node->input(0);
        if (source.port == 0 && source.node->op() == UniformDequantizeOp()) {
          PF_ASSIGN_OR_RETURN(const bool changed, CodeOutput(node, source.node, io));
          count += changed ? 1 : 0;
          continue;
        }
      }
      if (node->op() != UniformDequantizeOp() || output.port != 0) {
        context_->Note(absl::StrCat("output '", output.text, "' stays float: its operator has no kernel on codes"));
        continue;
      }
      PF_ASSIGN_OR_RETURN(const bool changed, CodeOutput(node, node, io));
      count += changed ? 1 : 0;
    }
    return count;
  }

  // Makes the output `node` the codes that `dequantize` reads.
  absl::StatusOr<bool> CodeOutput(Node* node, Node* dequantize, DType io) {
    PF_ASSIGN_OR_RETURN(const UniformScales scales, ReadUniformScales(*dequantize));
    const Affine inner{scales.scales[0], scales.zero_points[0]};
    const RewriteScope rewrite(context_, graph_, {node, dequantize});
    if (!rewrite) return false;
    position_ = node;
    TensorRef codes = dequantize->input(0);
    PF_ASSIGN_OR_RETURN(const TensorRef numbers, Uniform(*node, "numbers", codes, inner, code_, false));
    graph_->ReplaceUses({node, 0}, numbers);
    if (io == DType::kUint8) {
      PF_ASSIGN_OR_RETURN(codes, Uniform(*node, "uint8", numbers, {inner.scale, inner.zero_point + 128}, io, true));
      codes.node->SetAttr(kRoundingAttr, AttrValue::String("twice"));
    }
    maybe_unread_.push_back(numbers.node);
    maybe_unread_.push_back(dequantize);
    graph_->ClearInputs(node);
    node->set_op(ops::kIdentity);
    node->ClearAttrs();
    node->SetAttr("T", AttrValue::Type(io));
    RecordScale(node, {inner.scale, io == DType::kUint8 ? inner.zero_point + 128 : inner.zero_point});
    graph_->AddInput(node, codes);
    return true;
  }

  static void RecordScale(Node* node, const Affine& affine) {
    node->SetAttr(kInterfaceScaleAttr, AttrValue::Float(affine.scale));
    node->SetAttr(kInterfaceZeroPointAttr, AttrValue::Int(affine.zero_point));
  }

  // --- Weights alone --------------------------------------------------------------------------------------------
  absl::StatusOr<int64_t> QuantizeWeights(const std::vector<QuantizableOperator>& found) {
    int64_t count = 0;
    for (const QuantizableOperator& op : found) {
      if (op.kind != QuantizableKind::kWeighted) continue;
      const Node& core = *op.core;
      if (IsKept(op)) {
        context_->MissIfWanted(*op.root, "is kept in float");
        continue;
      }
      if (core.op() == ops::kConv2DBackpropInput || core.op() == ops::kBatchMatMulV2) {
        context_->MissIfWanted(*op.root, "has no kernel that quantises its input when it runs");
        continue;
      }
      const Tensor weights = *FloatConstant(core.input(op.weights));
      const bool is_four = params_.mode == "int4" && core.op() != ops::kDepthwiseConv2dNative;
      if (weights.num_elements() < params_.minimum_size || !AllFinite(weights)) {
        context_->MissIfWanted(*op.root, WayOut{"lower minimum_size"}, "has ", weights.num_elements(), " weights");
        continue;
      }
      const Shape input = shapes_.Of(core.input(0));
      if (core.op() == ops::kConv2D &&
          (!input.has_rank() || input.rank() != 4 || input.dim(3) != weights.shape().dim(2))) {
        context_->MissIfWanted(*op.root, "has groups, or an input of unknown channels");
        continue;
      }
      std::vector<const Node*> matched(op.nodes.begin(), op.nodes.end());
      const RewriteScope rewrite(context_, graph_, matched);
      if (!rewrite) return count;
      position_ = op.nodes.back();
      const ChannelLayout layout = LayoutOf(core, weights.shape());
      const int steps = is_four ? kInt4Steps : kInt8Steps;
      WeightCodes coded = EncodeWeights(weights, layout, steps, {});
      std::vector<double> correction(static_cast<size_t>(layout.channels), 0);
      // Without a bias there is nothing that can take the corrections, which the codes rely on.
      const WeightLines* lines = op.bias.node == nullptr ? nullptr : LinesOf(op, weights, layout);
      if (lines != nullptr) UseLines(*lines, steps, &coded, &correction);
      Shape shape = weights.shape();
      if (core.op() == ops::kMatMul && layout.axis == 1) {
        // The kernel that quantises its input takes a row of weights for each result.
        const auto depth = static_cast<size_t>(shape.dim(0)), columns = static_cast<size_t>(shape.dim(1));
        std::vector<int8_t> transposed(coded.codes.size());
        for (size_t k = 0; k < depth; ++k) {
          for (size_t c = 0; c < columns; ++c) transposed[c * depth + k] = coded.codes[k * columns + c];
        }
        coded.codes = std::move(transposed);
        shape = Shape({shape.dim(1), shape.dim(0)});
        op.core->SetAttr("transpose_b", AttrValue::Bool(true));
      }
      ChannelLayout stored = layout;
      if (core.op() == ops::kMatMul) stored.axis = 0;
      PF_ASSIGN_OR_RETURN(const TensorRef numbers, AddWeights(op, shape, std::move(coded), stored, steps));
      graph_->SetInput(op.core, op.weights, numbers);
      if (op.bias.node != nullptr) PF_RETURN_IF_ERROR(MakeBiasAdd(op, correction));
      op.root->SetAttr(kRoundingAttr, AttrValue::String("dynamic"));
      op.root->SetAttr(kAsymmetricAttr, AttrValue::Bool(core.op() == ops::kMatMul));
      ++count;
    }
    return count;
  }

  // Gives the addition of the bias the form of the integer fusion, BiasAdd of a vector, and adds corrections.
  absl::Status MakeBiasAdd(const QuantizableOperator& op, const std::vector<double>& corrections) {
    Node* add = op.core->uses()[0].consumer;
    const Tensor value = *FloatConstant(op.bias);
    std::vector<float> numbers(corrections.size());
    for (size_t c = 0; c < numbers.size(); ++c) {
      numbers[c] = static_cast<float>(value.elements<float>()[value.num_elements() == 1 ? 0 : c] + corrections[c]);
    }
    const int64_t channels = static_cast<int64_t>(numbers.size());
    position_ = add;
    PF_ASSIGN_OR_RETURN(const TensorRef bias,
                        Const(*add, "bias", Tensor::FromVector(Shape({channels}), std::move(numbers))));
    maybe_unread_.push_back(op.bias.node);
    for (int i = add->num_data_inputs() - 1; i >= 0; --i) graph_->RemoveInput(add, i);
    graph_->AddInput(add, {op.core, 0});
    graph_->AddInput(add, bias);
    add->set_op(ops::kBiasAdd);
    add->ClearAttrs();
    add->SetAttr("T", Float());
    return absl::OkStatus();
  }

  Graph* graph_;
  const Params& params_;
  PassContext* context_;
  const DType code_;
  ShapeMap shapes_;
  Calibration calibration_;
  Node* position_ = nullptr;
  absl::flat_hash_map<std::tuple<TensorRef, float, int32_t>, TensorRef> codes_;
  absl::flat_hash_map<TensorRef, TensorRef> numbers_;
  std::vector<Node*> maybe_unread_;
};

absl::StatusOr<int64_t> Run(Graph* graph, const Params& params, PassContext* context) {
  return Quantizer(graph, params, context).Run();
}

}  // namespace

// Quantises operators to codes of few bits, as TensorFlow Lite's kernels compute them. Run prepare_for_tflite first.
//
//   Relu(BiasAdd(Conv2D(x, w), b))   =>   UniformDequantize(UniformQuantize(Relu(BiasAdd(Conv2D(x', w'), b'))))
//
// Here x', w' and b' are UniformDequantize nodes of codes, and the UniformQuantize node has the mark that makes it an
// integer operator (docs/design/tflite.md). int8: activations of int8 with zero points, weights of int8 with a scale
// for each output channel, biases of int32. int16x8: activations of int16, biases of int64. dynamic: weights of int8
// alone; inputs are quantised when the operator runs. int4: the same with four bits for weights of convolutions and
// matrix products. Tensors that must have one scale by TensorFlow Lite's specification, such as the operands of a
// concatenation, get one; the results of Softmax, Sigmoid and Tanh get the scales that kernels expect.
//
// The file `calibration`, which convert_model writes (--write_calibration), has a line "TENSOR LOW HIGH" for the range
// of each activation. It may also have, for an operator with weights, the scales of the weights ("@scales NODE S..."),
// their codes as base64 ("@codes NODE CODES") and numbers to be added to its bias ("@bias NODE B..."), instead of the
// scales of the largest weights and the nearest codes. Leaves operators in float that have no kernel on codes, that
// keep_float names, or whose ranges are not in the file.
DEFINE_PASS(quantize_for_tflite) {
  return Pass<Params>("Quantises operators to the integer operators of TensorFlow Lite.")
      .Why("A quarter of the size, and integer kernels, which are faster and the only ones of many accelerators.")
      .Param("mode", &Params::mode, "int8, int16x8, dynamic or int4.")
      .Param("calibration", &Params::calibration,
             "Path of the file with ranges of activations, which int8 and int16x8 need, and with rounded weights.")
      .Param("keep_float", &Params::keep_float, "Node of an operator that stays float; 'prefix*' names several.")
      .Param("io_type", &Params::io_type, "Type of inputs and outputs: float, int8 or uint8.")
      .Param("minimum_size", &Params::minimum_size, "Smallest number of weights that dynamic and int4 quantise.",
             AtLeast(1))
      .ChangesInterface("io_type=int8 and uint8 change the types of inputs and outputs")
      .Numerics(Changes("numbers are rounded to codes"))
      .Run(Run);
}

}  // namespace permafrost
