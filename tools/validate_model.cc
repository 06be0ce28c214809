// Compares the answers of two models.
#include "tools/validate_model.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "graph/status.h"
#include "io/model_file.h"
#include "tools/command_line/json.h"
#include "tools/model/interface_finder.h"
#include "tools/model/model_inputs.h"
#include "tools/model/plan_listing.h"
#include "tools/model/run_flags.h"
#include "tools/validation/validation.h"

namespace permafrost {
namespace {

// Rows that run at a time where the model leaves it open: enough to keep the cores busy, little memory.
constexpr int64_t kDefaultBatch = 32;

void DefineFlags(ValidateModelOptions* options, FlagTable* flags) {
  flags->Add("reference", &options->reference, "FILE", "The model whose answers are taken for right.");
  flags->Add(
      "candidate", &options->candidate, "FILE",
      "The model to judge. It must have the outputs of the reference under the same names. --delegate and --precision "
      "hold for it alone: the reference runs with the built-in kernels.");
  flags->Add(
      "inputs", &options->inputs, "FILES",
      "What to feed: NPY files separated by commas, * and ? allowed; INPUT=FILE where there are several inputs. A "
      "file may hold many rows. Left out: random numbers.");
  flags->Add("outputs", &options->outputs, "NAMES", "The outputs to compare, separated by commas. Left out: found.");
  flags->Add("labels", &options->labels, "FILE",
             "The right answers: an NPY file with an integer for each row, to count how often each model is right.");
  flags->Add("batch", &options->batch, "N", "Rows to run at a time; 0: what the model fixes, or 32.");
  flags->Add("samples", &options->samples, "N", "How many random inputs to run when --inputs is left out.");
  flags->Add("seed", &options->seed, "N", "Seed of the random inputs.");
  AddRunFlags(&options->run, flags);
  flags->Add("runs", &options->runs, "N", "Also run each model N times, in turn, and give the median time.");
  flags->Add("tolerance", &options->tolerance, "X",
             "Fail when a difference is larger than X times max(1, largest magnitude of the output).");
  flags->Add("max_accuracy_drop", &options->max_accuracy_drop, "X",
             "Fail when the candidate's share of right answers is lower by more than X.");
  flags->Add("json", &options->json, "Print one JSON object instead of text.");
  AddReadFlags(&options->read, flags);
}

absl::Status CheckOptions(const ValidateModelOptions& options) {
  if (options.reference.empty()) return absl::InvalidArgumentError("--reference is missing");
  if (options.candidate.empty()) return absl::InvalidArgumentError("--candidate is missing");
  const auto check = [](absl::string_view flag, int32_t found, int32_t least) {
    if (found >= least) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(flag, ": found ", found, ", expected at least ", least));
  };
  PF_RETURN_IF_ERROR(check("--batch", options.batch, 0));
  PF_RETURN_IF_ERROR(check("--runs", options.runs, 0));
  PF_RETURN_IF_ERROR(check("--samples", options.samples, 1));
  if (!options.labels.empty() && options.inputs.empty()) {
    return absl::InvalidArgumentError("--labels needs --inputs: random inputs have no right answers");
  }
  if (options.max_accuracy_drop.has_value() && options.labels.empty()) {
    return absl::InvalidArgumentError("--max_accuracy_drop needs --labels");
  }
  return absl::OkStatus();
}

// The inputs that the pieces name, or nothing when a piece names none.
std::optional<std::string> NamedInputs(const std::vector<std::string>& pieces) {
  std::set<std::string> names;
  for (const std::string& piece : pieces) {
    const size_t equals = piece.find('=');
    if (equals == std::string::npos) return std::nullopt;
    names.insert(piece.substr(0, equals));
  }
  if (names.empty()) return std::nullopt;
  return absl::StrJoin(names, ",");
}

// The number of rows that the inputs fix, or 0.
absl::StatusOr<int64_t> FixedBatch(const Graph& graph) {
  int64_t batch = 0;
  for (const Endpoint& input : graph.inputs()) {
    const absl::StatusOr<Shape> shape = ShapeAttr(*input.node, "shape");
    if (!shape.ok() || !shape->has_rank() || shape->rank() == 0 || shape->dim(0) == kUnknownDim) continue;
    batch = shape->dim(0);
  }
  return batch;
}

absl::StatusOr<std::vector<InputSet>> MakeSets(const ValidateModelOptions& options,
                                               const std::vector<std::string>& pieces, const Graph& reference,
                                               FileSystem& files) {
  if (pieces.empty()) return SeededInputSets(reference.inputs(), options.seed, options.samples);
  PF_ASSIGN_OR_RETURN(const std::vector<InputSet> sets,
                      ReadInputSets(files, pieces, reference.inputs(), /*any_batch=*/true));
  PF_ASSIGN_OR_RETURN(const int64_t fixed, FixedBatch(reference));
  return SplitBatches(sets, options.batch > 0 ? options.batch : fixed > 0 ? fixed : kDefaultBatch);
}

absl::StatusOr<std::vector<int64_t>> ReadLabels(FileSystem& files, const std::string& path) {
  PF_ASSIGN_OR_RETURN(const Tensor tensor, ReadNpyFile(files, path));
  std::vector<int64_t> labels;
  const bool known =
      DispatchOn<int8_t, uint8_t, int16_t, uint16_t, int32_t, uint32_t, int64_t>(tensor.dtype(), [&](auto tag) {
        const auto elements = tensor.elements<typename decltype(tag)::type>();
        for (size_t i = 0; i < elements.size(); ++i) labels.push_back(static_cast<int64_t>(elements[i]));
      });
  if (!known) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", path, "' holds ", DTypeName(tensor.dtype()), ", expected integers"));
  }
  return labels;
}

std::string OptionalText(const std::optional<double>& value) {
  return value.has_value() ? absl::StrFormat("%.2f %%", 100 * *value) : "";
}

void PrintText(const Validation& validation, const Console& console) {
  console.out << "compared on " << validation.num_runs << " run" << (validation.num_runs == 1 ? "" : "s") << "\n";
  Table table({{"output"},
               {"max error", true},
               {"relative", true},
               {"mean error", true},
               {"SQNR dB", true},
               {"cosine", true},
               {"top-1", true},
               {"top-5", true}});
  for (const OutputValidation& output : validation.outputs) {
    const OutputDifference& d = output.difference;
    if (d.kind != OutputDifference::Kind::kComparable || !d.has_numbers) {
      table.AddRow({output.name, d.ToString(), "", "", "", "", "", ""});
      continue;
    }
    table.AddRow({output.name, FormatNumber(d.max_abs), FormatNumber(output.difference.relative()),
                  FormatNumber(d.mean_abs), FormatNumber(d.sqnr_db), absl::StrFormat("%.6f", d.cosine),
                  OptionalText(d.top1_agreement), OptionalText(d.top5_agreement)});
  }
  table.Print(console, "  ");
  for (const OutputValidation& output : validation.outputs) {
    if (!output.reference_accuracy.has_value() || !output.candidate_accuracy.has_value()) continue;
    console.out << "accuracy of '" << Printable(output.name) << "': reference "
                << OptionalText(output.reference_accuracy) << ", candidate " << OptionalText(output.candidate_accuracy)
                << "\n";
  }
  if (validation.reference_seconds > 0) {
    console.out << "median time of one run: reference " << FormatSeconds(validation.reference_seconds) << ", candidate "
                << FormatSeconds(validation.candidate_seconds) << "\n";
  }
}

void WriteOptional(absl::string_view key, const std::optional<double>& value, JsonWriter* json) {
  json->Key(key);
  value.has_value() ? json->Number(*value) : json->Null();
}

void WriteJson(const Validation& validation, bool passes, bool explain, const KeptWeights& kept, std::ostream& out) {
  JsonWriter json(out);
  json.BeginObject();
  json.Key("passes").Bool(passes);
  json.Key("runs_compared").Count(validation.num_runs);
  json.Key("outputs").BeginArray();
  for (const OutputValidation& output : validation.outputs) {
    const OutputDifference& d = output.difference;
    json.BeginObject();
    json.Key("name").Text(output.name);
    json.Key("mismatch").Text(d.mismatch);
    json.Key("max_abs").Number(d.max_abs);
    json.Key("relative").Number(output.difference.relative());
    json.Key("mean_abs").Number(d.mean_abs);
    json.Key("sqnr_db").Number(d.sqnr_db);
    json.Key("cosine").Number(d.cosine);
    json.Key("elements").Integer(d.num_elements);
    json.Key("elements_different").Integer(d.num_different);
    json.Key("nonfinite_mismatches").Integer(d.num_nonfinite_mismatches);
    WriteOptional("top1_agreement", d.top1_agreement, &json);
    WriteOptional("top5_agreement", d.top5_agreement, &json);
    WriteOptional("reference_accuracy", output.reference_accuracy, &json);
    WriteOptional("candidate_accuracy", output.candidate_accuracy, &json);
    json.End();
  }
  json.End();
  json.Key("reference_seconds").Number(validation.reference_seconds);
  json.Key("candidate_seconds").Number(validation.candidate_seconds);
  if (explain) {
    json.Key("candidate_plan");
    WritePlan(validation.candidate_plan, &json);
    json.Key("packed_weights");
    kept.Write(&json);
  }
  json.End();
}

// OK, or why the answer is no.
absl::Status Judge(const ValidateModelOptions& options, const Validation& validation) {
  for (const OutputValidation& output : validation.outputs) {
    if (!output.difference.mismatch.empty()) {
      return AnswerIsNo(absl::StrCat("output '", output.name, "': ", output.difference.mismatch));
    }
    if (options.tolerance.has_value() && !(output.difference.relative() <= *options.tolerance)) {
      return AnswerIsNo(absl::StrCat("output '", output.name, "' differs by ",
                                     FormatNumber(output.difference.relative()),
                                     " relative to max(1, largest), allowed ", FormatNumber(*options.tolerance)));
    }
    if (!options.max_accuracy_drop.has_value() || !output.reference_accuracy.has_value() ||
        !output.candidate_accuracy.has_value()) {
      continue;
    }
    const double drop = *output.reference_accuracy - *output.candidate_accuracy;
    if (drop > *options.max_accuracy_drop) {
      return AnswerIsNo(absl::StrCat("output '", output.name, "' loses ", FormatNumber(drop),
                                     " of its right answers, allowed ", FormatNumber(*options.max_accuracy_drop)));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ValidateModel(const ValidateModelOptions& options, FileSystem& files, Console& console) {
  PF_RETURN_IF_ERROR(CheckOptions(options));
  PF_ASSIGN_OR_RETURN(RunOptions run, MakeRunOptions(options.run, files));
  std::vector<std::string> pieces;
  for (const std::string& list : options.inputs) {
    for (std::string& piece : SplitList(list)) pieces.push_back(std::move(piece));
  }
  console.Progress("reading the models");
  const ModelOpener opener(files, options.read, console);
  PF_ASSIGN_OR_RETURN(const std::unique_ptr<Graph> reference, opener.Open(options.reference));
  PF_ASSIGN_OR_RETURN(const std::unique_ptr<Graph> candidate, opener.Open(options.candidate));
  std::vector<std::string> notes;
  PF_RETURN_IF_ERROR(
      Annotate(DeclareOrFindInterface(NamedInputs(pieces), options.outputs, reference.get(), &notes), "reference"));
  if (reference->outputs().empty()) return absl::InvalidArgumentError("no output is named");
  PF_ASSIGN_OR_RETURN(const std::vector<InputSet> sets, MakeSets(options, pieces, *reference, files));
  std::vector<int64_t> labels;
  if (!options.labels.empty()) {
    PF_ASSIGN_OR_RETURN(labels, ReadLabels(files, options.labels));
  }
  console.Progress("running the models");
  ValidationSettings settings;
  settings.reference = std::move(run.reference);
  settings.candidate = std::move(run.chosen);
  const ModelToRun model = {*candidate, reference->inputs(), reference->outputs(), options.candidate};
  PF_ASSIGN_OR_RETURN(const KeptWeights kept,
                      SettleDelegate(options.run, model, sets, files, &settings.candidate, console));
  settings.timed_runs = options.runs;
  PF_ASSIGN_OR_RETURN(const Validation validation,
                      Validate(*reference, *candidate, sets, labels.empty() ? nullptr : &labels, settings));
  console.Progress("");
  kept.Save(files, console);
  if (!validation.candidate_plan.delegation.failure.empty()) {
    console.err << "note: candidate: " << Printable(validation.candidate_plan.delegation.failure) << "\n";
  }
  const bool labels_used =
      std::any_of(validation.outputs.begin(), validation.outputs.end(),
                  [](const OutputValidation& output) { return output.reference_accuracy.has_value(); });
  if (!options.labels.empty() && !labels_used) {
    return absl::InvalidArgumentError(absl::StrCat("'", options.labels, "' holds ", labels.size(),
                                                   " labels, and no output has the shape [", labels.size(),
                                                   ", classes]"));
  }
  const absl::Status verdict = Judge(options, validation);
  if (options.json) {
    WriteJson(validation, verdict.ok(), options.run.explain, kept, console.out);
  } else {
    PrintText(validation, console);
    if (options.run.explain) {
      PrintPlan(validation.candidate_plan, console);
      kept.Print(console);
    }
  }
  return verdict;
}

Tool ValidateModelTool() {
  return DefineTool<ValidateModelOptions>(
      "validate_model", "says how far apart the answers of two models are",
      {{"Random inputs; fail when an output moves by more than 5 %.",
        "--reference=model.pb --candidate=tiny.pb --tolerance=0.05"},
       {"A labelled set: how often is each model right?",
        "--reference=model.pb --candidate=tiny.pb --inputs=image=images.npy --labels=labels.npy"},
       {"One model: how fast can it be, and what does that change?",
        "--reference=model.pb --candidate=model.pb --inputs=photo.npy --delegate=onednn --precision=auto --runs=20"}},
      &DefineFlags, &ValidateModel);
}

}  // namespace permafrost
