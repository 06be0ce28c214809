// Recognises layer normalisation: tracks the function of a row that each value is, as one of a few forms.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime_check/delegates/onednn/patterns.h"

namespace permafrost {
namespace onednn {
namespace {

// A function of the rows of a base tensor x, whose mean over the last dimension is m. Coefficients have one value, or
// one per channel. `scale` stands for 1 / sqrt(variance + epsilon).
struct Form {
  enum class Kind {
    kLinear,    // (of_value * x + of_mean * m) * scale^is_scaled + constant
    kSquare,    // (x - m)^2, or x^2 if not is_centred
    kVariance,  // the mean of kSquare, plus epsilon
    kRoot,      // sqrt(kVariance)
    kScale,     // of_value * scale
  };
  Kind kind = Kind::kLinear;
  int base = -1;
  std::vector<float> of_value = {1}, of_mean = {0}, constant = {0};
  bool is_scaled = false, is_centred = false;
  float epsilon = 0;

  bool IsZero(const std::vector<float>& values) const {
    return std::all_of(values.begin(), values.end(), [](float value) { return value == 0; });
  }
  bool HasOnlyConstant() const { return IsZero(of_value) && IsZero(of_mean); }
  bool HasConstant() const { return !IsZero(constant); }
  bool HasSameScale(const Form& other) const { return is_centred == other.is_centred && epsilon == other.epsilon; }
};

template <typename F>
std::vector<float> Combine(const std::vector<float>& a, const std::vector<float>& b, F f) {
  std::vector<float> result(std::max(a.size(), b.size()));
  for (size_t i = 0; i < result.size(); ++i) result[i] = f(a[a.size() == 1 ? 0 : i], b[b.size() == 1 ? 0 : i]);
  return result;
}

std::vector<float> Add(const std::vector<float>& a, const std::vector<float>& b) {
  return Combine(a, b, [](float x, float y) { return x + y; });
}
std::vector<float> Multiply(const std::vector<float>& a, const std::vector<float>& b) {
  return Combine(a, b, [](float x, float y) { return x * y; });
}

class Normalizations {
 public:
  explicit Normalizations(PartitionEditor* editor) : editor_(*editor) {}

  void Run() {
    std::vector<int> found;
    for (int i = 0; i < editor_.num_nodes(); ++i) {
      if (editor_.IsRemoved(i)) continue;
      const std::optional<Form> form = FormOfNode(i);
      if (!form.has_value()) continue;
      if (IsNormalization(*form, i)) found.push_back(i);
      forms_[editor_.node(i).outputs[0]] = *form;
    }
    // The last node of a normalisation contains those before it that are one without factor or offset.
    for (auto next = found.rbegin(); next != found.rend(); ++next) {
      if (!editor_.IsRemoved(*next)) Replace(*next);
    }
  }

 private:
  int64_t Channels(int base) const {
    const Shape& shape = editor_.tensor(base).shape;
    return shape.dim(shape.rank() - 1);
  }

  std::optional<Form> FormOf(int tensor, int base) const {
    if (tensor == base) {
      Form form;
      form.base = base;
      return form;
    }
    const auto found = forms_.find(tensor);
    if (found == forms_.end() || found->second.base != base) return std::nullopt;
    return found->second;
  }

  std::optional<Form> FormOfNode(int i) {
    const ParsedNode& parsed = editor_.parsed(i);
    if (parsed.kind == NodeKind::kReduce) return OfMean(i);
    const bool is_broadcast = parsed.kind == NodeKind::kBroadcast;
    if (parsed.kind != NodeKind::kElementwise && !is_broadcast) return std::nullopt;
    const std::vector<int>& inputs = editor_.node(i).inputs;
    const int a = inputs[is_broadcast ? 0 : parsed.left];
    const int right = is_broadcast ? 1 : parsed.right;
    if (right < 0) return OfOne(parsed, a);
    const int b = inputs[right];
    for (const int operand : {a, b}) {
      const auto form = forms_.find(operand);
      if (form == forms_.end()) continue;
      std::optional<Form> result = OfTwo(parsed.loop, a, b, form->second.base);
      if (result.has_value()) return result;
    }
    if (parsed.loop == LoopOp::kMul && a == b) return Square(a);
    return std::nullopt;
  }

  std::optional<Form> OfMean(int i) const {
    const ParsedNode& parsed = editor_.parsed(i);
    const int input = editor_.node(i).inputs[0];
    const Shape& shape = editor_.tensor(input).shape;
    const Shape& result = editor_.tensor(editor_.node(i).outputs[0]).shape;
    // The mean has to keep its dimension, or it would meet other elements of x.
    if (!parsed.is_mean || parsed.inner != 1 || parsed.reduced_last != 1 || shape.rank() == 0 ||
        result.rank() != shape.rank() || result.dim(shape.rank() - 1) != 1 ||
        parsed.reduced != shape.dim(shape.rank() - 1)) {
      return std::nullopt;
    }
    const auto found = forms_.find(input);
    if (found != forms_.end() && found->second.kind == Form::Kind::kSquare &&
        shape == editor_.tensor(found->second.base).shape) {
      Form form = found->second;
      form.kind = Form::Kind::kVariance;
      return form;
    }
    Form form;
    form.base = input;
    form.of_value = {0};
    form.of_mean = {1};
    return form;
  }

  std::optional<Form> Square(int tensor) const {
    const Shape& shape = editor_.tensor(tensor).shape;
    if (editor_.IsConstant(tensor) || shape.rank() == 0) return std::nullopt;
    Form form;
    form.kind = Form::Kind::kSquare;
    form.base = tensor;
    return form;
  }

  static std::optional<Form> SquareOf(const Form& form) {
    if (form.kind != Form::Kind::kLinear || form.is_scaled || form.HasConstant()) return std::nullopt;
    if (form.of_value.size() != 1 || form.of_mean.size() != 1 || std::fabs(form.of_value[0]) != 1) return std::nullopt;
    if (form.of_mean[0] != -form.of_value[0]) return std::nullopt;
    Form square;
    square.kind = Form::Kind::kSquare;
    square.base = form.base;
    square.is_centred = true;
    return square;
  }

  std::optional<Form> OfOne(const ParsedNode& parsed, int input) const {
    const auto found = forms_.find(input);
    if (parsed.loop == LoopOp::kSquare) {
      std::optional<Form> square = found == forms_.end() ? std::nullopt : SquareOf(found->second);
      return square.has_value() ? square : Square(input);
    }
    if (found == forms_.end()) return std::nullopt;
    Form form = found->second;
    using Kind = Form::Kind;
    switch (parsed.loop) {
      case LoopOp::kAffine:
        if (form.kind == Kind::kVariance && parsed.alpha == 1) {
          form.epsilon += parsed.beta;
          return form;
        }
        return Affine(std::move(form), {parsed.alpha}, {parsed.beta});
      case LoopOp::kNeg:
        return Affine(std::move(form), {-1}, {0});
      case LoopOp::kSqrt:
        if (form.kind != Kind::kVariance) return std::nullopt;
        form.kind = Kind::kRoot;
        return form;
      case LoopOp::kRsqrt:
        if (form.kind != Kind::kVariance) return std::nullopt;
        form.kind = Kind::kScale;
        return form;
      case LoopOp::kReciprocal:
        if (form.kind != Kind::kRoot) return std::nullopt;
        form.kind = Kind::kScale;
        return form;
      default:
        return std::nullopt;
    }
  }

  // Returns factor * form + offset.
  static std::optional<Form> Affine(Form form, const std::vector<float>& factor, const std::vector<float>& offset) {
    const bool has_offset = !form.IsZero(offset);
    if (form.kind == Form::Kind::kScale && !has_offset) {
      form.of_value = Multiply(form.of_value, factor);
      return form;
    }
    if (form.kind != Form::Kind::kLinear) return std::nullopt;
    form.of_value = Multiply(form.of_value, factor);
    form.of_mean = Multiply(form.of_mean, factor);
    form.constant = Multiply(form.constant, factor);
    if (has_offset) form.constant = Add(form.constant, offset);
    return form;
  }

  // Returns the elements of a constant number, or of a constant with one element per channel.
  std::optional<std::vector<float>> ConstantOf(int tensor, int base) const {
    if (!editor_.IsConstant(tensor)) return std::nullopt;
    const Shape& shape = editor_.tensor(tensor).shape;
    const int64_t count = shape.num_elements();
    if (count != 1 && (count != Channels(base) || shape.dim(shape.rank() - 1) != count)) return std::nullopt;
    return FloatsOf(*editor_.tensor(tensor).constant);
  }

  std::optional<Form> OfTwo(LoopOp op, int a, int b, int base) const {
    using Kind = Form::Kind;
    const std::vector<float> one = {1}, zero = {0}, minus = {-1};
    if (std::optional<std::vector<float>> constant = ConstantOf(b, base); constant.has_value()) {
      std::optional<Form> form = FormOf(a, base);
      if (!form.has_value()) return std::nullopt;
      switch (op) {
        case LoopOp::kAdd:
          return Affine(*std::move(form), one, *constant);
        case LoopOp::kSub:
          return Affine(*std::move(form), one, Multiply(*constant, minus));
        case LoopOp::kMul:
          return Affine(*std::move(form), *constant, zero);
        default:
          return std::nullopt;
      }
    }
    if (std::optional<std::vector<float>> constant = ConstantOf(a, base); constant.has_value()) {
      std::optional<Form> form = FormOf(b, base);
      if (!form.has_value()) return std::nullopt;
      switch (op) {
        case LoopOp::kAdd:
          return Affine(*std::move(form), one, *constant);
        case LoopOp::kSub:
          return Affine(*std::move(form), minus, *constant);
        case LoopOp::kMul:
          return Affine(*std::move(form), *constant, zero);
        default:
          return std::nullopt;
      }
    }
    const std::optional<Form> x = FormOf(a, base), y = FormOf(b, base);
    if (!x.has_value() || !y.has_value()) return std::nullopt;
    switch (op) {
      case LoopOp::kAdd:
        return Sum(*x, *y);
      case LoopOp::kSub: {
        const std::optional<Form> negated = Affine(*y, minus, zero);
        return negated.has_value() ? Sum(*x, *negated) : std::nullopt;
      }
      case LoopOp::kMul:
        if (a == b) return SquareOf(*x);
        return x->kind == Kind::kScale ? Scaled(*y, *x) : Scaled(*x, *y);
      case LoopOp::kDiv: {
        if (y->kind != Kind::kRoot) return std::nullopt;
        Form scale = *y;
        scale.kind = Kind::kScale;
        return Scaled(*x, scale);
      }
      case LoopOp::kSquaredDifference: {
        const std::optional<Form> negated = Affine(*y, minus, zero);
        const std::optional<Form> difference = negated.has_value() ? Sum(*x, *negated) : std::nullopt;
        return difference.has_value() ? SquareOf(*difference) : std::nullopt;
      }
      default:
        return std::nullopt;
    }
  }

  static std::optional<Form> Sum(const Form& x, const Form& y) {
    if (x.kind != Form::Kind::kLinear || y.kind != Form::Kind::kLinear) return std::nullopt;
    if (x.is_scaled != y.is_scaled || (x.is_scaled && !x.HasSameScale(y))) return std::nullopt;
    Form sum = x;
    sum.of_value = Add(x.of_value, y.of_value);
    sum.of_mean = Add(x.of_mean, y.of_mean);
    sum.constant = Add(x.constant, y.constant);
    return sum;
  }

  static std::optional<Form> Scaled(const Form& x, const Form& scale) {
    if (x.kind != Form::Kind::kLinear || x.is_scaled || x.HasConstant() || scale.kind != Form::Kind::kScale) {
      return std::nullopt;
    }
    Form form = scale;
    form.kind = Form::Kind::kLinear;
    form.is_scaled = true;
    form.of_mean = Multiply(x.of_mean, scale.of_value);
    form.of_value = Multiply(x.of_value, scale.of_value);
    return form;
  }

  bool IsNormalization(const Form& form, int node) const {
    if (form.kind != Form::Kind::kLinear || !form.is_scaled) return false;
    if (editor_.tensor(editor_.node(node).outputs[0]).shape != editor_.tensor(form.base).shape) return false;
    if (!form.is_centred) return form.IsZero(form.of_mean);
    return form.IsZero(Add(form.of_value, form.of_mean));
  }

  void Replace(int last) {
    const int output = editor_.node(last).outputs[0];
    const Form& form = forms_.at(output);
    // The nodes between the base and the result.
    std::set<int> region = {last};
    std::vector<int> stack = {last};
    while (!stack.empty()) {
      const int i = stack.back();
      stack.pop_back();
      for (const int input : editor_.node(i).inputs) {
        const int producer = editor_.Producer(input);
        if (input != form.base && producer >= 0 && region.insert(producer).second) stack.push_back(producer);
      }
    }
    for (const int i : region) {
      if (i == last) continue;
      const int inner = editor_.node(i).outputs[0];
      for (const int reader : editor_.Readers(inner)) {
        if (region.count(reader) == 0) return Miss(last, i, absl::StrCat("'", editor_.node(reader).node->name(), "'"));
      }
      if (editor_.IsOutput(inner)) return Miss(last, i, "a node outside of the partition");
    }
    const auto channels = static_cast<size_t>(Channels(form.base));
    ParsedNode parsed;
    parsed.kind = NodeKind::kNormalize;
    parsed.epsilon = form.epsilon;
    parsed.is_centred = form.is_centred;
    parsed.factor = Combine(form.of_value, std::vector<float>(channels, 1), [](float x, float) { return x; });
    parsed.offset = Combine(form.constant, std::vector<float>(channels, 0), [](float x, float) { return x; });
    const std::vector<int> nodes(region.begin(), region.end());
    editor_.Replace(nodes, last, {form.base}, output, std::move(parsed));
  }

  void Miss(int last, int inner, absl::string_view reader) {
    editor_.parsed(last).near_miss =
        absl::StrCat("no layer normalisation: '", editor_.node(inner).node->name(), "' is read by ", reader);
  }

  PartitionEditor& editor_;
  std::map<int, Form> forms_;  // By tensor.
};

}  // namespace

void FuseNormalizations(PartitionEditor* editor) { Normalizations(editor).Run(); }

}  // namespace onednn
}  // namespace permafrost
