// Fuses each operation with the only reader of its result.
#include "runtime_check/delegates/xnnpack/fuse.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "runtime_check/delegates/xnnpack/translate.h"

namespace permafrost {
namespace xnnpack {
namespace {

constexpr int kNone = -1;

// XNNPACK starts the sums of a convolution with the bias, so each addition of a product is rounded to the precision of
// the bias. TensorFlow adds the bias last. The difference matters in the first convolution of a deep network, which
// reads the image: docs/design/delegates.md has the measurements behind these limits.
constexpr size_t kMostImageChannels = 4;
// Limits of the sum of the squares of the bias over that of the filter, which is the expected square of the bias over
// that of the products for pixels of magnitude one. Below, nothing was gained (0.05 and less). Above (320 and more),
// the bias belongs to larger pixels, up to 255, and the products are as large as it is.
constexpr double kLeastBias = 0.1, kLargestBias = 10;

// Returns whether the bias is to be added after the convolution instead of before.
bool AddsBiasLast(const Operation& operation, const std::vector<float>& bias) {
  if (operation.kind != OperationKind::kConvolution || operation.window.input_channels > kMostImageChannels) {
    return false;
  }
  const auto sum_of_squares = [](const std::vector<float>& values) {
    double sum = 0;
    for (const float value : values) sum += static_cast<double>(value) * value;
    return sum;
  };
  const double of_bias = sum_of_squares(bias), of_filter = sum_of_squares(Floats(*operation.filter));
  return of_bias > kLeastBias * of_filter && of_bias < kLargestBias * of_filter;
}

class Fuser {
 public:
  Fuser(const Partition& partition, std::vector<Operation>* operations)
      : partition_(partition), operations_(*operations), is_gone_(operations->size(), false) {}

  void Run() {
    Count();
    for (size_t i = 0; i < operations_.size(); ++i) FusePRelu(static_cast<int>(i));
    for (size_t i = 0; i < operations_.size(); ++i) {
      if (is_gone_[i]) continue;
      const auto number = static_cast<int>(i);
      if (!FuseBias(number) && !FuseClamp(number)) FusePad(number);
    }
    std::vector<Operation> kept;
    for (size_t i = 0; i < operations_.size(); ++i) {
      if (!is_gone_[i]) kept.push_back(std::move(operations_[i]));
    }
    operations_ = std::move(kept);
  }

 private:
  void Count() {
    producer_.assign(partition_.tensors.size(), kNone);
    readers_.assign(partition_.tensors.size(), 0);
    for (size_t i = 0; i < operations_.size(); ++i) {
      for (const int output : operations_[i].outputs) producer_[output] = static_cast<int>(i);
      for (const int input : operations_[i].inputs) ++readers_[input];
    }
    for (const int output : partition_.outputs) ++readers_[output];
  }

  // Returns the operation that produces input `i` of `operation`, if it is of that kind; kNone otherwise.
  int Producer(const Operation& operation, size_t i, OperationKind kind) const {
    if (i >= operation.inputs.size()) return kNone;
    const int producer = producer_[operation.inputs[i]];
    return producer != kNone && !is_gone_[producer] && operations_[producer].kind == kind ? producer : kNone;
  }
  // Returns the operation of any kind that produces input `i`, if the tensor has no other reader; kNone otherwise.
  int SoleProducer(const Operation& operation, size_t i) const {
    const int producer = producer_[operation.inputs[i]];
    if (producer == kNone || is_gone_[producer] || readers_[operation.inputs[i]] != 1) return kNone;
    return operations_[producer].outputs.size() == 1 ? producer : kNone;
  }

  // Merges `from` into `into`: `into` produces the output of `from` and takes its position.
  void Absorb(int into, int from) {
    Operation& target = operations_[into];
    Operation& source = operations_[from];
    target.nodes.insert(target.nodes.end(), source.nodes.begin(), source.nodes.end());
    target.outputs = source.outputs;
    operations_[from] = std::move(target);
    producer_[operations_[from].outputs[0]] = from;
    is_gone_[into] = true;
  }

  const Tensor* Constant(int tensor) const {
    const std::optional<Tensor>& constant = partition_.tensors[tensor].constant;
    return constant.has_value() ? &*constant : nullptr;
  }

  // Returns the constant as one value per channel of the tensor, or one value for all channels; empty if its shape is
  // another one.
  std::vector<float> PerChannel(int constant, int tensor) const {
    const Tensor* value = Constant(constant);
    const Shape& shape = partition_.tensors[tensor].shape;
    if (value == nullptr || shape.rank() == 0 || value->shape().rank() > shape.rank()) return {};
    const auto channels = static_cast<size_t>(shape.dim(shape.rank() - 1));
    const std::vector<float> values = Floats(*value);
    if (values.size() == 1) return std::vector<float>(channels, values[0]);
    const Shape& own = value->shape();
    return values.size() == channels && own.dim(own.rank() - 1) == own.num_elements() ? values : std::vector<float>();
  }

  bool FuseBias(int number) {
    Operation& add = operations_[number];
    if (add.kind != OperationKind::kAdd) return false;
    for (const int side : {0, 1}) {
      const int producer = SoleProducer(add, side);
      if (producer == kNone) continue;
      Operation& target = operations_[producer];
      if (target.kind != OperationKind::kConvolution && target.kind != OperationKind::kTransposedConvolution &&
          target.kind != OperationKind::kMatMul) {
        continue;
      }
      if (!target.bias.empty() || target.has_clamp()) continue;
      std::vector<float> bias = PerChannel(add.inputs[1 - side], add.inputs[side]);
      if (bias.empty()) continue;
      if (AddsBiasLast(target, bias)) {
        add.kind = OperationKind::kBias;
        add.rows /= bias.size();
        add.bias = std::move(bias);
        add.inputs = {add.inputs[side]};
        return true;
      }
      target.bias = std::move(bias);
      Absorb(producer, number);
      return true;
    }
    return false;
  }

  static bool TakesClamp(OperationKind kind) {
    switch (kind) {
      case OperationKind::kConvolution:
      case OperationKind::kTransposedConvolution:
      case OperationKind::kMatMul:
      case OperationKind::kBias:
      case OperationKind::kAdd:
      case OperationKind::kSubtract:
      case OperationKind::kMultiply:
      case OperationKind::kDivide:
      case OperationKind::kMaxPool:
      case OperationKind::kAveragePool:
      case OperationKind::kMean:
      case OperationKind::kClamp:
        return true;
      default:
        return false;
    }
  }

  bool FuseClamp(int number) {
    const Operation& clamp = operations_[number];
    if (clamp.kind != OperationKind::kClamp) return false;
    const int producer = SoleProducer(clamp, 0);
    if (producer == kNone || !TakesClamp(operations_[producer].kind)) return false;
    Operation& target = operations_[producer];
    const float min = std::min(std::max(target.min, clamp.min), clamp.max);
    const float max = std::min(std::max(target.max, clamp.min), clamp.max);
    if (!(min < max)) return false;
    target.min = min;
    target.max = max;
    Absorb(producer, number);
    return true;
  }

  // Folds a Pad into an operation. `number` is the convolution, or the max pooling, whose own padding is -infinity.
  void FusePad(int number) {
    Operation& convolution = operations_[number];
    const bool is_pooling = convolution.kind == OperationKind::kMaxPool;
    if (convolution.kind != OperationKind::kConvolution && !is_pooling) return;
    const int producer = SoleProducer(convolution, 0);
    if (producer == kNone || operations_[producer].kind != OperationKind::kPad) return;
    const Operation& pad = operations_[producer];
    WindowGeometry& window = convolution.window;
    const float neutral = is_pooling ? -std::numeric_limits<float>::infinity() : 0;
    if (pad.alpha != neutral || pad.pad_before.size() != 4 || pad.pad_before[0] + pad.pad_after[0] != 0 ||
        pad.pad_before[3] + pad.pad_after[3] != 0) {
      return;
    }
    // Each window of a pooling must contain a pixel: XNNPACK uses the nearest pixel for taps outside the image.
    if (is_pooling &&
        (std::max(window.pad_top + pad.pad_before[1], window.pad_bottom + pad.pad_after[1]) >= window.kernel_height ||
         std::max(window.pad_left + pad.pad_before[2], window.pad_right + pad.pad_after[2]) >= window.kernel_width)) {
      return;
    }
    window.pad_top += static_cast<uint32_t>(pad.pad_before[1]);
    window.pad_left += static_cast<uint32_t>(pad.pad_before[2]);
    window.pad_bottom += static_cast<uint32_t>(pad.pad_after[1]);
    window.pad_right += static_cast<uint32_t>(pad.pad_after[2]);
    window.input_height = pad.input_shapes[0][1];
    window.input_width = pad.input_shapes[0][2];
    convolution.inputs = pad.inputs;
    convolution.nodes.insert(convolution.nodes.begin(), pad.nodes.begin(), pad.nodes.end());
    is_gone_[producer] = true;
  }

  bool IsRelu(int number) const {
    return number != kNone && operations_[number].min == 0 &&
           operations_[number].max == std::numeric_limits<float>::infinity();
  }

  // Strips constant factors from a product: multiplies them into `factors` (by channel of `tensor`) and returns the
  // other operand. Returns kNone if there are no factors, or if the products have other readers. Appends the tensors
  // between to `passed`.
  int StripFactors(int tensor, std::vector<float>* factors, std::vector<int>* passed) const {
    for (int depth = 0; depth < 2; ++depth) {
      const int product = producer_[tensor];
      if (product == kNone || is_gone_[product] || operations_[product].kind != OperationKind::kMultiply ||
          readers_[tensor] != 1 || operations_[product].has_clamp()) {
        break;
      }
      const std::vector<int>& operands = operations_[product].inputs;
      const int side = Constant(operands[0]) != nullptr ? 1 : 0;
      const std::vector<float> values = PerChannel(operands[1 - side], operands[side]);
      if (values.empty() || partition_.tensors[operands[side]].shape != partition_.tensors[tensor].shape) break;
      if (factors->empty()) factors->assign(values.size(), 1.0f);
      for (size_t i = 0; i < values.size(); ++i) (*factors)[i] *= values[i];
      passed->push_back(product);
      tensor = operands[side];
    }
    return passed->empty() ? kNone : tensor;
  }

  // Matches c * min(x, 0) and returns x, with c in *scale. Returns kNone for other tensors.
  int NegativePartOf(int tensor, float* scale, std::vector<int>* passed) const {
    const int producer = producer_[tensor];
    if (producer == kNone || is_gone_[producer] || readers_[tensor] != 1) return kNone;
    const Operation& operation = operations_[producer];
    if (operation.kind == OperationKind::kClamp && IsRelu(producer)) {  // relu(-x)
      const int negate = Producer(operation, 0, OperationKind::kNegate);
      if (negate == kNone || readers_[operation.inputs[0]] != 1) return kNone;
      *scale = -1;
      passed->push_back(producer);
      passed->push_back(negate);
      return operations_[negate].inputs[0];
    }
    if (operation.kind == OperationKind::kSubtract && !operation.has_clamp()) {  // x - |x|
      const int absolute = Producer(operation, 1, OperationKind::kAbs);
      if (absolute == kNone || readers_[operation.inputs[1]] != 1) return kNone;
      if (operations_[absolute].inputs[0] != operation.inputs[0]) return kNone;
      *scale = 2;
      passed->push_back(producer);
      passed->push_back(absolute);
      return operation.inputs[0];
    }
    return kNone;
  }

  void FusePRelu(int number) {
    Operation& add = operations_[number];
    if (is_gone_[number] || add.kind != OperationKind::kAdd) return;
    for (const int side : {0, 1}) {
      const int relu = Producer(add, side, OperationKind::kClamp);
      if (relu == kNone || !IsRelu(relu) || readers_[add.inputs[side]] != 1) continue;
      std::vector<float> slope;
      std::vector<int> passed;
      const int scaled = StripFactors(add.inputs[1 - side], &slope, &passed);
      if (scaled == kNone) continue;
      float scale = 0;
      const int x = NegativePartOf(scaled, &scale, &passed);
      if (x == kNone || operations_[relu].inputs[0] != x) continue;
      passed.push_back(relu);
      std::sort(passed.begin(), passed.end());
      for (float& value : slope) value *= scale;
      std::vector<const Node*> nodes;
      for (const int i : passed) {
        nodes.insert(nodes.end(), operations_[i].nodes.begin(), operations_[i].nodes.end());
        for (const int input : operations_[i].inputs) --readers_[input];
        is_gone_[i] = true;
      }
      ++readers_[x];
      nodes.insert(nodes.end(), add.nodes.begin(), add.nodes.end());
      add.nodes = std::move(nodes);
      add.kind = OperationKind::kPRelu;
      add.inputs = {x};
      add.slope = std::move(slope);
      add.channels = add.slope.size();
      add.rows = Product(partition_.tensors[x].shape, 0, partition_.tensors[x].shape.rank() - 1);
      return;
    }
  }

  const Partition& partition_;
  std::vector<Operation>& operations_;
  std::vector<bool> is_gone_;
  std::vector<int> producer_;  // By tensor: the operation that produces it.
  std::vector<int> readers_;   // By tensor: number of readers, inputs of operations and outputs of the partition.
};

}  // namespace

void Fuse(const Partition& partition, std::vector<Operation>* operations) { Fuser(partition, operations).Run(); }

}  // namespace xnnpack
}  // namespace permafrost
