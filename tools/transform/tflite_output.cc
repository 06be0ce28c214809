// Implements the lowering, the encoding and the proof of TensorFlow Lite models.
#include "tools/transform/tflite_output.h"

#include <malloc.h>

#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/status.h"
#include "graph/base/wire.h"
#include "io/formats/tflite/provenance.h"
#include "io/formats/tflite/subgraph_export.h"
#include "io/formats/tflite/tflite.h"
#include "io/model_file.h"
#include "runtime_check/checking/evaluate.h"
#include "runtime_check/checking/output_quality.h"
#include "runtime_check/precision/value_range.h"
#include "tools/command_line/console.h"
#include "tools/model/model_inputs.h"
#include "tools/model/tool_session.h"
#include "tools/validation/batch_source.h"
#include "tools/validation/calibration_inputs.h"
#include "tools/validation/layer_noise.h"
#include "transforms/pipeline/body_pipeline.h"
#include "transforms/pipeline/pipeline.h"
#include "transforms/rewrites/rounded_constants.h"

namespace permafrost {
namespace {

constexpr absl::string_view kPreparation = "prepare_for_tflite";
constexpr absl::string_view kHalfWeights = " convert_float16_weights";
// Two inputs, so that an equality that holds for one by chance is not accepted as a proof.
constexpr int kSeededInputs = 2;

// The default accuracy of float models: that of docs/formats/tflite.md.
constexpr double kFloatTolerance = 1e-4;

absl::StatusOr<std::unique_ptr<Graph>> Prepared(const Graph& graph, const TfliteFlags& flags, int num_threads) {
  std::unique_ptr<Graph> copy = graph.Clone();
  // The pipeline changes what passes have changed since the model was read, and nothing else.
  if (flags.quantize == "none") PF_RETURN_IF_ERROR(KeepOperators(copy.get()).status());
  KernelEvaluator evaluator;
  evaluator.LimitTime(flags.max_time);
  PassContext context;
  context.evaluator = &evaluator;
  context.num_threads = num_threads;
  PF_ASSIGN_OR_RETURN(const std::vector<PassCall> calls,
                      ParseTransforms(absl::StrCat(kPreparation, flags.quantize == "float16" ? kHalfWeights : "")));
  PF_RETURN_IF_ERROR(RunPipelineOnBodies(&copy, calls, &context));
  PF_RETURN_IF_ERROR(CheckFoldingTime(evaluator, flags.max_time));
  return copy;
}

// Seeded inputs for calibration: real ones are better, but a few random ones show the order of the ranges.
constexpr int kSeededCalibrationSets = 8;
// Layers whose errors are reported.
constexpr size_t kMostLayers = 5;

bool IsQuantized(const TfliteFlags& flags) { return flags.quantize != "none" && flags.quantize != "float16"; }

std::vector<std::string> Pieces(const std::vector<std::string>& lists) {
  std::vector<std::string> pieces;
  for (const std::string& list : lists) {
    for (std::string& piece : SplitList(list)) pieces.push_back(std::move(piece));
  }
  return pieces;
}

absl::StatusOr<std::vector<InputSet>> Inputs(const Graph& graph, const TfliteFlags& flags, FileSystem& files) {
  if (flags.verify_inputs.empty()) return SeededInputSets(graph, graph.inputs(), flags.seed, kSeededInputs);
  return ReadInputSets(files, Pieces(flags.verify_inputs), graph);
}

// Returns the size of the constants of a graph in bytes, without those of functions.
size_t ConstantBytes(const Graph& graph) {
  size_t bytes = 0;
  for (const Node* node = graph.first(); node != nullptr; node = node->next()) {
    if (node->op() != ops::kConst) continue;
    const AttrValue* value = node->FindAttr("value");
    if (value == nullptr) continue;
    bytes += value->held_tensor() != nullptr ? value->held_tensor()->bytes().size() : value->encoded().size();
  }
  return bytes;
}

// Returns freed memory to the system. The allocator keeps blocks below 32 MB, which is most of the weights of a model.
void ReleaseFreedMemory() { malloc_trim(0); }

// Collects the bytes of a file whose size is known roughly. A text that grows by doubling would be copied, with both
// copies in memory; reserved memory that stays unused takes none.
class FileSink : public ByteSink {
 public:
  explicit FileSink(size_t expected) { bytes_.reserve(expected); }
  absl::Status Append(absl::string_view bytes) override {
    bytes_.append(bytes.data(), bytes.size());
    // The writer frees constants as it goes.
    constexpr size_t kBytesBetweenReleases = 8 << 20;
    if (bytes_.size() - released_at_ > kBytesBetweenReleases) {
      released_at_ = bytes_.size();
      ReleaseFreedMemory();
    }
    return absl::OkStatus();
  }
  std::string Release() { return std::move(bytes_); }

 private:
  std::string bytes_;
  size_t released_at_ = 0;
};

// Quantises the prepared graph, and records in `output` what there is to say about it. If its channels are equalised
// for that, `prepared` becomes the equalised graph.
absl::StatusOr<std::unique_ptr<Graph>> Quantized(const Graph& graph, std::unique_ptr<Graph>* prepared,
                                                 const TfliteFlags& flags, int num_threads, FileSystem& files,
                                                 std::vector<InputSet>* inputs, TfliteOutput* output) {
  if (!flags.calibration_inputs.empty()) {
    PF_ASSIGN_OR_RETURN(*inputs, ReadCalibrationInputs(files, flags.calibration_inputs, flags.image, {}, graph));
  }
  if (inputs->empty()) {
    PF_ASSIGN_OR_RETURN(*inputs, SeededInputSets(graph, graph.inputs(), flags.seed, kSeededCalibrationSets));
    if (flags.quantize == "int8" || flags.quantize == "int16x8") {
      output->notes.push_back(
          "warning: calibrated with random numbers; give --calibration_inputs real inputs, or the ranges will not fit "
          "them");
    }
  }
  const SessionOptions options = ToolSessionOptions(num_threads, files);
  const Verifier verifier(graph, *inputs, options);
  TfliteQuantization quantization;
  quantization.mode = flags.quantize;
  quantization.io_type = flags.io_type;
  quantization.keep_float = Pieces(flags.keep_float);
  quantization.tensor_ranges = Pieces(flags.tensor_ranges);
  quantization.min_sqnr_db = flags.min_sqnr_db;
  quantization.ranges = flags.ranges;
  quantization.rounding = flags.rounding;
  quantization.equalization = flags.equalization;
  quantization.num_threads = num_threads;
  PF_ASSIGN_OR_RETURN(QuantizedModel model, QuantizeForTflite(**prepared, *inputs, verifier, options, quantization));
  for (std::string& note : model.notes) output->notes.push_back(std::move(note));
  output->notes.push_back(absl::StrCat(
      model.range_method.empty() ? "" : absl::StrCat("ranges: ", model.range_method, "; "), "rounding of weights: ",
      model.rounding, model.equalization.empty() ? "" : absl::StrCat("; after ", model.equalization)));
  output->kept_float = std::move(model.kept_float);
  if (!flags.write_calibration.empty()) {
    PF_RETURN_IF_ERROR(SaveThrough(files, flags.write_calibration, {}, model.ranges.size(),
                                   [&](ByteSink* sink) { return sink->Append(model.ranges); }));
  }
  if (model.equalized != nullptr) *prepared = std::move(model.equalized);
  return std::move(model.graph);
}

// Finds the layers with the largest errors on the first inputs.
void FindLayerErrors(const Graph& prepared, const Graph& quantized, const std::vector<InputSet>& inputs,
                     int num_threads, FileSystem& files, TfliteOutput* output) {
  const std::unique_ptr<BatchSource> source = KeptBatches({inputs[0]}, std::nullopt);
  LayerNoiseSettings settings;
  settings.reference = settings.candidate = ToolSessionOptions(num_threads, files);
  const absl::StatusOr<LayerNoiseReport> report = MeasureLayerNoise(prepared, quantized, *source, settings);
  if (!report.ok()) {
    output->notes.push_back(absl::StrCat("layers were not compared: ", report.status().message()));
    return;
  }
  for (const LayerNoise& layer : report->layers) {
    if (output->layers.size() == kMostLayers || !layer.own_sqnr_db.has_value()) break;
    if (!std::isinf(*layer.own_sqnr_db)) output->layers.push_back({layer.reference, *layer.own_sqnr_db});
  }
}

}  // namespace

bool IsTflitePath(absl::string_view path) { return absl::EndsWith(path, kTfliteFormat.extension); }

std::vector<std::string> TfliteQuantizeNames() { return {"none", "float16", "dynamic", "int8", "int16x8", "int4"}; }

void AddTfliteQuantizationFlags(TfliteFlags* tflite, FlagTable* flags) {
  flags->AddChoice(
      "quantize", &tflite->quantize, TfliteQuantizeNames(),
      "float16, dynamic (int8) and int4: weights alone. int8, int16x8: weights of int8, activations of int8 "
      "or int16.");
  flags->AddChoice("io_type", &tflite->io_type, {"float", "int8", "uint8"},
                   "Type of inputs and outputs with --quantize=int8.");
  flags->Add("calibration_inputs", &tflite->calibration_inputs, "FOLDER|FILES",
             "Inputs that show the ranges of activations: NPY files, folders of them, or folders of pictures. Default: "
             "random numbers, with a warning.");
  flags->Add("keep_float", &tflite->keep_float, "NODES",
             "Operators that stay float, by the names of their nodes; 'prefix*' names several.");
  flags->Add("tensor_ranges", &tflite->tensor_ranges, "TENSOR=LOW:HIGH",
             "Ranges of tensors that replace the observed ones, separated by commas.");
  std::vector<std::string> ranges = RangeMethodNames(), roundings = RoundingMethodNames(),
                           equalizations = EqualizationNames();
  roundings.insert(roundings.begin(), "none");
  for (std::vector<std::string>* names : {&ranges, &roundings, &equalizations}) names->insert(names->begin(), "auto");
  flags->AddChoice("ranges", &tflite->ranges, ranges,
                   "Ranges of activations on the inputs: all values, percentiles of magnitudes, or the ranges that "
                   "change the distribution or the values least. auto: by measurement.");
  flags->AddChoice("rounding", &tflite->rounding, roundings,
                   "Choice of the codes of weights: by the weights alone, or by inputs (see the pass quantize_weights) "
                   "with corrected biases. auto: by measurement, sequential only if others have an error above 1%.");
  flags->AddChoice("equalize", &tflite->equalization, equalizations,
                   "Scale channels between layers first (see the pass equalize_channels). auto: by measurement.");
  flags->Add("min_sqnr", &tflite->min_sqnr_db, "DB",
             "Operators stay float until the SQNR of every output is at least this. Default: 15; negative: none do.");
  flags->Add("write_calibration", &tflite->write_calibration, "FILE",
             "File for ranges of activations and rounded weights, which the pass quantize_for_tflite reads.");
}

absl::StatusOr<TfliteOutput> EncodeTflite(const Graph& graph, const TfliteFlags& flags, int num_threads,
                                          FileSystem& files) {
  if (flags.io_type != "float" && flags.quantize != "int8") {
    return absl::InvalidArgumentError(absl::StrCat("--io_type=", flags.io_type, " is for --quantize=int8"));
  }
  if (const auto source = TfliteSourceOf(graph); source != nullptr && flags.quantize == "none") {
    PF_ASSIGN_OR_RETURN(const bool is_unchanged, IsUnchanged(graph, *source));
    if (is_unchanged) {
      TfliteOutput same;
      same.bytes = std::string(source->file().bytes);
      same.verdict.why_not = "the model is written as it was read";
      return same;
    }
  }
  // Float models are run before they are prepared, so that packed weights of the run and prepared weights are not in
  // memory at the same time.
  std::optional<Verifier> verifier;
  if (!IsQuantized(flags) && flags.verify != "off") {
    absl::StatusOr<std::vector<InputSet>> inputs = Inputs(graph, flags, files);
    if (!flags.verify_inputs.empty()) PF_RETURN_IF_ERROR(inputs.status());
    verifier.emplace(graph, std::move(inputs), ToolSessionOptions(num_threads, files), flags.max_time);
    PF_RETURN_IF_ERROR(verifier->validity());
    ReleaseFreedMemory();
  }
  PF_ASSIGN_OR_RETURN(std::unique_ptr<Graph> prepared, Prepared(graph, flags, num_threads));
  TfliteOutput output;
  std::vector<InputSet> calibration;
  if (IsQuantized(flags)) {
    PF_ASSIGN_OR_RETURN(std::unique_ptr<Graph> quantized,
                        Quantized(graph, &prepared, flags, num_threads, files, &calibration, &output));
    if (flags.io_type == "float" && flags.verify != "off") {
      FindLayerErrors(*prepared, *quantized, calibration, num_threads, files, &output);
    }
    prepared = std::move(quantized);
  }
  TfliteLimits limits;
  limits.allow_flex = flags.allow_flex;
  constexpr size_t kBytesBesideConstants = 1 << 20;
  FileSink sink(ConstantBytes(*prepared) + kBytesBesideConstants);
  PF_RETURN_IF_ERROR(ExportTflite(*prepared, limits, &sink));
  // The graph of the bytes refers to them without owning them.
  output.bytes = sink.Release();
  absl::StatusOr<std::unique_ptr<Graph>> read = ReadModel(FileView{output.bytes, nullptr});
  if (!read.ok()) {
    return absl::InternalError(absl::StrCat("the encoded model cannot be read back: ", read.status().message()));
  }
  if (flags.verify == "off") {
    output.verdict.why_not = "--verify=off";
    return output;
  }
  if (flags.io_type != "float") {
    PF_ASSIGN_OR_RETURN(*read, WithFloatInterface(**read, *prepared));
  }
  prepared.reset();  // Its weights are no longer needed.
  ReleaseFreedMemory();
  if (!verifier.has_value()) {
    absl::StatusOr<std::vector<InputSet>> inputs = std::vector<InputSet>();
    if (flags.verify_inputs.empty()) {
      inputs = std::move(calibration);
    } else {
      inputs = Inputs(graph, flags, files);
      PF_RETURN_IF_ERROR(inputs.status());
    }
    verifier.emplace(graph, std::move(inputs), ToolSessionOptions(num_threads, files), flags.max_time);
    PF_RETURN_IF_ERROR(verifier->validity());
  }
  PF_ASSIGN_OR_RETURN(output.verdict, verifier->Check(**read));
  if (!output.verdict.was_run) {
    if (flags.verify == "required") {
      return absl::FailedPreconditionError(absl::StrCat("not verified: ", output.verdict.why_not,
                                                        "; nothing was written; --verify=auto writes a model ",
                                                        "that cannot be run"));
    }
    return output;
  }
  Allowance allowance;
  allowance.tolerance = flags.tolerance.value_or(kFloatTolerance);
  allowance.is_unlimited = !flags.tolerance.has_value() && flags.quantize != "none";
  allowance.why = FormatNumber(allowance.tolerance);
  if (const std::vector<std::string> ruined = output.verdict.RuinedOutputs(); !ruined.empty()) {
    return absl::AbortedError(absl::StrCat(
        "the TensorFlow Lite model has ruined outputs: ", absl::StrJoin(ruined, ", "), "; nothing was written"));
  }
  if (!output.verdict.Passes(allowance)) {
    return absl::AbortedError(
        absl::StrCat("the outputs of the TensorFlow Lite model differ by ", FormatNumber(output.verdict.worst()),
                     " relative to their scale, allowed: ", allowance.why, "; nothing was written"));
  }
  return output;
}

std::string QuantizationText(const TfliteOutput& output) {
  std::string text;
  for (const std::string& note : output.notes) absl::StrAppend(&text, Printable(note), "\n");
  if (!output.kept_float.empty()) {
    constexpr size_t kMostNamed = 20;
    absl::StrAppend(&text, "kept in float for the outputs' sake: ", output.kept_float.size(), " operators: ",
                    Printable(absl::StrJoin(absl::MakeConstSpan(output.kept_float).subspan(0, kMostNamed), ", ")),
                    output.kept_float.size() > kMostNamed ? ", ...\n" : "\n");
  }
  if (output.layers.empty() && output.kept_float.empty() && output.notes.empty()) return text;
  for (const VerifiedOutput& each : output.verdict.outputs) {
    const OutputDifference& difference = each.difference;
    absl::StrAppend(&text, "output ", Printable(each.name), ": SQNR ", FormatNumber(difference.sqnr_db),
                    " dB, relative rms ", FormatNumber(std::pow(10, -difference.sqnr_db / 20)));
    if (difference.top1_agreement.has_value()) {
      absl::StrAppend(&text, ", top-1 agreement ", FormatNumber(100 * *difference.top1_agreement), " %");
    }
    absl::StrAppend(&text, " (", QualityName(JudgeQuality(difference)), ")\n");
  }
  if (!output.layers.empty()) {
    absl::StrAppend(&text, "largest layer errors by themselves: ",
                    absl::StrJoin(output.layers, ", ",
                                  [](std::string* out, const LayerError& layer) {
                                    absl::StrAppend(out, Printable(layer.layer), " ", FormatNumber(layer.sqnr_db),
                                                    " dB");
                                  }),
                    "\n");
  }
  return text;
}

std::string ProofText(const Verdict& verdict) {
  if (!verdict.was_run) return absl::StrCat("outputs were not compared: ", verdict.why_not);
  return absl::StrCat("outputs differ by at most ", FormatNumber(verdict.worst()), " of their scale for ",
                      verdict.num_inputs, " inputs");
}

}  // namespace permafrost
