// Implements the choice of ranges and layers by measurement.
#include "tools/transform/tflite_quantization.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "graph/analysis/uniform_quantization.h"
#include "graph/base/status.h"
#include "graph/ops/op_schema.h"
#include "graph/shapes/shape_inference.h"
#include "runtime_check/checking/evaluate.h"
#include "runtime_check/checking/output_quality.h"
#include "runtime_check/precision/value_range.h"
#include "tools/transform/calibration.h"
#include "tools/transform/tensor_ranges.h"
#include "tools/transform/weight_rounding.h"
#include "transforms/pipeline/pipeline.h"
#include "transforms/rewrites/noise_budget.h"
#include "transforms/rewrites/quantizable_operators.h"

namespace permafrost {
namespace {

constexpr absl::string_view kPass = "quantize_for_tflite";
constexpr char kCalibrationFile[] = "the calibration";
// Measurements of a choice of layers. Each builds and runs the model.
constexpr int kMostMeasurements = 40;
// SQNRs above this count as this when methods are compared, so that an output that is nearly exact does not decide.
constexpr double kMostSqnr = 80;

// The noise, where 1 is the most that is allowed, of an output that is ruined by other measures than its SQNR.
constexpr double kNoiseOfRuined = 1.5;

// A choice replaces an earlier one, which depends less on the inputs, if its error is at most this part. With 0.95,
// equalised channels were taken for selfie, with half the error on one input and twice on another.
constexpr double kClearlyBetter = 0.9;

// Nothing further is tried if the mean of the outputs' relative rms errors is at most this. What is beyond needs more
// work than the conversion itself.
constexpr double kGoodEnough = 0.01;

class Chooser {
 public:
  Chooser(const Graph& prepared, const std::vector<InputSet>& inputs, const Verifier& verifier,
          const SessionOptions& options, const TfliteQuantization& quantization)
      : prepared_(prepared), inputs_(inputs), verifier_(verifier), options_(options), quantization_(quantization) {}

  absl::StatusOr<QuantizedModel> Run() {
    QuantizedModel result;
    const bool can_measure = verifier_.why_not().empty();
    if (!can_measure) result.notes.push_back(absl::StrCat("layers were not measured: ", verifier_.why_not()));
    double least = std::numeric_limits<double>::infinity();
    std::vector<std::unique_ptr<Candidates>> all;
    for (const std::string& call : EqualizationCalls(can_measure)) {
      if (least <= kGoodEnough) break;
      PF_ASSIGN_OR_RETURN(std::unique_ptr<Candidates> candidates, Prepare(call));
      if (candidates == nullptr) continue;
      PF_RETURN_IF_ERROR(Measure(candidates.get(), can_measure, Roundings(result), &least, &result));
      all.push_back(std::move(candidates));
    }
    if (quantization_.rounding == "auto" && can_measure) {
      // It takes the most time, and comes last. Equalised channels may be better with it although they were not
      // without.
      for (const std::unique_ptr<Candidates>& candidates : all) {
        if (least <= kGoodEnough) break;
        if (candidates->replaces_relu6 && candidates.get() != chosen_) continue;
        PF_RETURN_IF_ERROR(Measure(candidates.get(), can_measure, {"sequential"}, &least, &result));
      }
    }
    if (chosen_ != nullptr) result.equalized = std::move(chosen_->equalized);
    graph_ = result.equalized != nullptr ? result.equalized.get() : &prepared_;
    ranges_ = result.ranges;
    if (can_measure && quantization_.min_sqnr_db >= 0) {
      PF_ASSIGN_OR_RETURN(result.kept_float, Choose(&result.notes));
    }
    if (result.kept_float.empty() && quantization_.io_type == "float" && best_.graph != nullptr) {
      result.graph = std::move(best_.graph);
      return result;
    }
    best_.graph = nullptr;
    PF_ASSIGN_OR_RETURN(result.graph, Quantized(result.kept_float, quantization_.io_type));
    return result;
  }

 private:
  // A float graph and what is known of its activations.
  struct Candidates {
    const Graph* graph = nullptr;
    std::unique_ptr<Graph> equalized;
    std::string call;
    bool replaces_relu6 = false;
    std::string channels;  // Lines that the call reads.
    std::vector<TensorRange> ranges;
  };

  bool HasRanges() const { return quantization_.mode == "int8" || quantization_.mode == "int16x8"; }

  // Returns the passes that equalise channels, to be compared; the empty text stands for none.
  std::vector<std::string> EqualizationCalls(bool can_measure) const {
    const std::string& wanted = quantization_.equalization;
    const auto call = [](absl::string_view by, absl::string_view relu6) {
      return absl::StrCat("equalize_channels(by=", by, ", relu6=", relu6, ")");
    };
    if (wanted == "none" || (wanted == "auto" && (!can_measure || quantization_.mode != "int8"))) return {""};
    if (wanted != "auto") return {call(wanted, wanted == "weights" ? "relu" : "keep")};
    return {"", call("activations", "keep"), call("activations", "relu")};
  }

  // Equalises the channels, and finds ranges. Null if the pass changes nothing.
  absl::StatusOr<std::unique_ptr<Candidates>> Prepare(const std::string& call) const {
    auto result = std::make_unique<Candidates>();
    Candidates& candidates = *result;
    candidates.call = call;
    candidates.replaces_relu6 = absl::StrContains(call, "relu6=relu");
    candidates.graph = &prepared_;
    if (!call.empty()) {
      candidates.equalized = prepared_.Clone();
      PF_ASSIGN_OR_RETURN(const std::vector<PassCall> calls, ParseTransforms(call));
      PassContext context;
      context.num_threads = quantization_.num_threads;
      // The pass asks for the ranges of channels.
      context.read_file = [&](absl::string_view) -> absl::StatusOr<std::string> {
        PF_ASSIGN_OR_RETURN(candidates.channels, ChannelRangesText(prepared_, inputs_, options_));
        return candidates.channels;
      };
      PF_ASSIGN_OR_RETURN(const std::vector<PassReport> reports, RunPipeline(&candidates.equalized, calls, &context));
      for (const PassReport& report : reports) {
        if (report.rewrites == 0 && quantization_.equalization == "auto") return std::unique_ptr<Candidates>();
      }
      candidates.graph = candidates.equalized.get();
    }
    if (HasRanges()) {
      absl::StatusOr<std::vector<TensorRange>> ranges = FindTensorRanges(*candidates.graph, inputs_, options_);
      PF_RETURN_IF_ERROR(ranges.status());
      candidates.ranges = *std::move(ranges);
      PF_RETURN_IF_ERROR(Override(&candidates.ranges));
    }
    return result;
  }

  // Returns the lines of rounded weights for the graph that is quantised. Empty for "none". `ranges` are the lines of
  // ranges.
  absl::StatusOr<std::string> WeightsText(const std::string& rounding, const std::string& ranges) {
    if (rounding == "none") return std::string();
    WeightRoundingSettings settings;
    settings.mode = quantization_.mode;
    settings.num_threads = quantization_.num_threads;
    PF_ASSIGN_OR_RETURN(settings.method, ParseRoundingMethod(rounding));
    if (settings.method != RoundingMethod::kSequential) {
      return RoundedWeightsText(*graph_, inputs_, options_, settings);
    }
    return WeightsRoundedInSequence(*graph_, inputs_, options_, settings, [&](const std::string& lines) {
      ranges_ = ranges + lines;
      return Quantized({}, "float");
    });
  }

  // Returns the roundings to be compared, after those that led to `result`.
  std::vector<std::string> Roundings(const QuantizedModel& result) const {
    if (quantization_.rounding != "auto") return {quantization_.rounding};
    // Equalised channels are compared with the best choice without them.
    if (!result.rounding.empty()) return {result.rounding};
    return {"nearest", "descent", "none"};
  }

  // Quantises by each combination of ranges and rounding, and keeps the one with the smallest error in `result` and
  // chosen_.
  absl::Status Measure(Candidates* candidates, bool can_measure, const std::vector<std::string>& roundings,
                       double* least, QuantizedModel* result) {
    graph_ = candidates->graph;
    std::vector<std::string> methods = {""};
    if (HasRanges()) {
      methods = {"minmax", "percentile99.99", "mse"};
      if (quantization_.mode == "int16x8") methods = {"minmax"};
      if (quantization_.ranges != "auto") methods = {quantization_.ranges};
    }
    if (!result->rounding.empty() && HasRanges()) methods = {result->range_method};
    for (const std::string& rounding : roundings) {
      std::string weights;
      for (const std::string& method : methods) {
        std::string ranges;
        if (!method.empty()) {
          PF_ASSIGN_OR_RETURN(const RangeMethod range_method, RangeMethodOf(method));
          ranges = RangesText(candidates->ranges, range_method);
        }
        // Codes depend on ranges only if they are chosen in the quantised model.
        if (weights.empty() || rounding == "sequential") {
          PF_ASSIGN_OR_RETURN(weights, WeightsText(rounding, ranges));
        }
        ranges_ = absl::StrCat(ranges, weights);
        double error = std::numeric_limits<double>::max();
        Trial trial;
        if (can_measure) {
          PF_ASSIGN_OR_RETURN(trial, Try({}));
          error = ErrorOf(trial.verdict);
        }
        // Few inputs show small differences by chance. So the first choice stays unless another one is clearly better.
        const bool is_first = result->rounding.empty();
        if (!(error < kClearlyBetter * *least) && !is_first) continue;
        *least = std::isnan(error) ? std::numeric_limits<double>::infinity() : error;
        chosen_ = candidates;
        best_ = std::move(trial);
        result->ranges = candidates->call.empty() ? ranges_ : candidates->channels + ranges_;
        result->range_method = method;
        result->rounding = rounding;
        result->equalization = candidates->call;
        if (*least <= kGoodEnough) break;
      }
      if (*least <= kGoodEnough) break;
    }
    return absl::OkStatus();
  }

  absl::Status Override(std::vector<TensorRange>* ranges) const {
    for (const std::string& text : quantization_.tensor_ranges) {
      const size_t equals = text.rfind('=');
      const std::vector<std::string> bounds =
          equals == std::string::npos ? std::vector<std::string>()
                                      : std::vector<std::string>(absl::StrSplit(text.substr(equals + 1), ':'));
      TensorRange range;
      double low = 0, high = 0;
      range.tensor = text.substr(0, std::min(equals, text.size()));
      if (bounds.size() != 2 || !absl::SimpleAtod(bounds[0], &low) || !absl::SimpleAtod(bounds[1], &high) ||
          !std::isfinite(low) || !std::isfinite(high) || low > high) {
        return absl::InvalidArgumentError(
            absl::StrCat("--tensor_ranges: found '", text, "', expected TENSOR=LOW:HIGH with LOW <= HIGH"));
      }
      for (const std::string& name : RangeMethodNames()) {
        PF_ASSIGN_OR_RETURN(const RangeMethod method, RangeMethodOf(name));
        range.ranges[method] = {low, high};
      }
      const auto found = std::find_if(ranges->begin(), ranges->end(),
                                      [&](const TensorRange& each) { return each.tensor == range.tensor; });
      if (found == ranges->end()) {
        return absl::InvalidArgumentError(
            absl::StrCat("--tensor_ranges: no quantised tensor has the name '", range.tensor,
                         "'; the names are those after prepare_for_tflite, as --write_calibration lists them"));
      }
      *found = std::move(range);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::unique_ptr<Graph>> Quantized(const std::vector<std::string>& kept, absl::string_view io) const {
    std::unique_ptr<Graph> graph = graph_->Clone();
    const KernelEvaluator evaluator;
    PassContext context;
    context.evaluator = &evaluator;
    context.num_threads = quantization_.num_threads;
    context.read_file = [this](absl::string_view) -> absl::StatusOr<std::string> { return ranges_; };
    PassCall call;
    call.name = std::string(kPass);
    call.arguments.push_back({"mode", quantization_.mode});
    if (!ranges_.empty()) call.arguments.push_back({"calibration", kCalibrationFile});
    if (io != "float") call.arguments.push_back({"io_type", std::string(io)});
    for (const std::string& name : quantization_.keep_float) call.arguments.push_back({"keep_float", name});
    for (const std::string& name : kept) call.arguments.push_back({"keep_float", name});
    PF_RETURN_IF_ERROR(RunPipeline(&graph, {call}, &context).status());
    return graph;
  }

  // A quantised graph with its measured outputs.
  struct Trial {
    std::unique_ptr<Graph> graph;
    Verdict verdict;
  };

  absl::StatusOr<Trial> Try(const std::vector<std::string>& kept) const {
    Trial trial;
    PF_ASSIGN_OR_RETURN(trial.graph, Quantized(kept, "float"));
    PF_ASSIGN_OR_RETURN(trial.verdict, verifier_.Check(*trial.graph));
    if (!trial.verdict.was_run) return absl::FailedPreconditionError(trial.verdict.why_not);
    return trial;
  }

  // Returns the mean of the outputs' relative rms errors.
  static double ErrorOf(const Verdict& verdict) {
    const std::vector<double> sqnr = OutputSqnrs(verdict);
    double sum = 0;
    for (const double db : sqnr) sum += std::pow(10, -std::min(db, kMostSqnr) / 20);
    return sum / static_cast<double>(std::max<size_t>(1, sqnr.size()));
  }

  absl::StatusOr<std::vector<std::string>> Choose(std::vector<std::string>* notes) const {
    PF_ASSIGN_OR_RETURN(const ShapeMap shapes, InferShapes(*graph_));
    PF_ASSIGN_OR_RETURN(const std::vector<QuantizableOperator> operators, FindQuantizableOperators(*graph_, shapes));
    std::vector<std::string> names;
    for (const QuantizableOperator& op : operators) {
      if (op.kind == QuantizableKind::kMoved) continue;
      const bool has_ranges = quantization_.mode == "int8" || quantization_.mode == "int16x8";
      if (!has_ranges && op.kind != QuantizableKind::kWeighted) continue;
      names.emplace_back(op.root->name());
    }
    const auto kept_of = [&](const std::vector<bool>& applied) {
      std::vector<std::string> kept;
      for (size_t i = 0; i < names.size(); ++i) {
        if (!applied[i]) kept.push_back(names[i]);
      }
      return kept;
    };
    const auto measure = [&](const std::vector<bool>& applied) -> absl::StatusOr<double> {
      const std::vector<std::string> kept = kept_of(applied);
      Verdict verdict = best_.verdict;
      if (!kept.empty() || !verdict.was_run) {
        PF_ASSIGN_OR_RETURN(Trial trial, Try(kept));
        verdict = std::move(trial.verdict);
      }
      double noise = 0;
      for (const VerifiedOutput& output : verdict.outputs) {
        const OutputQuality quality = JudgeQuality(output.difference);
        double of_output = std::pow(10, (quantization_.min_sqnr_db - output.difference.sqnr_db) / 10);
        if (std::isnan(of_output)) of_output = std::numeric_limits<double>::infinity();
        // Classes may differ although the SQNR is high, and a small or exact output may be fine although it is low.
        if (quality == OutputQuality::kRuined) of_output = std::max(of_output, kNoiseOfRuined);
        if (quality == OutputQuality::kFine) of_output = std::min(of_output, 1.0);
        noise = std::max(noise, of_output);
      }
      return noise;
    };
    PF_ASSIGN_OR_RETURN(const NoiseChoice choice, ChooseWithinNoise(names.size(), measure, kMostMeasurements));
    if (!choice.is_within) {
      notes->push_back(absl::StrCat("outputs stay below ", quantization_.min_sqnr_db,
                                    " dB even with all layers in float; nothing was kept in float"));
      return std::vector<std::string>();
    }
    return kept_of(choice.applied);
  }

  const Graph& prepared_;
  const Graph* graph_ = &prepared_;  // What is quantised: the prepared graph, or one with equalised channels.
  const std::vector<InputSet>& inputs_;
  const Verifier& verifier_;
  const SessionOptions& options_;
  const TfliteQuantization& quantization_;
  std::string ranges_;
  Candidates* chosen_ = nullptr;  // Of the best choice so far.
  Trial best_;  // The candidate that was chosen, with all layers quantised. Empty if none was measured.
};

// The scale of an interface tensor of codes.
struct InterfaceScale {
  DType dtype = DType::kInvalid;
  float scale = 1;
  int32_t zero_point = 0;
};

absl::StatusOr<InterfaceScale> ScaleOf(const Endpoint& endpoint, absl::string_view type_attr) {
  InterfaceScale result;
  const absl::StatusOr<float> scale = FloatAttr(*endpoint.node, kInterfaceScaleAttr);
  const absl::StatusOr<int64_t> point = IntAttr(*endpoint.node, kInterfaceZeroPointAttr);
  if (!scale.ok() || !point.ok()) return result;
  PF_ASSIGN_OR_RETURN(result.dtype, TypeAttr(*endpoint.node, type_attr));
  result.scale = *scale;
  result.zero_point = static_cast<int32_t>(*point);
  return result;
}

absl::StatusOr<Node*> AddUniform(Graph* graph, absl::string_view name, TensorRef x, const InterfaceScale& scale,
                                 bool quantizes) {
  PF_ASSIGN_OR_RETURN(Node * scales, graph->AddConst(graph->UniqueName(absl::StrCat(name, "/scale")),
                                                     Tensor::Scalar(scale.scale), graph->first()));
  PF_ASSIGN_OR_RETURN(Node * points, graph->AddConst(graph->UniqueName(absl::StrCat(name, "/zero_point")),
                                                     Tensor::Scalar(scale.zero_point), graph->first()));
  PF_ASSIGN_OR_RETURN(Node * node,
                      graph->AddNode(graph->UniqueName(name), quantizes ? UniformQuantizeOp() : UniformDequantizeOp()));
  for (const TensorRef input : {x, TensorRef{scales, 0}, TensorRef{points, 0}}) graph->AddInput(node, input);
  node->SetAttr("Tin", AttrValue::Type(quantizes ? DType::kFloat : scale.dtype));
  node->SetAttr("Tout", AttrValue::Type(quantizes ? scale.dtype : DType::kFloat));
  const bool is_signed = scale.dtype == DType::kInt8;
  node->SetAttr("quantization_min_val", AttrValue::Int(is_signed ? -128 : 0));
  node->SetAttr("quantization_max_val", AttrValue::Int(is_signed ? 127 : 255));
  return node;
}

}  // namespace

std::vector<std::string> EqualizationNames() { return {"none", "weights", "activations"}; }

absl::StatusOr<QuantizedModel> QuantizeForTflite(const Graph& prepared, const std::vector<InputSet>& inputs,
                                                 const Verifier& verifier, const SessionOptions& options,
                                                 const TfliteQuantization& quantization) {
  return Chooser(prepared, inputs, verifier, options, quantization).Run();
}

absl::StatusOr<std::unique_ptr<Graph>> WithFloatInterface(const Graph& read, const Graph& written) {
  std::unique_ptr<Graph> graph = read.Clone();
  if (graph->inputs().size() != written.inputs().size() || graph->outputs().size() != written.outputs().size()) {
    return absl::InternalError("the written model has another interface");
  }
  std::vector<std::string> inputs, outputs;
  const std::vector<Endpoint> old_inputs = graph->inputs(), old_outputs = graph->outputs();
  for (size_t i = 0; i < old_inputs.size(); ++i) {
    inputs.push_back(old_inputs[i].text);
    PF_ASSIGN_OR_RETURN(const InterfaceScale scale, ScaleOf(written.inputs()[i], "dtype"));
    if (scale.dtype == DType::kInvalid) continue;
    Node* codes = old_inputs[i].node;
    PF_ASSIGN_OR_RETURN(Node * numbers, graph->AddNode(graph->UniqueName(absl::StrCat(codes->name(), "/float")),
                                                       ops::kPlaceholder, graph->first()));
    numbers->CopyAttrs(*codes);
    numbers->SetAttr("dtype", AttrValue::Type(DType::kFloat));
    PF_ASSIGN_OR_RETURN(const Node* quantized,
                        AddUniform(graph.get(), absl::StrCat(codes->name(), "/codes"), {numbers, 0}, scale, true));
    graph->ReplaceUses({codes, 0}, {const_cast<Node*>(quantized), 0});
    inputs.back() = std::string(numbers->name());
  }
  for (size_t i = 0; i < old_outputs.size(); ++i) {
    outputs.push_back(old_outputs[i].text);
    PF_ASSIGN_OR_RETURN(const InterfaceScale scale, ScaleOf(written.outputs()[i], "T"));
    if (scale.dtype == DType::kInvalid) continue;
    PF_ASSIGN_OR_RETURN(const Node* numbers,
                        AddUniform(graph.get(), absl::StrCat(old_outputs[i].node->name(), "/float"),
                                   {old_outputs[i].node, old_outputs[i].port}, scale, false));
    outputs.back() = std::string(numbers->name());
  }
  PF_RETURN_IF_ERROR(graph->DeclareInterface(inputs, outputs));
  return graph;
}

}  // namespace permafrost
