// Stores large float constants in eight bits.
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "graph/multiversion.h"
#include "graph/status.h"
#include "transforms/pass.h"
#include "transforms/rewrites/float_constants.h"
#include "transforms/rewrites/float_ranges.h"

namespace permafrost {
namespace {

struct Params {
  int32_t minimum_size = 1024;
  std::vector<std::string> exclude_node;
  std::vector<std::string> exclude_op;
};

constexpr int kCodes = 256;

// What the codes mean: code c stands for round(min / step) * step + c * step, with step = (max - min) / 255.
struct Coding {
  float min;
  float max;
  double scale;      // Codes per unit.
  double zero_code;  // The rounded position of min, which the codes start from.
};

// The range always holds 0, so that 0 is represented exactly. As in the original, whose bytes are the promise, the
// search for the maximum starts at the smallest normal number, which changes no code; only a tensor of zeros needs more
// room.
Coding CodingOf(const FloatRange& range) {
  Coding coding;
  coding.min = std::min(range.min, 0.0f);
  coding.max = std::max(range.max, std::numeric_limits<float>::min());
  if (range.min == 0 && range.max == 0) coding.max = 1;
  // The range is stretched by 256/255 so that 256 steps of it hold 256 codes. The difference is taken in float, as
  // there.
  const double width = static_cast<double>(coding.max - coding.min) * (kCodes / (kCodes - 1.0));
  coding.scale = kCodes / width;
  coding.zero_code = std::round(coding.min * coding.scale);
  return coding;
}

// std::round, half away from zero, in a form that vectorises. Exact: within +-256 the difference is.
inline PF_INLINE void EncodeBlock(const float* values, double scale, int32_t zero_code, uint8_t* codes) {
  int32_t wide[kBlock];
  for (size_t i = 0; i < kBlock; ++i) {
    const double position = values[i] * scale;
    const int32_t whole = static_cast<int32_t>(position);
    const double rest = position - whole;
    wide[i] = whole + (rest >= 0.5 ? 1 : 0) - (rest <= -0.5 ? 1 : 0) - zero_code;
  }
  for (size_t i = 0; i < kBlock; ++i) {
    const int32_t code = wide[i] < 0 ? 0 : wide[i];
    codes[i] = static_cast<uint8_t>(code > kCodes - 1 ? kCodes - 1 : code);
  }
}

absl::StatusOr<Tensor> Encode(const Tensor& tensor, const Coding& coding, int num_threads) {
  char* out = nullptr;
  PF_ASSIGN_OR_RETURN(Tensor encoded, Tensor::Allocate(DType::kQUint8, tensor.shape(), &out));
  const UnalignedSpan<float> values = tensor.elements<float>();
  ForPieces(values.size(), num_threads, [&](size_t start, size_t end) {
    alignas(64) float block[kBlock];
    alignas(64) uint8_t codes[kBlock];
    Multiversion([&]() PF_INLINE {
      for (; start < end; start += kBlock) {
        const size_t count = LoadBlock(values, start, block);
        EncodeBlock(block, coding.scale, static_cast<int32_t>(coding.zero_code), codes);
        std::memcpy(out + start, codes, count);
      }
    });
  });
  return encoded;
}

// Why the constant stays as it is; empty when it can be encoded.
std::string Objection(const FloatRange& range) {
  if (!range.all_finite) return "holds NaN or infinity, which eight bits cannot represent";
  const Coding coding = CodingOf(range);
  const float step = (coding.max - coding.min) / (kCodes - 1);
  if (!std::isfinite(step)) return "its range exceeds that of float";
  if (step < std::numeric_limits<float>::min()) return "its values are too small: the step between codes would be 0";
  return "";
}

// True when the node only says which range the codes of a Dequantize span.
bool IsRangeOfDequantize(const Node& node) {
  if (node.uses().empty()) return false;
  for (const Use& use : node.uses()) {
    if (use.consumer->op() != ops::kDequantize || (use.index != 1 && use.index != 2)) return false;
  }
  return true;
}

// The op in `excluded` that reads the constant, directly or through one Identity; null when none does.
const Node* ExcludedConsumer(const Node& node, const absl::flat_hash_set<absl::string_view>& excluded) {
  if (excluded.empty()) return nullptr;
  for (const Use& use : node.uses()) {
    if (excluded.contains(use.consumer->op().name())) return use.consumer;
    if (use.consumer->op() != ops::kIdentity) continue;
    for (const Use& read : use.consumer->uses()) {
      if (excluded.contains(read.consumer->op().name())) return read.consumer;
    }
  }
  return nullptr;
}

// The constant's node becomes the Dequantize, so its name, its users and its place stay.
absl::Status Replace(Graph* graph, Node* node, Tensor codes, const Coding& coding) {
  const std::string name(node->name());
  const auto add = [&](absl::string_view suffix, Tensor value) -> absl::StatusOr<Node*> {
    PF_ASSIGN_OR_RETURN(Node * made,
                        graph->AddConst(graph->UniqueName(absl::StrCat(name, suffix)), std::move(value), node));
    made->set_device(node->device());
    // Only control inputs put a constant into the frame of a loop, so all three need them.
    for (int i = 0; i < node->num_inputs(); ++i) graph->AddControlInput(made, node->input(i).node);
    return made;
  };
  PF_ASSIGN_OR_RETURN(Node * values, add("_quantized_const", std::move(codes)));
  PF_ASSIGN_OR_RETURN(Node * min, add("_quantized_min", Tensor::Scalar(coding.min)));
  PF_ASSIGN_OR_RETURN(Node * max, add("_quantized_max", Tensor::Scalar(coding.max)));
  node->set_op(ops::kDequantize);
  node->ClearAttrs();
  node->SetAttr("T", AttrValue::Type(DType::kQUint8));
  node->SetAttr("mode", AttrValue::String("MIN_FIRST"));
  graph->ClearInputs(node);
  for (Node* input : {values, min, max}) graph->AddInput(node, {input, 0});
  return absl::OkStatus();
}

absl::StatusOr<int64_t> Quantize(Graph* graph, const Params& params, PassContext* context) {
  const absl::flat_hash_set<absl::string_view> excluded_nodes(params.exclude_node.begin(), params.exclude_node.end());
  const absl::flat_hash_set<absl::string_view> excluded_ops(params.exclude_op.begin(), params.exclude_op.end());
  int64_t rewrites = 0;
  uint64_t bytes = 0;
  for (Node* node : graph->Nodes()) {
    PF_ASSIGN_OR_RETURN(const std::optional<int64_t> elements, FloatConstantSize(*node));
    if (!elements.has_value() || *elements == 0 || IsRangeOfDequantize(*node)) continue;
    if (*elements < params.minimum_size) {
      context->MissIfWanted(*node, WayOut{"lower minimum_size"}, "has ", *elements, " elements, and minimum_size is ",
                            params.minimum_size);
      continue;
    }
    if (graph->IsInput(node)) {
      context->MissIfWanted(*node, "is a declared input");
      continue;
    }
    if (excluded_nodes.contains(node->name())) {
      context->MissIfWanted(*node, "is excluded by exclude_node");
      continue;
    }
    if (const Node* consumer = ExcludedConsumer(*node, excluded_ops); consumer != nullptr) {
      context->MissIfWanted(*node, "is read by ", consumer->Describe(), ", which exclude_op names");
      continue;
    }
    PF_ASSIGN_OR_RETURN(const Tensor tensor, ConstValue(*node));
    const FloatRange range = FindRange(tensor.elements<float>(), context->num_threads);
    if (const std::string objection = Objection(range); !objection.empty()) {
      context->MissIfWanted(*node, objection);
      continue;
    }
    const RewriteScope rewrite(context, graph, {node});
    if (!rewrite) continue;
    const Coding coding = CodingOf(range);
    PF_ASSIGN_OR_RETURN(Tensor codes, Encode(tensor, coding, context->num_threads));
    PF_RETURN_IF_ERROR(Replace(graph, node, std::move(codes), coding));
    ++rewrites;
    bytes += tensor.bytes().size();
  }
  if (rewrites > 0) {
    context->Note(absl::StrCat("stored ", rewrites, " constants of ", bytes, " bytes in eight bits"));
  }
  return rewrites;
}

}  // namespace

// Puts each large float constant into the file as one byte per element and decodes it when the model is loaded.
//
//   Const n (float)   =>   Dequantize n (MIN_FIRST) of Const n_quantized_const (quint8), n_quantized_min,
//   n_quantized_max
//
// Left alone when it has fewer than minimum_size elements, is of another type, holds NaN or infinity, spans a range
// that float cannot divide into 255 steps, is excluded, or is fed.
DEFINE_PASS(quantize_weights) {
  return Pass<Params>("Stores large float constants in eight bits, a quarter of their size.")
      .Param("minimum_size", &Params::minimum_size, "Constants with fewer elements stay as they are.", AtLeast(0))
      .Param("exclude_node", &Params::exclude_node, "Name of a constant that stays as it is.")
      .Param("exclude_op", &Params::exclude_op, "Constants that such an op reads, directly or through Identity, stay.")
      .Numerics(Changes("weights keep eight bits"))
      .Idempotent()
      .Run(Quantize);
}

}  // namespace permafrost
