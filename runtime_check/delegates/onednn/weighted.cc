// Makes convolution, transposed convolution and inner product primitives.
#include "runtime_check/delegates/onednn/weighted.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/delegates/onednn/loop_nest.h"
#include "runtime_check/delegates/onednn/narrow_convolution.h"
#include "runtime_check/delegates/onednn/packing.h"
#include "runtime_check/delegates/onednn/primitives.h"
#include "runtime_check/delegates/onednn/quantization.h"

namespace permafrost {
namespace onednn {
namespace {

using dnnl::memory;

constexpr auto kFloat = memory::data_type::f32;

// Describes weights in TensorFlow's layout for oneDNN: [H, W, I, O], [H, W, C, M] or [I, O].
memory::desc GivenWeights(const ParsedNode& parsed, memory::data_type type = kFloat) {
  if (parsed.kind == NodeKind::kMatMul) {
    return parsed.transpose_b ? memory::desc({parsed.columns, parsed.depth}, type, memory::dims{parsed.depth, 1})
                              : memory::desc({parsed.columns, parsed.depth}, type, memory::dims{1, parsed.columns});
  }
  const WindowGeometry& window = parsed.window;
  const int64_t outputs = window.output_channels, inputs = window.input_channels / window.groups;
  const int64_t height = window.y.taps, width = window.x.taps;
  if (parsed.kind == NodeKind::kTransposedConvolution) {
    // [H, W, outputs, inputs]
    return memory::desc({outputs, inputs, height, width}, type,
                        memory::dims{inputs, 1, width * outputs * inputs, outputs * inputs});
  }
  if (window.groups == 1) return memory::desc({outputs, inputs, height, width}, type, memory::format_tag::hwio);
  const int64_t per_group = outputs / window.groups;
  // The outputs of a group are contiguous, also those of a depthwise multiplier, in [H, W, C, M].
  return memory::desc({window.groups, per_group, inputs, height, width}, type,
                      memory::dims{per_group, 1, outputs, width * inputs * outputs, inputs * outputs});
}

memory::desc AnyLayout(const memory::desc& desc, memory::data_type type) {
  return memory::desc(desc.dims(), type, memory::format_tag::any);
}

struct Descs {
  memory::desc source, weights, bias, target;
};

memory::data_type WeightType(Element source) {
  return source == Element::kFloat  ? kFloat
         : source == Element::kBf16 ? memory::data_type::bf16
                                    : memory::data_type::s8;
}

Descs DescsOf(const ParsedNode& parsed, bool has_bias, Element source = Element::kFloat,
              Element target = Element::kFloat) {
  Descs descs;
  descs.weights = AnyLayout(GivenWeights(parsed), WeightType(source));
  const WindowGeometry& window = parsed.window;
  if (parsed.kind == NodeKind::kMatMul) {
    descs.source = memory::desc({parsed.rows, parsed.depth}, TypeOf(source), memory::format_tag::ab);
    descs.target = memory::desc({parsed.rows, parsed.columns}, TypeOf(target), memory::format_tag::ab);
  } else if (parsed.kind == NodeKind::kTransposedConvolution) {
    descs.source = ImageDesc(window.batch, window.y.output, window.x.output, window.input_channels, source);
    descs.target = ImageDesc(window.batch, window.y.input, window.x.input, window.output_channels, target);
  } else {
    descs.source = ImageDesc(window.batch, window.y.input, window.x.input, window.input_channels, source);
    descs.target = ImageDesc(window.batch, window.y.output, window.x.output, window.output_channels, target);
  }
  if (has_bias) {
    const int64_t channels = parsed.kind == NodeKind::kMatMul ? parsed.columns : window.output_channels;
    descs.bias = memory::desc({channels}, kFloat, memory::format_tag::x);
  }
  return descs;
}

// Properties of a primitive that are known before it is created.
struct Chosen {
  std::string implementation;
  memory::desc weights, scratch;
  std::function<dnnl::primitive()> make;  // Creates it, with code generation.
};

template <typename Primitive, typename PrimitiveDesc>
Chosen ChosenOf(const PrimitiveDesc& desc) {
  return {desc.impl_info_str(), desc.weights_desc(), desc.scratchpad_desc(), [desc] { return Primitive(desc); }};
}

// Returns true for an implementation that writes out of bounds. oneDNN 2.6's 1x1 convolutions with AMX tiles split an
// image of 27 to 48 positions, which is three tiles, into groups of two, and write the rows of the fourth past the end
// of the target. This was found by running all sizes up to 720 positions between guard bytes. Images of up to 16
// positions (one tile) are not split, and beyond 48 the groups fit.
bool WritesBeyondTarget(absl::string_view implementation, const WindowGeometry& window) {
  const int64_t positions = window.y.output * window.x.output;
  return absl::StartsWith(implementation, "jit_1x1:avx512_core_amx") && positions > 16 && positions <= 48;
}

Chosen Choose(const ParsedNode& parsed, const Descs& descs, const dnnl::primitive_attr& attributes) {
  using dnnl::algorithm;
  using dnnl::prop_kind;
  constexpr auto kInference = prop_kind::forward_inference;
  if (parsed.kind == NodeKind::kMatMul) {
    const auto desc =
        descs.bias.is_zero()
            ? dnnl::inner_product_forward::desc(kInference, descs.source, descs.weights, descs.target)
            : dnnl::inner_product_forward::desc(kInference, descs.source, descs.weights, descs.bias, descs.target);
    return ChosenOf<dnnl::inner_product_forward>(
        dnnl::inner_product_forward::primitive_desc(desc, attributes, CpuEngine()));
  }
  const WindowAxis &y = parsed.window.y, &x = parsed.window.x;
  const memory::dims strides = {y.stride, x.stride}, dilations = {y.dilation - 1, x.dilation - 1};
  const memory::dims before = {y.pad_before, x.pad_before}, after = {PadAfter(y), PadAfter(x)};
  if (parsed.kind == NodeKind::kTransposedConvolution) {
    const auto desc =
        dnnl::deconvolution_forward::desc(kInference, algorithm::deconvolution_direct, descs.source, descs.weights,
                                          descs.bias, descs.target, strides, dilations, before, after);
    return ChosenOf<dnnl::deconvolution_forward>(
        dnnl::deconvolution_forward::primitive_desc(desc, attributes, CpuEngine()));
  }
  const auto desc =
      dnnl::convolution_forward::desc(kInference, algorithm::convolution_direct, descs.source, descs.weights,
                                      descs.bias, descs.target, strides, dilations, before, after);
  dnnl::convolution_forward::primitive_desc choice(desc, attributes, CpuEngine());
  while (WritesBeyondTarget(choice.impl_info_str(), parsed.window)) {
    if (!choice.next_impl())
      throw dnnl::error(dnnl_unimplemented, "no implementation that does not write beyond its output");
  }
  return ChosenOf<dnnl::convolution_forward>(choice);
}

struct Eltwise {
  dnnl::algorithm algorithm;
  float alpha = 0, beta = 0;
};

bool EltwiseOf(const Step& step, Eltwise* eltwise) {
  using dnnl::algorithm;
  switch (step.op) {
    case LoopOp::kRelu:
      *eltwise = {algorithm::eltwise_relu};
      return true;
    case LoopOp::kClip:
      *eltwise = {algorithm::eltwise_clip, step.alpha, step.beta};
      return true;
    case LoopOp::kLeakyRelu:
      *eltwise = {algorithm::eltwise_relu, step.alpha};
      return true;
    case LoopOp::kElu:
      *eltwise = {algorithm::eltwise_elu, step.alpha};
      return true;
    case LoopOp::kSigmoid:
      *eltwise = {algorithm::eltwise_logistic};
      return true;
    case LoopOp::kTanh:
      *eltwise = {algorithm::eltwise_tanh};
      return true;
    case LoopOp::kExp:
      *eltwise = {algorithm::eltwise_exp};
      return true;
    case LoopOp::kAbs:
      *eltwise = {algorithm::eltwise_abs};
      return true;
    case LoopOp::kSquare:
      *eltwise = {algorithm::eltwise_square};
      return true;
    case LoopOp::kNeg:
      *eltwise = {algorithm::eltwise_linear, -1};
      return true;
    case LoopOp::kAffine:
      *eltwise = {algorithm::eltwise_linear, step.alpha, step.beta};
      return true;
    case LoopOp::kHardSwish:
      *eltwise = {algorithm::eltwise_hardswish};
      return true;
    case LoopOp::kSwish:
      *eltwise = {algorithm::eltwise_swish, 1};
      return true;
    case LoopOp::kGelu:
      *eltwise = {algorithm::eltwise_gelu_erf};
      return true;
    case LoopOp::kGeluTanh:
      *eltwise = {algorithm::eltwise_gelu_tanh};
      return true;
    default:
      return false;
  }
}

bool BinaryOf(LoopOp op, dnnl::algorithm* algorithm) {
  switch (op) {
    case LoopOp::kAdd:
      *algorithm = dnnl::algorithm::binary_add;
      return true;
    case LoopOp::kSub:
      *algorithm = dnnl::algorithm::binary_sub;
      return true;
    case LoopOp::kMul:
      *algorithm = dnnl::algorithm::binary_mul;
      return true;
    case LoopOp::kDiv:
      *algorithm = dnnl::algorithm::binary_div;
      return true;
    case LoopOp::kMax:
      *algorithm = dnnl::algorithm::binary_max;
      return true;
    case LoopOp::kMin:
      *algorithm = dnnl::algorithm::binary_min;
      return true;
    default:
      return false;
  }
}

// The limit of oneDNN is 32.
constexpr size_t kMostPostSteps = 32;

// Minimum number of multiplications per thread: fewer are done before a second thread starts (about 2 us).
constexpr int64_t kWorthAThread = 128 * 1024;

// Returns true for an implementation with a known bug: without AVX2, oneDNN 2.6.3 falls back to one that reads wrong
// elements of post-op operands.
bool LosesOperands(absl::string_view implementation) { return absl::StartsWith(implementation, "x64:gemm"); }

bool HasOperands(const WeightedOp& op) {
  return std::any_of(op.post_steps.begin(), op.post_steps.end(), [](const Step& step) { return step.has_other(); });
}

class Weighted final : public Piece {
 public:
  absl::Status Init(WeightedOp op, const StorageTypes& types, int num_threads, PackedWeights* packed) {
    num_threads_ = Products(op.parsed) < kWorthAThread ? 1 : num_threads;
    types_ = types;
    const ThreadsInScope threads(num_threads_);
    name = op.name;
    reads = {op.input};
    writes = {op.output};
    input_ = op.input;
    output_ = op.output;
    source_type_ = types.Of(op.input);
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const std::string key = packed == nullptr ? "" : PackingKey(op, source_type_.element);
    const std::optional<WeightFacts> known = FindFacts(op, key, packed);
    WeightFacts facts;
    Tensor weights;  // Empty if the facts are cached, since packed weights may be cached too.
    const WeightedOp given = op;
    if (known.has_value() && known->scales.empty() != source_type_.IsInt8()) {
      facts = *known;
      if (facts.bias.has_value()) op.bias = *facts.bias;
      op.means.clear();
    } else {
      PF_ASSIGN_OR_RETURN(weights, PrepareWeights(&op, &facts));
    }
    if (source_type_.IsInt8()) PF_RETURN_IF_ERROR(ScaleTo(types_.Of(op.output), facts.scales, &op, &attributes));
    const bool has_bias = !op.bias.empty();
    const Descs descs = DescsOf(op.parsed, has_bias, source_type_.element, types.Of(op.output).element);
    std::vector<memory::desc> operands(op.post_steps.size());
    if (!op.post_steps.empty()) attributes.set_post_ops(PostOps(op, descs.target, &operands));
    const Chosen chosen = Choose(op.parsed, descs, attributes);
    if (IsReferenceImplementation(chosen.implementation.c_str())) {
      return absl::UnimplementedError(absl::StrCat("oneDNN has only '", chosen.implementation, "' for this op"));
    }
    for (const Step& step : op.post_steps) {
      if (types_.Of(step.other).IsInt8()) return absl::UnimplementedError("oneDNN does not scale operands of post-ops");
    }
    if (LosesOperands(chosen.implementation) && HasOperands(op)) {
      return absl::UnimplementedError(
          absl::StrCat("'", chosen.implementation, "' reads operands of post-ops incorrectly"));
    }
    primitive_.Set(chosen.make());
    implementation_ = chosen.implementation;
    source_ = primitive_.Declare(DNNL_ARG_SRC, descs.source);
    target_ = primitive_.Declare(DNNL_ARG_DST, descs.target);
    scratch_bytes_ = static_cast<int64_t>(chosen.scratch.get_size());
    if (scratch_bytes_ > 0) scratch_ = primitive_.Declare(DNNL_ARG_SCRATCHPAD, chosen.scratch);
    DescribeKind(op.parsed);
    std::optional<PackedBytes> found;
    if (weights.bytes().empty()) found = FindPacked(key, chosen.weights, packed);
    if (found.has_value()) {
      BindPacked(*std::move(found), chosen.weights);
    } else {
      WeightFacts unused;
      WeightedOp unpacked = given;
      if (weights.bytes().empty()) {
        PF_ASSIGN_OR_RETURN(weights, PrepareWeights(&unpacked, &unused));
      }
      PackWeights(op.parsed, weights, chosen.weights, key, &facts, packed);
    }
    has_non_finite_weights_ = facts.has_non_finite || HasNonFinite(reinterpret_cast<const char*>(op.bias.data()),
                                                                   static_cast<int64_t>(op.bias.size()));
    if (has_bias) BindConstants(DNNL_ARG_BIAS, descs.bias, op.bias);
    BindPostOps(op, operands);
    // NaN and infinity have no 8-bit representation: such a partition is computed in floats instead.
    if (!op.post_steps.empty() && !source_type_.IsInt8()) KeepForNonFinite(std::move(op));
    return absl::OkStatus();
  }

  absl::Status Run(const RunContext& context) override {
    if ((context.HasNonFinite() || has_non_finite_weights_) && loops_ != nullptr) return RunNonFinite(context);
    primitive_.SetPointer(source_, context.tensors[input_]);
    primitive_.SetPointer(target_, context.tensors[output_]);
    if (scratch_ >= 0) primitive_.SetPointer(scratch_, context.scratch);
    for (const auto& [number, tensor] : operands_) primitive_.SetPointer(number, context.tensors[tensor]);
    const ThreadsInScope threads(num_threads_);
    return primitive_.Run();
  }

  int64_t scratch_bytes() const override {
    return loops_ == nullptr ? scratch_bytes_ : std::max(scratch_bytes_, loops_->scratch_bytes());
  }
  int64_t constant_bytes() const override { return constant_bytes_; }
  std::string Describe() const override {
    return absl::StrCat(name, ": ", description_, " (", implementation_, ")", is_mapped_ ? ", packed before" : "");
  }

 private:
  // Returns the weights with the values that the primitive multiplies, in TensorFlow's layout. Corrects the bias of the
  // op for the quantisation error.
  absl::StatusOr<Tensor> PrepareWeights(WeightedOp* op, WeightFacts* facts) {
    const bool is_corrected = !source_type_.IsFloat() && !op->means.empty();
    if (op->scale.empty() && !is_corrected && !source_type_.IsInt8()) return op->weights;
    const Shape& shape = op->weights.shape();
    if (!source_type_.IsInt8()) {
      std::vector<float> exact = ScaledWeights(*op);
      if (is_corrected) {
        CorrectBias(exact, RoundedToBf16(exact), op);
        facts->bias = op->bias;
      }
      // The op may be made again without its post-steps; the bias must not be corrected twice.
      op->means.clear();
      return Tensor::FromVector<float>(shape, std::move(exact));
    }
    PF_ASSIGN_OR_RETURN(EightBitWeights weights, QuantizeAndCorrect(op));
    facts->bias = op->bias;
    facts->scales = std::move(weights.scales);
    return Tensor::FromVector<int8_t>(shape, std::move(weights.values));
  }

  // Sets all scales of an 8-bit product: bias and post-steps then apply to a result divided by its own scale. A sum of
  // integer products represents source scale * weight scale times its value.
  absl::Status ScaleTo(StorageType target, const std::vector<float>& weight_scales, WeightedOp* op,
                       dnnl::primitive_attr* attributes) const {
    std::vector<float> scales(weight_scales.size());
    for (size_t o = 0; o < scales.size(); ++o) {
      scales[o] = source_type_.scale * weight_scales[o];
      if (!op->bias.empty()) op->bias[o] /= scales[o];
    }
    if (target.IsInt8()) {
      const float factor = 1.0f / target.scale;
      std::vector<Step>& steps = op->post_steps;
      if (std::all_of(steps.begin(), steps.end(), IsHomogeneous)) {
        for (float& scale : scales) scale *= factor;
        for (Step& step : steps) {
          if (step.op == LoopOp::kClip) step.alpha *= factor, step.beta *= factor;
        }
        // A clip at the bounds of the type is redundant, since the conversion saturates.
        const auto does_nothing = [&](const Step& step) {
          return target.element == Element::kU8 &&
                 (step.op == LoopOp::kRelu || (step.op == LoopOp::kClip && step.alpha == 0 && step.beta > 254.5f));
        };
        if (!steps.empty() && does_nothing(steps.back())) steps.pop_back();
      } else {
        Step scale(Shape{});
        scale.op = LoopOp::kAffine;
        scale.alpha = factor;
        if (!AppendPostStep(scale, /*takes_slopes=*/false, &steps)) {
          return absl::UnimplementedError("its post-ops cannot be combined with a scale");
        }
      }
    }
    attributes->set_output_scales(1 << 1, scales);
    return absl::OkStatus();
  }

  static bool IsHomogeneous(const Step& step) {
    return step.op == LoopOp::kRelu || step.op == LoopOp::kClip || step.op == LoopOp::kLeakyRelu ||
           step.op == LoopOp::kAbs || step.op == LoopOp::kNeg;
  }

  // oneDNN's activations convert NaN to numbers. If inputs may hold NaN, the op runs without post-steps, and the steps
  // run in the delegate's own loops, which propagate NaN.
  void KeepForNonFinite(WeightedOp op) {
    std::vector<Step> steps;
    steps.swap(op.post_steps);
    loops_ = MakeStepsInPlace(std::move(steps), op.output, types_, name, num_threads_);
    bare_op_ = std::make_unique<WeightedOp>(std::move(op));
  }

  absl::Status RunNonFinite(const RunContext& context) {
    if (bare_ == nullptr) {
      PF_ASSIGN_OR_RETURN(bare_, MakeWeighted(*bare_op_, types_, num_threads_, nullptr));
      // The scratch memory was planned for the other primitive; this one may need more.
      bare_scratch_.resize(static_cast<size_t>(bare_->scratch_bytes()) + 64);
    }
    RunContext bare_context = context;
    const auto address = reinterpret_cast<uintptr_t>(bare_scratch_.data());
    bare_context.scratch = bare_scratch_.data() + (64 - address % 64) % 64;
    PF_RETURN_IF_ERROR(bare_->Run(bare_context));
    return loops_->Run(context);
  }

  dnnl::post_ops PostOps(const WeightedOp& op, const memory::desc& target, std::vector<memory::desc>* operands) {
    dnnl::post_ops post_ops;
    for (size_t i = 0; i < op.post_steps.size(); ++i) {
      const Step& step = op.post_steps[i];
      Eltwise eltwise;
      dnnl::algorithm binary;
      if (EltwiseOf(step, &eltwise)) {
        post_ops.append_eltwise(1.0f, eltwise.algorithm, eltwise.alpha, eltwise.beta);
      } else if (BinaryOf(step.op, &binary)) {
        if (step.meeting == Meeting::kSame) {
          const auto type = TypeOf(types_.Of(step.other).element);
          (*operands)[i] = memory::desc(target.dims(), type,
                                        target.dims().size() == 4 ? memory::format_tag::nhwc : memory::format_tag::ab);
        } else {
          memory::dims dims(target.dims().size(), 1);
          if (step.meeting != Meeting::kScalar) dims[1] = op.output_channels();
          const auto type = TypeOf(types_.Of(step.other).element);
          (*operands)[i] =
              memory::desc(dims, type, dims.size() == 4 ? memory::format_tag::nhwc : memory::format_tag::ab);
        }
        post_ops.append_binary(binary, (*operands)[i]);
      }
    }
    return post_ops;
  }

  void BindPostOps(const WeightedOp& op, const std::vector<memory::desc>& operands) {
    for (size_t i = 0; i < op.post_steps.size(); ++i) {
      const Step& step = op.post_steps[i];
      description_ = absl::StrCat(description_, " + ", NameOf(step.op));
      if (!step.has_other()) continue;
      const int argument = DNNL_ARG_ATTR_MULTIPLE_POST_OP(static_cast<int>(i)) | DNNL_ARG_SRC_1;
      if (step.other < 0) {
        BindConstants(argument, operands[i], step.constants);
      } else {
        operands_.emplace_back(primitive_.Declare(argument, operands[i]), step.other);
        reads.push_back(step.other);
      }
    }
  }

  void BindConstants(int argument, const memory::desc& desc, const std::vector<float>& values) {
    memory made(desc, CpuEngine());
    std::memcpy(made.get_data_handle(), values.data(), values.size() * sizeof(float));
    constant_bytes_ += static_cast<int64_t>(desc.get_size());
    primitive_.Bind(argument, std::move(made));
  }

  void DescribeKind(const ParsedNode& parsed) {
    description_ = parsed.kind == NodeKind::kMatMul                  ? "matmul"
                   : parsed.kind == NodeKind::kTransposedConvolution ? "transposed convolution"
                   : parsed.window.groups > 1                        ? "depthwise convolution"
                                                                     : "convolution";
  }

  // The library takes a pointer to mutable memory but only reads the weights.
  void BindPacked(PackedBytes found, const memory::desc& wanted) {
    primitive_.Bind(DNNL_ARG_WEIGHTS, memory(wanted, CpuEngine(), const_cast<char*>(found.bytes.data())));
    mapped_ = std::move(found.owner);
    is_mapped_ = true;
  }

  void PackWeights(const ParsedNode& parsed, const Tensor& weights, const memory::desc& wanted, const std::string& key,
                   WeightFacts* facts, PackedWeights* packed) {
    const bool is_int8 = weights.dtype() == DType::kInt8;
    const memory::desc given = GivenWeights(parsed, is_int8 ? memory::data_type::s8 : kFloat);
    const char* bytes = weights.bytes().data();
    std::vector<float> copy;
    if (!is_int8 && reinterpret_cast<uintptr_t>(bytes) % alignof(float) != 0) {
      copy = FloatsOf(weights);
      bytes = reinterpret_cast<const char*>(copy.data());
    }
    facts->has_non_finite = !is_int8 && HasNonFinite(bytes, weights.num_elements());
    memory source(given, CpuEngine(), const_cast<char*>(bytes));
    memory made(wanted, CpuEngine());
    // The library does not write all the memory after 8-bit weights, and cached bytes should be deterministic.
    if (is_int8) std::memset(made.get_data_handle(), 0, wanted.get_size());
    dnnl::stream stream(CpuEngine());
    dnnl::reorder(source, made).execute(stream, source, made);
    stream.wait();
    constant_bytes_ += static_cast<int64_t>(wanted.get_size());
    KeepPacked(key, made, packed);
    KeepFacts(*facts, key, packed);
    primitive_.Bind(DNNL_ARG_WEIGHTS, std::move(made));
  }

  BoundPrimitive primitive_;
  int input_ = 0, output_ = 0;
  int source_ = -1, target_ = -1, scratch_ = -1;
  std::vector<std::pair<int, int>> operands_;  // Pairs of argument number and tensor.
  int64_t scratch_bytes_ = 0, constant_bytes_ = 0;
  std::string implementation_, description_;
  StorageTypes types_;
  StorageType source_type_;
  int num_threads_ = 1;
  bool is_mapped_ = false;  // True if the weights are in the memory that `mapped_` owns.
  Owner mapped_;
  // For inputs with NaN or infinity; null without post-ops.
  bool has_non_finite_weights_ = false;
  std::unique_ptr<Piece> loops_, bare_;
  std::unique_ptr<WeightedOp> bare_op_;
  std::vector<char> bare_scratch_;
};

}  // namespace

namespace {

bool IsSlopes(const Step& step) {
  return step.op == LoopOp::kPrelu && step.meeting == Meeting::kPerChannel && !step.constants.empty();
}

bool IsPostOp(const Step& step) {
  Eltwise eltwise;
  if (!step.has_other()) return EltwiseOf(step, &eltwise);
  dnnl::algorithm binary;
  if (!BinaryOf(step.op, &binary)) return false;
  if (step.meeting == Meeting::kPerRow) return false;
  if (step.meeting == Meeting::kPerImage && step.images != 1) return false;
  return !(step.meeting == Meeting::kSame && step.other < 0);
}

// Returns true if the result is never negative.
bool IsNeverNegative(const Step& step) {
  return step.op == LoopOp::kRelu || (step.op == LoopOp::kClip && step.alpha >= 0) || step.op == LoopOp::kSquare ||
         step.op == LoopOp::kSigmoid || step.op == LoopOp::kExp;
}

// Returns true if the step changes only negative numbers.
bool LeavesOthers(const Step& step) {
  return step.op == LoopOp::kRelu || step.op == LoopOp::kLeakyRelu || (step.op == LoopOp::kPrelu && step.other < 0);
}

// Returns a ReLU as a clip.
Step AsClip(Step step) {
  if (step.op != LoopOp::kRelu) return step;
  step.op = LoopOp::kClip;
  step.alpha = 0;
  step.beta = std::numeric_limits<float>::infinity();
  return step;
}

// Makes `step`, which follows `inner`, compute both.
bool MergeInto(const Step& inner, Step* step) {
  if (step->op == LoopOp::kAffine && inner.op == LoopOp::kAffine) {
    step->beta += step->alpha * inner.beta;
    step->alpha *= inner.alpha;
    return true;
  }
  const Step first = AsClip(inner), second = AsClip(*step);
  if (first.op != LoopOp::kClip || second.op != LoopOp::kClip) return false;
  *step = second;
  // The same result as two clips: apply the lower bound of the second, then its upper bound.
  step->alpha = std::min(std::max(first.alpha, second.alpha), second.beta);
  step->beta = std::min(std::max(first.beta, second.alpha), second.beta);
  return true;
}

}  // namespace

bool AppendPostStep(const Step& step, bool takes_slopes, std::vector<Step>* post_steps) {
  if (step.op == LoopOp::kAffine && step.alpha == 1 && step.beta == 0) return true;
  if (!post_steps->empty() && IsNeverNegative(post_steps->back()) && LeavesOthers(step)) return true;
  if (!IsPostOp(step) && !(takes_slopes && IsSlopes(step))) return false;
  Step last = step;
  const bool is_merged = !post_steps->empty() && MergeInto(post_steps->back(), &last);
  const size_t num_before = post_steps->size() - (is_merged ? 1 : 0);
  if (num_before == kMostPostSteps) return false;
  Eltwise eltwise;
  if (!last.has_other() && EltwiseOf(last, &eltwise)) {
    for (size_t i = 0; i < num_before; ++i) {
      Eltwise before;
      if ((*post_steps)[i].has_other() || !EltwiseOf((*post_steps)[i], &before)) continue;
      if (before.algorithm != eltwise.algorithm) continue;
      if (before.alpha != eltwise.alpha || before.beta != eltwise.beta) return false;
    }
  }
  if (is_merged) post_steps->pop_back();
  post_steps->push_back(std::move(last));
  return true;
}

int64_t Products(const ParsedNode& parsed) {
  if (parsed.kind == NodeKind::kMatMul) return parsed.rows * parsed.depth * parsed.columns;
  const WindowGeometry& window = parsed.window;
  return window.batch * window.y.output * window.x.output * window.output_channels * window.y.taps * window.x.taps *
         (window.input_channels / window.groups);
}

absl::Status CheckFast(const ParsedNode& parsed) {
  if (IsNarrow(parsed)) return absl::OkStatus();
  Chosen chosen;
  PF_RETURN_IF_ERROR(Guarded("oneDNN does not support it", [&] {
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    chosen = Choose(parsed, DescsOf(parsed, true), attributes);
  }));
  if (!IsReferenceImplementation(chosen.implementation.c_str())) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat("oneDNN has only '", chosen.implementation, "' for this op"));
}

absl::StatusOr<std::unique_ptr<Piece>> MakeWeighted(WeightedOp op, const StorageTypes& types, int num_threads,
                                                    PackedWeights* packed) {
  if (IsNarrow(op.parsed)) {
    if (!op.post_steps.empty()) return absl::UnimplementedError("narrow convolutions have no post-ops");
    return MakeNarrow(op, num_threads);
  }
  if (std::any_of(op.post_steps.begin(), op.post_steps.end(), IsSlopes)) {
    return absl::UnimplementedError("oneDNN has no fast implementation with per-channel slopes");
  }
  auto piece = std::make_unique<Weighted>();
  const std::string name = op.name;
  absl::Status made;
  PF_RETURN_IF_ERROR(Guarded(name, [&] { made = piece->Init(std::move(op), types, num_threads, packed); }));
  PF_RETURN_IF_ERROR(made);
  return std::unique_ptr<Piece>(std::move(piece));
}

}  // namespace onednn
}  // namespace permafrost
