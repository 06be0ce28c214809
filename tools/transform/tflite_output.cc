// Implements the lowering, the encoding and the proof of TensorFlow Lite models.
#include "tools/transform/tflite_output.h"

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
#include "tools/command_line/console.h"
#include "tools/model/model_inputs.h"
#include "tools/model/tool_session.h"
#include "transforms/pipeline/body_pipeline.h"
#include "transforms/pipeline/pipeline.h"

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

absl::StatusOr<std::vector<InputSet>> Inputs(const Graph& graph, const TfliteFlags& flags, FileSystem& files) {
  if (flags.verify_inputs.empty()) return SeededInputSets(graph, graph.inputs(), flags.seed, kSeededInputs);
  std::vector<std::string> pieces;
  for (const std::string& list : flags.verify_inputs) {
    for (std::string& piece : SplitList(list)) pieces.push_back(std::move(piece));
  }
  return ReadInputSets(files, pieces, graph.inputs());
}

}  // namespace

bool IsTflitePath(absl::string_view path) { return absl::EndsWith(path, kTfliteFormat.extension); }

absl::StatusOr<TfliteOutput> EncodeTflite(const Graph& graph, const TfliteFlags& flags, int num_threads,
                                          FileSystem& files) {
  if (const auto source = TfliteSourceOf(graph); source != nullptr && flags.quantize == "none") {
    PF_ASSIGN_OR_RETURN(const bool is_unchanged, IsUnchanged(graph, *source));
    if (is_unchanged) {
      TfliteOutput same;
      same.bytes = std::string(source->file().bytes);
      same.verdict.why_not = "the model is written as it was read";
      return same;
    }
  }
  PF_ASSIGN_OR_RETURN(const std::unique_ptr<Graph> prepared, Prepared(graph, flags, num_threads));
  TfliteLimits limits;
  limits.allow_flex = flags.allow_flex;
  StringSink sink;
  PF_RETURN_IF_ERROR(ExportTflite(*prepared, limits, &sink));
  TfliteOutput output;
  auto bytes = std::make_shared<const std::string>(sink.text());
  absl::StatusOr<std::unique_ptr<Graph>> read = ReadModel(FileView{*bytes, bytes});
  if (!read.ok()) {
    return absl::InternalError(absl::StrCat("the encoded model cannot be read back: ", read.status().message()));
  }
  output.bytes = *bytes;
  if (flags.verify == "off") {
    output.verdict.why_not = "--verify=off";
    return output;
  }
  absl::StatusOr<std::vector<InputSet>> inputs = Inputs(graph, flags, files);
  if (!flags.verify_inputs.empty()) PF_RETURN_IF_ERROR(inputs.status());
  const Verifier verifier(graph, std::move(inputs), ToolSessionOptions(num_threads, files), flags.max_time);
  PF_RETURN_IF_ERROR(verifier.validity());
  PF_ASSIGN_OR_RETURN(output.verdict, verifier.Check(**read));
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

std::string ProofText(const Verdict& verdict) {
  if (!verdict.was_run) return absl::StrCat("outputs were not compared: ", verdict.why_not);
  return absl::StrCat("outputs differ by at most ", FormatNumber(verdict.worst()), " of their scale for ",
                      verdict.num_inputs, " inputs");
}

}  // namespace permafrost
