// Tracks the functions that steps compute of one value, as one of a few known forms.
#include "runtime_check/delegates/onednn/steps.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace permafrost {
namespace onednn {
namespace {

// A function of x. Slopes have one value, or one per channel.
struct Form {
  enum class Kind {
    kLinearPieces,  // below * x for x < 0, above * x otherwise
    kPlusThree,     // x + 3
    kHardGate,      // factor * min(max(x + 3, 0), 6)
    kSigmoid,
    kHardSwish,  // factor * x * min(max(x + 3, 0), 6)
    kSwish,      // x * sigmoid(x)
    kQuadratic,  // offset + factor * x^2
    kCubic,      // offset * x + factor * x^3
    kErfGate,    // offset + factor * erf(x / sqrt(2))
    kTanhGate,   // offset + factor * tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))
    kGelu,       // factor * x * (1 + erf(...)), as in kErfGate
    kGeluTanh,   // factor * x * (1 + tanh(...)), as in kTanhGate
  };
  Kind kind = Kind::kLinearPieces;
  std::vector<float> below = {1}, above = {1};
  float factor = 1, offset = 0;

  bool IsLinear() const { return kind == Kind::kLinearPieces && below == above; }
  bool IsMultiple() const { return IsLinear() && below.size() == 1; }
  bool IsIdentity() const { return IsMultiple() && below[0] == 1; }
};

template <typename F>
std::vector<float> Combine(const std::vector<float>& a, const std::vector<float>& b, F f) {
  std::vector<float> result(std::max(a.size(), b.size()));
  for (size_t i = 0; i < result.size(); ++i) result[i] = f(a[a.size() == 1 ? 0 : i], b[b.size() == 1 ? 0 : i]);
  return result;
}

template <typename F>
std::vector<float> Map(const std::vector<float>& a, F f) {
  std::vector<float> result;
  for (const float x : a) result.push_back(f(x));
  return result;
}

// Returns a single slope if all channels have the same one.
std::vector<float> Collapsed(std::vector<float> slopes) {
  if (std::all_of(slopes.begin(), slopes.end(), [&](float slope) { return slope == slopes[0]; })) slopes.resize(1);
  return slopes;
}

Form LinearPieces(std::vector<float> below, std::vector<float> above) {
  Form form;
  form.below = Collapsed(std::move(below));
  form.above = Collapsed(std::move(above));
  return form;
}

bool IsNear(float x, double expected) { return std::fabs(x - expected) <= 1e-5 * std::fabs(expected); }

Form Gate(Form::Kind kind, float factor, float offset) {
  Form form;
  form.kind = kind;
  form.factor = factor;
  form.offset = offset;
  return form;
}

// Returns erf or erfc of a multiple of x.
std::optional<Form> OfErrorFunction(LoopOp op, const Form& x) {
  constexpr double kRootHalf = 0.70710678118654752;
  if (!x.IsMultiple() || !IsNear(std::fabs(x.below[0]), kRootHalf)) return std::nullopt;
  const float sign = x.below[0] > 0 ? 1.0f : -1.0f;
  return op == LoopOp::kErf ? Gate(Form::Kind::kErfGate, sign, 0) : Gate(Form::Kind::kErfGate, -sign, 1);
}

std::optional<Form> OfPieces(const Step& step, const Form& x) {
  switch (step.op) {
    case LoopOp::kErf:
    case LoopOp::kErfc:
      return OfErrorFunction(step.op, x);
    case LoopOp::kSquare:
      if (x.IsMultiple()) return Gate(Form::Kind::kQuadratic, x.below[0] * x.below[0], 0);
      return std::nullopt;
    case LoopOp::kCube:
      if (x.IsMultiple()) return Gate(Form::Kind::kCubic, x.below[0] * x.below[0] * x.below[0], 0);
      return std::nullopt;
    case LoopOp::kRelu:
      // For x < 0, below * x is positive if the slope is negative.
      return LinearPieces(Map(x.below, [](float s) { return std::min(s, 0.0f); }),
                          Map(x.above, [](float s) { return std::max(s, 0.0f); }));
    case LoopOp::kAbs:
      return LinearPieces(Map(x.below, [](float s) { return -std::fabs(s); }),
                          Map(x.above, [](float s) { return std::fabs(s); }));
    case LoopOp::kNeg:
      return LinearPieces(Map(x.below, [](float s) { return -s; }), Map(x.above, [](float s) { return -s; }));
    case LoopOp::kClip:
      if (step.alpha == 0 && std::isinf(step.beta)) {
        return LinearPieces(Map(x.below, [](float s) { return std::min(s, 0.0f); }),
                            Map(x.above, [](float s) { return std::max(s, 0.0f); }));
      }
      if (step.beta == 0 && std::isinf(step.alpha)) {
        return LinearPieces(Map(x.below, [](float s) { return std::max(s, 0.0f); }),
                            Map(x.above, [](float s) { return std::min(s, 0.0f); }));
      }
      return std::nullopt;
    case LoopOp::kAffine:
      if (step.beta == 0) {
        const auto scaled = [&](float s) { return s * step.alpha; };
        return LinearPieces(Map(x.below, scaled), Map(x.above, scaled));
      }
      if (step.alpha == 1 && step.beta == 3 && x.IsIdentity()) {
        Form form;
        form.kind = Form::Kind::kPlusThree;
        return form;
      }
      return std::nullopt;
    case LoopOp::kSigmoid:
      if (x.IsIdentity()) {
        Form form;
        form.kind = Form::Kind::kSigmoid;
        return form;
      }
      return std::nullopt;
    case LoopOp::kMul:
      if (step.constants.empty() || step.meeting != Meeting::kPerChannel) return std::nullopt;
      return LinearPieces(Combine(x.below, step.constants, [](float s, float c) { return s * c; }),
                          Combine(x.above, step.constants, [](float s, float c) { return s * c; }));
    default:
      return std::nullopt;
  }
}

std::optional<Form> OfOne(const Step& step, const Form& x) {
  if (x.kind == Form::Kind::kLinearPieces) return OfPieces(step, x);
  Form form = x;
  if (x.kind == Form::Kind::kPlusThree && step.op == LoopOp::kClip && step.alpha == 0 && step.beta == 6) {
    form.kind = Form::Kind::kHardGate;
    return form;
  }
  using Kind = Form::Kind;
  if (x.kind == Kind::kCubic && step.op == LoopOp::kTanh) {
    constexpr double kRoot = 0.79788456080286536;  // sqrt(2 / pi)
    if (!IsNear(x.offset, kRoot) || !IsNear(x.factor, kRoot * 0.044715)) return std::nullopt;
    return Gate(Kind::kTanhGate, 1, 0);
  }
  const bool has_offset = x.kind == Kind::kQuadratic || x.kind == Kind::kErfGate || x.kind == Kind::kTanhGate;
  const bool is_scaled = x.kind == Kind::kCubic || x.kind == Kind::kGelu || x.kind == Kind::kGeluTanh;
  if (step.op == LoopOp::kAffine && (has_offset || (is_scaled && step.beta == 0))) {
    form.factor *= step.alpha;
    form.offset = form.offset * step.alpha + step.beta;
    return form;
  }
  if ((x.kind == Form::Kind::kHardGate || x.kind == Form::Kind::kHardSwish) && step.op == LoopOp::kAffine &&
      step.beta == 0) {
    form.factor *= step.alpha;
    return form;
  }
  return std::nullopt;
}

std::optional<Form> OfTwo(const Step& step, const Form& a, const Form& b) {
  using Kind = Form::Kind;
  if (step.op == LoopOp::kMul) {
    const Form& gate = a.IsMultiple() ? b : a;
    const Form& multiple = a.IsMultiple() ? a : b;
    if (!multiple.IsMultiple()) return std::nullopt;
    const float slope = multiple.below[0];
    if (gate.IsMultiple()) return Gate(Kind::kQuadratic, gate.below[0] * slope, 0);
    if (gate.kind == Kind::kQuadratic) return Gate(Kind::kCubic, gate.factor * slope, gate.offset * slope);
    if ((gate.kind == Kind::kErfGate || gate.kind == Kind::kTanhGate) && gate.factor == gate.offset) {
      return Gate(gate.kind == Kind::kErfGate ? Kind::kGelu : Kind::kGeluTanh, gate.factor * slope, 0);
    }
    Form form;
    if (gate.kind == Kind::kHardGate) {
      form.kind = Kind::kHardSwish;
      form.factor = gate.factor * multiple.below[0];
      return form;
    }
    if (gate.kind == Kind::kSigmoid && multiple.IsIdentity()) {
      form.kind = Kind::kSwish;
      return form;
    }
    return std::nullopt;
  }
  if (step.op == LoopOp::kAdd && (a.kind == Kind::kCubic || b.kind == Kind::kCubic)) {
    const Form& multiple = a.IsMultiple() ? a : b;
    Form cubic = a.kind == Kind::kCubic ? a : b;
    if (!multiple.IsMultiple()) return std::nullopt;
    cubic.offset += multiple.below[0];
    return cubic;
  }
  if (a.kind != Kind::kLinearPieces || b.kind != Kind::kLinearPieces) return std::nullopt;
  const auto add = [](float s, float t) { return s + t; };
  const auto subtract = [](float s, float t) { return s - t; };
  if (step.op == LoopOp::kAdd) return LinearPieces(Combine(a.below, b.below, add), Combine(a.above, b.above, add));
  if (step.op == LoopOp::kSub) {
    return LinearPieces(Combine(a.below, b.below, subtract), Combine(a.above, b.above, subtract));
  }
  return std::nullopt;
}

class Simplifier {
 public:
  Simplifier(std::vector<Step>* steps, std::vector<Readers>* readers) : steps_(*steps), readers_(*readers) {}

  void Run() {
    for (size_t base = 0; base < readers_.size(); ++base) {
      // Each replacement removes a step. It may be a part of a larger function.
      while (HasSeveralReaders(base) && Try(static_cast<int>(base))) {
      }
    }
  }

 private:
  static constexpr size_t kMostSteps = 12;

  bool HasSeveralReaders(size_t base) const {
    const std::vector<int>& readers = readers_[base].steps;
    return std::set<int>(readers.begin(), readers.end()).size() >= 2;
  }

  // Replaces one group of steps that start at `base`. Returns false if there is none.
  bool Try(int base) {
    std::map<int, Form> forms = {{base, Form()}};
    std::set<int> open(readers_[base].steps.begin(), readers_[base].steps.end());
    std::vector<int> region;
    while (!open.empty() && region.size() < kMostSteps) {
      const int index = *open.begin();  // Steps are in the order of the partition.
      open.erase(open.begin());
      const Step& step = steps_[index];
      const std::optional<Form> form = FormOf(step, forms);
      if (!form.has_value()) continue;
      forms.emplace(step.result, *form);
      region.push_back(index);
      if (Replace(base, *form, region, index)) return true;
      open.insert(readers_[step.result].steps.begin(), readers_[step.result].steps.end());
    }
    return false;
  }

  static std::optional<Form> FormOf(const Step& step, const std::map<int, Form>& forms) {
    const auto value = forms.find(step.value);
    if (value == forms.end()) return std::nullopt;
    if (step.other < 0) return OfOne(step, value->second);
    const auto other = forms.find(step.other);
    if (other == forms.end() || step.meeting != Meeting::kSame) return std::nullopt;
    return OfTwo(step, value->second, other->second);
  }

  // Replaces the region by its last step if the inner values have no other readers.
  bool Replace(int base, const Form& form, const std::vector<int>& region, int last) {
    Step replaced = steps_[last];
    replaced.value = base;
    replaced.other = -1;
    replaced.constants.clear();
    replaced.alpha = replaced.beta = 0;
    replaced.meeting = Meeting::kSame;
    if (form.kind == Form::Kind::kHardSwish && std::fabs(form.factor * 6 - 1) < 1e-5f) {
      replaced.op = LoopOp::kHardSwish;
    } else if (form.kind == Form::Kind::kSwish) {
      replaced.op = LoopOp::kSwish;
    } else if (form.kind == Form::Kind::kGelu && IsNear(form.factor, 0.5)) {
      replaced.op = LoopOp::kGelu;
    } else if (form.kind == Form::Kind::kGeluTanh && IsNear(form.factor, 0.5)) {
      replaced.op = LoopOp::kGeluTanh;
    } else if (form.kind == Form::Kind::kLinearPieces && form.IsMultiple()) {
      replaced.op = LoopOp::kAffine;
      replaced.alpha = form.below[0];
    } else if (form.kind == Form::Kind::kLinearPieces && form.above == std::vector<float>{1}) {
      if (form.below.size() == 1) {
        replaced.op = LoopOp::kLeakyRelu;
        replaced.alpha = form.below[0];
      } else {
        replaced.op = LoopOp::kPrelu;
        replaced.constants = form.below;
        replaced.meeting = Meeting::kPerChannel;
      }
    } else {
      return false;
    }
    // Other steps of the region may stay if they do not read a removed value.
    std::set<int> needed = {last};
    std::vector<int> stack = {last};
    std::map<int, int> made_by;
    for (const int index : region) made_by[steps_[index].result] = index;
    while (!stack.empty()) {
      const Step& step = steps_[stack.back()];
      stack.pop_back();
      for (const int tensor : {step.value, step.other}) {
        const auto found = made_by.find(tensor);
        if (found != made_by.end() && needed.insert(found->second).second) stack.push_back(found->second);
      }
    }
    if (needed.size() < 2) return false;
    for (const int index : needed) {
      if (index == last) continue;
      const Readers& readers = readers_[steps_[index].result];
      if (readers.others > 0) return false;
      for (const int reader : readers.steps) {
        if (needed.count(reader) == 0) return false;
      }
    }
    for (const int index : needed) {
      for (const int tensor : {steps_[index].value, steps_[index].other}) {
        if (tensor < 0) continue;
        std::vector<int>& readers = readers_[tensor].steps;
        readers.erase(std::remove(readers.begin(), readers.end(), index), readers.end());
      }
      if (index != last) steps_[index].is_dropped = true;
    }
    steps_[last] = std::move(replaced);
    readers_[base].steps.push_back(last);
    return true;
  }

  std::vector<Step>& steps_;
  std::vector<Readers>& readers_;
};

}  // namespace

void Simplify(std::vector<Step>* steps, std::vector<Readers>* readers) { Simplifier(steps, readers).Run(); }

}  // namespace onednn
}  // namespace permafrost
