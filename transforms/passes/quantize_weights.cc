// Stores large float constants in sixteen, eight or four bits.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "transforms/pass.h"
#include "transforms/pipeline/thread_team.h"
#include "transforms/rewrites/calibration_request.h"
#include "transforms/rewrites/compact_constants.h"
#include "transforms/rewrites/function_bodies.h"
#include "transforms/rewrites/noise_budget.h"
#include "transforms/rewrites/rounded_constants.h"
#include "transforms/rewrites/weight_blocks.h"
#include "transforms/rewrites/weight_channels.h"
#include "transforms/rewrites/weight_codes.h"

namespace permafrost {
namespace {

struct Params {
  int32_t minimum_size = 1024;
  std::vector<std::string> exclude_node;
  std::vector<std::string> exclude_op;
  std::vector<std::string> only_node;
  bool per_channel = false;
  bool symmetric = false;
  int32_t bits = 8;
  std::string mode;
  float max_error = 0;
  float min_output_sqnr = 0;
  int32_t block = 0;
  std::string rounding;
  std::string calibration;
};

// A constant with more elements than this is quantised by all threads together, others by one thread each.
constexpr int64_t kSharedElements = int64_t{1} << 20;
// Four bits take five more nodes, about this many bytes, than eight bits.
constexpr int64_t kMinElementsOfNibbles = 2048;
// A vector of at most this many elements may hold one value per channel; networks have some thousands of channels.
constexpr int64_t kMaxChannels = 8192;

struct Job {
  Node* node;
  Tensor tensor;
  CodeFormat format;
  int channel_dim = -1;  // The dimension of format.channels; -1 if there is one range.
  int packed_dim = -1;   // For 4 bits, the dimension that is halved.
  CodedTensor coded;
  std::optional<WeightBlocks> blocks;  // Of the codes; `coded` is then unused.
  BlockCodes block_codes;
  const RoundedConstant* rounded = nullptr;  // The line of the calibration file with the codes, or null.
  absl::Status status;                       // FailedPrecondition: the reason why it stays float.
};

absl::StatusOr<Tensor> Decoded(const Job& job) {
  if (job.blocks.has_value()) return DecodeBlocks(job.block_codes, *job.blocks, job.tensor.shape());
  return Decode(job.coded, job.format);
}

// Takes codes from a line of a calibration file if they fit the constant: there is a range for each channel or block.
bool TakeRounded(const RoundedConstant& rounded, Job* job) {
  const Shape& shape = job->tensor.shape();
  const int64_t ranges =
      job->blocks.has_value() ? job->blocks->channels * job->blocks->count : job->format.channels.count;
  if (static_cast<int64_t>(rounded.codes.size()) != shape.num_elements() ||
      static_cast<int64_t>(rounded.ranges.size()) != ranges) {
    return false;
  }
  std::vector<QInt8> codes(rounded.codes.size());
  for (size_t i = 0; i < codes.size(); ++i) codes[i].value = rounded.codes[i];
  if (job->blocks.has_value()) {
    job->block_codes.codes = Tensor::FromVector(job->blocks->CodesShape(), std::move(codes));
    job->block_codes.scales = rounded.ranges;
  } else {
    job->coded.codes = Tensor::FromVector(shape, std::move(codes));
    job->coded.min = job->coded.max = rounded.ranges;
  }
  job->rounded = &rounded;
  return true;
}

// Returns the last dimension of even length; -1 if there is none.
int EvenDim(const Shape& shape) {
  for (int dim = shape.rank() - 1; dim >= 0; --dim) {
    if (shape.dim(dim) % 2 == 0) return dim;
  }
  return -1;
}

// Returns the channels by which errors are measured: per channel, for a vector per element, otherwise per tensor.
Channels MeasuredChannels(const Shape& shape, const WeightChannels& channels) {
  if (channels.dim >= 0) return ChannelsAlong(shape, channels.dim);
  const int64_t elements = shape.num_elements();
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape.dim(i) == elements && elements <= kMaxChannels) return {elements, 1};
  }
  return {1, 1};
}

// Returns true if bfloat16 ranges save bytes. They save two bytes per channel and cost a Cast, whose name and two
// inputs contain the constant's name.
bool CoarseRangesPay(const Node& node, int64_t channels) {
  constexpr int64_t kBytesOfCast = 100;
  return 2 * channels > kBytesOfCast + 2 * static_cast<int64_t>(node.name().size());
}

absl::StatusOr<CodeFormat> FormatOf(const Params& params) {
  CodeFormat format;
  format.is_symmetric = params.symmetric;
  format.bits = params.bits;
  const bool is_original = !params.per_channel && !params.symmetric && params.bits == 8;
  const std::string mode = !params.mode.empty() ? params.mode : is_original ? "MIN_FIRST" : "SCALED";
  const auto refuse = [&](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat("parameter 'mode' is '", mode, "', ", what));
  };
  if (params.bits != 4 && params.bits != 8 && params.bits != 16) {
    return absl::InvalidArgumentError(absl::StrCat("parameter 'bits' is ", params.bits, ", expected 4, 8 or 16"));
  }
  if (mode == "MIN_FIRST") {
    format.mode = CodeMode::kMinFirst;
    if (params.per_channel) return refuse("which has no ranges per channel, expected SCALED or MIN_COMBINED");
    if (params.bits != 8) return refuse("which supports only bits=8, expected SCALED");
  } else if (mode == "SCALED") {
    format.mode = CodeMode::kScaled;
  } else if (mode == "MIN_COMBINED") {
    format.mode = CodeMode::kMinCombined;
    if (params.bits == 4) return refuse("which supports 8 or 16 bits, expected SCALED");
  } else {
    return refuse("expected MIN_FIRST, SCALED or MIN_COMBINED");
  }
  if (params.block > 0 && (params.bits != 4 || !params.per_channel)) {
    return absl::InvalidArgumentError(
        absl::StrCat("parameter 'block' is ", params.block, ", which needs bits=4 and per_channel=true"));
  }
  if (!params.rounding.empty()) {
    PF_RETURN_IF_ERROR(Annotate(ParseRoundingMethod(params.rounding).status(), "parameter 'rounding'"));
  }
  if (!params.rounding.empty() || !params.calibration.empty()) {
    if (params.bits == 16 || !params.per_channel || format.mode != CodeMode::kScaled) {
      return absl::InvalidArgumentError(
          "parameters 'rounding' and 'calibration' need bits=4 or bits=8, per_channel=true and mode=SCALED");
    }
  }
  return format;
}

// Quantises the constant in the bits of its format.
absl::Status CodeInBits(const Params& params, const RoundedConstants& rounded, ThreadTeam* team, Job* job) {
  const bool is_four = job->format.bits == 4;
  job->blocks = is_four ? FindWeightBlocks(job->tensor.shape(), job->channel_dim, params.block) : std::nullopt;
  job->rounded = nullptr;
  // Blocks end where pairs of codes must not: dimension 0 or 1 of the codes, or the block, is halved.
  if (job->blocks.has_value() && EvenDim(job->blocks->CodesShape()) < 0) job->blocks.reset();
  const RoundedConstant* line = job->format.bits == 16 || job->format.mode != CodeMode::kScaled || job->channel_dim < 0
                                    ? nullptr
                                    : rounded.Find(job->node->name(), job->format.bits, is_four ? params.block : 0);
  if (line != nullptr && TakeRounded(*line, job)) return absl::OkStatus();
  if (job->blocks.has_value()) {
    PF_ASSIGN_OR_RETURN(job->block_codes, EncodeBlocks(job->tensor, *job->blocks, job->format.keep_sums, team));
    return absl::OkStatus();
  }
  PF_ASSIGN_OR_RETURN(job->coded, Encode(job->tensor, job->format, team));
  return absl::OkStatus();
}

// Quantises the constant in as few bits as max_error allows.
void Code(const Params& params, const CodeFormat& format, const RoundedConstants& rounded, ThreadTeam* team, Job* job) {
  const Shape& shape = job->tensor.shape();
  const WeightChannels channels =
      params.per_channel || params.max_error > 0 ? FindWeightChannels(*job->node, shape) : WeightChannels();
  job->format = format;
  if (params.per_channel && channels.dim >= 0) {
    job->channel_dim = channels.dim;
    job->format.channels = ChannelsAlong(shape, channels.dim);
    job->format.keep_sums = channels.is_linear;
    job->format.has_coarse_ranges =
        format.mode == CodeMode::kScaled && CoarseRangesPay(*job->node, job->format.channels.count);
  }
  if (format.bits == 4) {
    job->packed_dim = EvenDim(shape);
    if (job->packed_dim < 0 || shape.num_elements() < kMinElementsOfNibbles) job->format.bits = 8;
  }
  double error = 0;
  while (true) {
    job->status = CodeInBits(params, rounded, team, job);
    if (!job->status.ok() || params.max_error == 0) return;
    const absl::StatusOr<Tensor> decoded = Decoded(*job);
    job->status = decoded.status();
    if (!decoded.ok()) return;
    error = CodingError(job->tensor, *decoded, MeasuredChannels(shape, channels));
    if (error <= params.max_error) return;
    if (job->format.bits == 16 || job->format.mode == CodeMode::kMinFirst) break;
    job->format.bits *= 2;
  }
  job->coded = {};
  job->blocks.reset();
  job->rounded = nullptr;
  job->status = absl::FailedPreconditionError(absl::StrCat(
      "its error in ", job->format.bits, " bits is ", error, " of its size, more than max_error=", params.max_error,
      job->format.mode == CodeMode::kMinFirst ? "; per_channel=true or mode=SCALED allow 16" : ""));
}

// Maximum number of measurements in the search for constants that need more bits. Halving finds ten among a hundred.
constexpr int kMaxMeasurements = 64;

// Measures the outputs with dequantised constants. Gives constants more bits until each output has the required SQNR:
// sixteen bits if the format supports them, otherwise float.
class OutputKeeper {
 public:
  OutputKeeper(const Graph& graph, const Params& params, PassContext* context, ThreadTeam* team, std::vector<Job>* jobs)
      : graph_(graph), params_(params), context_(context), team_(team) {
    for (Job& job : *jobs) {
      if (job.status.ok() && job.format.bits < 16) coded_.push_back(&job);
    }
    decoded_.resize(coded_.size());
  }

  absl::Status Run() {
    if (context_->measure_outputs == nullptr) {
      context_->Note("the outputs were not measured: min_output_sqnr has no effect here");
      return absl::OkStatus();
    }
    const absl::StatusOr<NoiseChoice> choice = ChooseWithinNoise(
        coded_.size(), [this](const std::vector<bool>& applied) { return Noise(applied); }, kMaxMeasurements);
    if (!choice.ok()) {
      if (absl::IsCancelled(choice.status())) return choice.status();
      context_->Note(absl::StrCat("the outputs could not be measured, min_output_sqnr has no effect: ",
                                  choice.status().message()));
      return absl::OkStatus();
    }
    if (!choice->is_within) {
      context_->Note(absl::StrCat("an output has less than min_output_sqnr=", params_.min_output_sqnr,
                                  " dB before any constant is coded: see the passes before this one"));
      return absl::OkStatus();
    }
    int64_t in_sixteen = 0, in_float = 0;
    for (size_t i = 0; i < coded_.size(); ++i) {
      if (choice->applied[i]) continue;
      Widen(coded_[i]);
      ++(coded_[i]->status.ok() ? in_sixteen : in_float);
    }
    if (coded_.empty() || in_sixteen + in_float == 0) return absl::OkStatus();
    context_->Note(absl::StrCat("so that each output keeps an SQNR of ", params_.min_output_sqnr, " dB, ", in_sixteen,
                                " constants take sixteen bits and ", in_float, " stay in float (",
                                choice->num_measurements, " measurements)"));
    return absl::OkStatus();
  }

 private:
  // Returns the largest noise power of all outputs, relative to the allowed power.
  absl::StatusOr<double> Noise(const std::vector<bool>& applied) {
    const std::unique_ptr<Graph> graph = graph_.Clone();
    for (size_t i = 0; i < coded_.size(); ++i) {
      if (!applied[i]) continue;
      if (!decoded_[i].has_value()) {
        PF_ASSIGN_OR_RETURN(decoded_[i], Decoded(*coded_[i]));
      }
      graph->Find(coded_[i]->node->name())->SetAttr("value", AttrValue::OfTensor(*decoded_[i]));
    }
    PF_ASSIGN_OR_RETURN(const std::vector<double> sqnr, context_->measure_outputs(*graph));
    double most = 0;
    for (const double db : sqnr) most = std::max(most, std::pow(10, (params_.min_output_sqnr - db) / 10));
    return most;
  }

  void Widen(Job* job) const {
    job->coded = {};
    job->blocks.reset();
    job->rounded = nullptr;
    if (job->format.mode != CodeMode::kMinFirst) {
      job->format.bits = 16;
      absl::StatusOr<CodedTensor> coded = Encode(job->tensor, job->format, team_);
      job->status = coded.status();
      if (coded.ok()) job->coded = *std::move(coded);
      return;
    }
    job->status = absl::FailedPreconditionError(
        absl::StrCat("an output would fall below min_output_sqnr=", params_.min_output_sqnr,
                     "; per_channel=true or mode=SCALED allow sixteen bits"));
  }

  const Graph& graph_;
  const Params& params_;
  PassContext* context_;
  ThreadTeam* team_;
  std::vector<Job*> coded_;
  std::vector<std::optional<Tensor>> decoded_;  // By index in coded_; computed on first use.
};

// Adds the nodes that replace constants.
class Builder {
 public:
  explicit Builder(Graph* graph) : graph_(graph) {}

  // Turns the constant's node into the Dequantize.
  absl::Status Replace(Job* job) {
    Node* node = job->node;
    if (job->format.mode == CodeMode::kMinFirst) {
      PF_ASSIGN_OR_RETURN(Node * codes, AddCompanion(graph_, node, "_quantized_const", std::move(job->coded.codes)));
      PF_ASSIGN_OR_RETURN(Node * min, AddCompanion(graph_, node, "_quantized_min", Tensor::Scalar(job->coded.min[0])));
      PF_ASSIGN_OR_RETURN(Node * max, AddCompanion(graph_, node, "_quantized_max", Tensor::Scalar(job->coded.max[0])));
      TurnInto(graph_, node, ops::kDequantize, {codes, min, max});
      node->SetAttr("T", AttrValue::Type(DType::kQUint8));
      node->SetAttr("mode", AttrValue::String("MIN_FIRST"));
      return absl::OkStatus();
    }
    if (job->blocks.has_value()) return ReplaceByBlocks(job);
    const DType type = job->coded.codes.dtype();
    Node* codes = nullptr;
    if (job->format.bits == 4) {
      PF_ASSIGN_OR_RETURN(Node * joined, AddNibbles(job->node, job->coded.codes, job->packed_dim));
      PF_ASSIGN_OR_RETURN(codes,
                          AddOp(job->node, "/codes", ops::kBitcast, {joined},
                                {{"T", AttrValue::Type(DType::kInt8)}, {"type", AttrValue::Type(DType::kQInt8)}}));
    } else {
      PF_ASSIGN_OR_RETURN(codes, AddCompanion(graph_, node, "/codes", std::move(job->coded.codes)));
    }
    const bool is_scaled = job->format.mode == CodeMode::kScaled;
    PF_ASSIGN_OR_RETURN(Node * max, AddRange(job, is_scaled ? "/range" : "/max", std::move(job->coded.max)));
    Node* min = max;
    if (!is_scaled) {
      PF_ASSIGN_OR_RETURN(min, AddRange(job, "/min", std::move(job->coded.min)));
    }
    TurnInto(graph_, node, ops::kDequantize, {codes, min, max});
    node->SetAttr("T", AttrValue::Type(type));
    node->SetAttr("mode", AttrValue::String(is_scaled ? "SCALED" : "MIN_COMBINED"));
    if (job->channel_dim >= 0) node->SetAttr("axis", AttrValue::Int(job->channel_dim));
    return absl::OkStatus();
  }

 private:
  absl::StatusOr<Node*> AddRange(Job* job, absl::string_view suffix, std::vector<float> values) {
    if (job->channel_dim < 0) return AddCompanion(graph_, job->node, suffix, Tensor::Scalar(values[0]));
    const auto count = static_cast<int64_t>(values.size());
    if (!job->format.has_coarse_ranges) {
      return AddCompanion(graph_, job->node, suffix, Tensor::FromVector(Shape({count}), std::move(values)));
    }
    BFloat16* coarse = nullptr;
    PF_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Allocate<BFloat16>(Shape({count}), &coarse));
    for (int64_t i = 0; i < count; ++i) coarse[i] = ToBFloat16(values[i]);
    PF_ASSIGN_OR_RETURN(Node * constant, AddCompanion(graph_, job->node, "/range16", std::move(tensor)));
    return AddOp(job->node, suffix, ops::kCast, {constant},
                 {{"SrcT", AttrValue::Type(DType::kBFloat16)}, {"DstT", AttrValue::Type(DType::kFloat)}});
  }

  // Shifts and masks move the codes into the high bits of int8, which gives their sign and sixteen times their value.
  absl::StatusOr<Node*> AddNibbles(Node* node, const Tensor& codes, int packed_dim) {
    PF_ASSIGN_OR_RETURN(Tensor packed, PackNibbles(codes, packed_dim));
    PF_ASSIGN_OR_RETURN(Node * both, AddCompanion(graph_, node, "/packed", std::move(packed)));
    PF_ASSIGN_OR_RETURN(Node * shift, Shared(node, "/shift", Tensor::Scalar<int8_t>(4)));
    PF_ASSIGN_OR_RETURN(Node * mask, Shared(node, "/mask", Tensor::Scalar<int8_t>(-16)));
    PF_ASSIGN_OR_RETURN(Node * dim,
                        Shared(node, absl::StrCat("/axis", packed_dim), Tensor::Scalar<int32_t>(packed_dim)));
    const std::vector<Attr> attrs = {{"T", AttrValue::Type(DType::kInt8)}};
    PF_ASSIGN_OR_RETURN(Node * low, AddOp(node, "/low", ops::kLeftShift, {both, shift}, attrs));
    PF_ASSIGN_OR_RETURN(Node * high, AddOp(node, "/high", ops::kBitwiseAnd, {both, mask}, attrs));
    return AddOp(
        node, "/joined", ops::kConcatV2, {low, high, dim},
        {{"N", AttrValue::Int(2)}, {"T", AttrValue::Type(DType::kInt8)}, {"Tidx", AttrValue::Type(DType::kInt32)}});
  }

  // Turns the constant's node into the Reshape of the numbers of all blocks: see weight_blocks.h.
  absl::Status ReplaceByBlocks(Job* job) {
    constexpr float kNibble = 16;
    Node* node = job->node;
    const WeightBlocks& blocks = *job->blocks;
    PF_ASSIGN_OR_RETURN(Node * joined, AddNibbles(node, job->block_codes.codes, EvenDim(blocks.CodesShape())));
    const auto cast = [&](Node* from, absl::string_view suffix, DType type) {
      return AddOp(node, suffix, ops::kCast, {from},
                   {{"SrcT", AttrValue::Type(type)}, {"DstT", AttrValue::Type(DType::kFloat)}});
    };
    PF_ASSIGN_OR_RETURN(Node * numbers, cast(joined, "/numbers", DType::kInt8));
    BFloat16* coarse = nullptr;
    PF_ASSIGN_OR_RETURN(Tensor scales, Tensor::Allocate<BFloat16>(blocks.ScalesShape(), &coarse));
    for (size_t i = 0; i < job->block_codes.scales.size(); ++i) {
      coarse[i] = ToBFloat16(job->block_codes.scales[i] / kNibble);
    }
    PF_ASSIGN_OR_RETURN(Node * half, AddCompanion(graph_, node, "/scales16", std::move(scales)));
    PF_ASSIGN_OR_RETURN(Node * scale, cast(half, "/scales", DType::kBFloat16));
    PF_ASSIGN_OR_RETURN(Node * scaled,
                        AddOp(node, "/scaled", ops::kMul, {numbers, scale}, {{"T", AttrValue::Type(DType::kFloat)}}));
    const Shape& shape = job->tensor.shape();
    std::vector<int32_t> dims;
    for (int i = 0; i < shape.rank(); ++i) dims.push_back(static_cast<int32_t>(shape.dim(i)));
    PF_ASSIGN_OR_RETURN(Node * target, AddCompanion(graph_, node, "/shape",
                                                    Tensor::FromVector(Shape({shape.rank()}), std::move(dims))));
    TurnInto(graph_, node, ops::kReshape, {scaled, target});
    node->SetAttr("T", AttrValue::Type(DType::kFloat));
    node->SetAttr("Tshape", AttrValue::Type(DType::kInt32));
    return absl::OkStatus();
  }

  absl::StatusOr<Node*> AddOp(Node* node, absl::string_view suffix, Op op, const std::vector<Node*>& inputs,
                              const std::vector<Attr>& attrs) {
    PF_ASSIGN_OR_RETURN(Node * made, graph_->AddNode(graph_->UniqueName(absl::StrCat(node->name(), suffix)), op, node));
    made->set_device(node->device());
    for (Node* input : inputs) graph_->AddInput(made, {input, 0});
    for (const Attr& attr : attrs) made->SetAttr(attr.key, attr.value);
    return made;
  }

  // Returns a constant shared by all nodes on a device; a node in a loop has its own.
  absl::StatusOr<Node*> Shared(Node* node, absl::string_view suffix, Tensor value) {
    if (node->num_inputs() > 0) return AddCompanion(graph_, node, suffix, std::move(value));
    Node*& shared = shared_[absl::StrCat(node->device(), suffix)];
    if (shared == nullptr) {
      PF_ASSIGN_OR_RETURN(shared, graph_->AddConst(graph_->UniqueName(absl::StrCat("quantize_weights", suffix)),
                                                   std::move(value), node));
      shared->set_device(node->device());
    }
    return shared;
  }

  Graph* graph_;
  absl::flat_hash_map<std::string, Node*> shared_;
};

// Adds the corrections of a rounded constant to the bias behind its operator, if that is a constant of its own.
absl::Status CorrectBias(Graph* graph, const RoundedConstant& rounded) {
  Node* bias = rounded.bias.empty() ? nullptr : graph->Find(rounded.bias);
  if (bias == nullptr || bias->op() != ops::kConst || graph->IsEndpoint(bias) || bias->uses().size() != 1) {
    return absl::OkStatus();
  }
  const absl::StatusOr<Tensor> value = ConstValue(*bias);
  if (!value.ok() || value->dtype() != DType::kFloat ||
      value->num_elements() != static_cast<int64_t>(rounded.corrections.size())) {
    return absl::OkStatus();
  }
  const UnalignedSpan<float> elements = value->elements<float>();
  std::vector<float> corrected(elements.size());
  for (size_t i = 0; i < corrected.size(); ++i) corrected[i] = elements[i] + rounded.corrections[i];
  bias->SetAttr("value", AttrValue::OfTensor(Tensor::FromVector(value->shape(), std::move(corrected))));
  return absl::OkStatus();
}

// Returns the codes of the calibration file, or of runs on inputs.
absl::StatusOr<RoundedConstants> Rounded(const Params& params, PassContext* context) {
  if (params.rounding.empty() && params.calibration.empty()) return RoundedConstants();
  CalibrationRequest request;
  request.bits = params.bits;
  request.block = params.bits == 4 ? params.block : 0;
  request.rounding = params.rounding;
  PF_ASSIGN_OR_RETURN(const std::string text,
                      ReadCalibration(params.calibration, request, "constants are rounded without inputs", context));
  if (text.empty() && params.calibration.empty()) return RoundedConstants();
  absl::StatusOr<RoundedConstants> parsed = RoundedConstants::Parse(text);
  if (!params.calibration.empty()) PF_RETURN_IF_ERROR(Annotate(parsed.status(), params.calibration));
  return parsed;
}

absl::StatusOr<int64_t> QuantizeIn(Graph* graph, const Params& params, const CodeFormat& format,
                                   const RoundedConstants& rounded, PassContext* context) {
  PF_ASSIGN_OR_RETURN(
      const std::vector<Node*> nodes,
      SelectConstants(graph, {params.minimum_size, params.exclude_node, params.exclude_op, params.only_node}, context));
  std::vector<Job> jobs(nodes.size());
  std::vector<Job*> large, small;
  for (size_t i = 0; i < nodes.size(); ++i) {
    jobs[i].node = nodes[i];
    PF_ASSIGN_OR_RETURN(jobs[i].tensor, ConstValue(*nodes[i]));
    (jobs[i].tensor.num_elements() > kSharedElements ? large : small).push_back(&jobs[i]);
  }
  ThreadTeam team(context->num_threads);
  for (Job* job : large) Code(params, format, rounded, &team, job);
  team.ForEach(small.size(), [&](size_t i) {
    ThreadTeam alone(1);
    Code(params, format, rounded, &alone, small[i]);
  });
  if (params.min_output_sqnr > 0) PF_RETURN_IF_ERROR(OutputKeeper(*graph, params, context, &team, &jobs).Run());
  int64_t rewrites = 0, num_rounded = 0;
  uint64_t bytes = 0;
  absl::flat_hash_map<int, int64_t> count_by_bits;
  Builder builder(graph);
  ConstantNotes notes(context);
  for (Job& job : jobs) {
    if (absl::IsFailedPrecondition(job.status)) {
      notes.Kept(*job.node, job.status.message());
      continue;
    }
    PF_RETURN_IF_ERROR(Annotate(job.status, job.node->Describe()));
    const RewriteScope rewrite(context, graph, {job.node});
    if (!rewrite) continue;
    bytes += job.tensor.bytes().size();
    ++count_by_bits[job.format.bits];
    const RoundedConstant* line = job.rounded;
    num_rounded += line == nullptr ? 0 : 1;
    PF_RETURN_IF_ERROR(builder.Replace(&job));
    if (line != nullptr) PF_RETURN_IF_ERROR(CorrectBias(graph, *line));
    ++rewrites;
  }
  notes.Finish();
  if (rewrites > 0) {
    std::string text;
    for (const auto& [bits, name] : {std::pair(4, "four"), std::pair(8, "eight"), std::pair(16, "sixteen")}) {
      const int64_t count = count_by_bits[bits];
      if (count > 0)
        absl::StrAppend(&text, text.empty() ? "" : ", ", count == rewrites ? "" : absl::StrCat(count, " in "), name);
    }
    context->Note(absl::StrCat("stored ", rewrites, " constants of ", bytes, " bytes in ", text, " bits",
                               num_rounded > 0 ? absl::StrCat(", ", num_rounded, " of them rounded by inputs") : ""));
  }
  return rewrites;
}

// Notes if an output is below min_output_sqnr after quantising the bodies of functions as well.
void NoteNoiseOfBodies(const Graph& graph, const Params& params, PassContext* context) {
  if (context->measure_outputs == nullptr) return;
  const absl::StatusOr<std::vector<double>> sqnr = context->measure_outputs(graph);
  if (!sqnr.ok() || sqnr->empty()) return;
  const double least = *std::min_element(sqnr->begin(), sqnr->end());
  if (least >= params.min_output_sqnr) return;
  context->Note(absl::StrCat("with the constants in functions an output has ", least, " dB, less than min_output_sqnr=",
                             params.min_output_sqnr, "; run inline_partitionedcall first"));
}

absl::StatusOr<int64_t> Quantize(Graph* graph, const Params& params, PassContext* context) {
  PF_ASSIGN_OR_RETURN(const CodeFormat format, FormatOf(params));
  PF_ASSIGN_OR_RETURN(const RoundedConstants rounded, Rounded(params, context));
  PF_ASSIGN_OR_RETURN(const int64_t in_graph, QuantizeIn(graph, params, format, rounded, context));
  // A body cannot be run by itself, so its constants are quantised without individual measurements.
  Params in_function = params;
  in_function.min_output_sqnr = 0;
  PF_ASSIGN_OR_RETURN(const int64_t in_bodies, EditFunctionBodies(graph, context, [&](Graph* body) {
                        return QuantizeIn(body, in_function, format, RoundedConstants(), context);
                      }));
  if (in_bodies > 0 && params.min_output_sqnr > 0) NoteNoiseOfBodies(*graph, params, context);
  return in_graph + in_bodies;
}

}  // namespace

// Stores each large float constant with one byte per element, and decodes it when the model is loaded.
//
//   Const n (float)   =>   Dequantize n (MIN_FIRST) of Const n_quantized_const (quint8), n_quantized_min,
//   n_quantized_max
//
// Constants in the bodies of functions that the graph may call are quantised as well.
//
// One range per tensor is too coarse if the channels differ in magnitude, as in depthwise convolutions.
// per_channel=true uses one range per output channel, and rounds such that the sum of the weights of each channel is
// preserved, which halves the loss of accuracy of deep networks:
//
//   Const n (float)   =>   Dequantize n (SCALED, axis) of Const n/codes (qint8), n/range, n/range
//
// max_error limits the error of each constant: a constant that exceeds it gets twice as many bits, up to 16, and
// otherwise stays in float; a note reports it. The error of a channel is the RMS of the errors relative to the RMS of
// its values. The error of a constant is the RMS over its channels; a vector is measured per element. Typical weights
// have an error of 0.01 with eight bits per channel and 0.15 with four. Ranges of many channels are stored as bfloat16,
// rounded up, followed by a Cast.
//
// min_output_sqnr runs the graph on the inputs used for verification and measures the signal-to-quantisation-noise
// ratio of each output. Constants whose codes add the most noise get sixteen bits, or stay in float in the mode
// MIN_FIRST, until each output reaches the given ratio.
//
// bits=4 packs two codes into each byte. LeftShift, BitwiseAnd, ConcatV2 and Bitcast unpack them, because TensorFlow
// cannot decode fewer than eight bits. Constants without a dimension of even length, or with fewer than 2048 elements,
// use eight bits. TensorFlow supports per-channel ranges for SCALED and MIN_COMBINED (ranges that need not be symmetric
// and take twice the space), but not for MIN_FIRST.
//
// block=32, 64 or 128 gives a scale to each block of about that many weights of a channel, which reduces the error of
// four bits by 10 to 33 %. TensorFlow has no such form of Dequantize, so that scales are multiplied (weight_blocks.h):
//
//   Const n (float)   =>   Reshape n (Mul (Cast of the unpacked codes, scales))
//
// rounding chooses the codes of weights of convolutions and matrix products by what they do to the results on inputs,
// for which --verify_inputs are used. nearest takes ranges with the least error; gptq compensates in the remaining
// weights for the error so far (Frantar et al. 2022, arXiv:2210.17323); adaround chooses between the two next codes
// (Nagel et al. 2020, arXiv:2004.10568) by coordinate descent on the error of the results; descent continues so from
// gptq and allows all codes. Each corrects the biases behind the operators by the mean error (Nagel et al. 2019,
// arXiv:1906.04721). sequential does what descent does for one layer of operators after the other, with the inputs that
// they have in the coded model so far, for whose errors weights and biases make up. The result then depends on the
// inputs: --write_calibration writes the codes, and calibration applies them elsewhere.
//
// Leaves a constant unchanged if it has fewer than minimum_size elements, has another type, holds NaN or infinity, has
// a range that float cannot divide into steps, exceeds the error limits, is excluded, or is fed. Run fold_constants
// before this pass; running it afterwards undoes the quantisation.
DEFINE_PASS(quantize_weights) {
  return Pass<Params>("Stores large float constants in eight bits, a quarter of their size, or in four bits.")
      .Why(
          "Weights make up most of a file: the download shrinks to a quarter, at an error that rarely affects "
          "accuracy.")
      .Param("minimum_size", &Params::minimum_size, kMinimumSizeHelp, AtLeast(0))
      .Param("exclude_node", &Params::exclude_node, kExcludeNodeHelp)
      .Param("exclude_op", &Params::exclude_op, kExcludeOpHelp)
      .Param("only_node", &Params::only_node, kOnlyNodeHelp)
      .Param("per_channel", &Params::per_channel, "Use one range per output channel instead of one per tensor.")
      .Param("symmetric", &Params::symmetric, "Use a range that is symmetric around zero.")
      .Param("bits", &Params::bits, "Number of bits of a code: 4, 8 or 16.", Between(4, 16))
      .Param("mode", &Params::mode,
             "Mode of the Dequantize ops: MIN_FIRST, SCALED or MIN_COMBINED. Default: MIN_FIRST, or SCALED if "
             "per_channel, symmetric or bits is given.")
      .Param("max_error", &Params::max_error, "Maximum relative error of a constant; 0: no limit.", AtLeast(0))
      .Param("min_output_sqnr", &Params::min_output_sqnr,
             "Minimum SQNR in dB of each output of the graph, measured by running it; 0: no limit.", AtLeast(0))
      .Param("block", &Params::block,
             "With bits=4 and per_channel, number of weights of a channel with one scale; 0: all of them.",
             Between(0, 4096))
      .Param("rounding", &Params::rounding,
             "How inputs choose the codes of weights: nearest, gptq, adaround, descent or sequential. Default: without "
             "inputs.")
      .Param("calibration", &Params::calibration,
             "Path of a calibration file with codes, which transform_graph --write_calibration writes.")
      .Numerics(Changes("weights keep few bits"))
      .Idempotent()
      .Run(Quantize);
}

}  // namespace permafrost
