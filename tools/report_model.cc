// Opens the models, measures them, and writes the report.
#include "tools/report_model.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "tools/benchmark/benchmark_subject.h"
#include "tools/command_line/interruption.h"
#include "tools/command_line/json.h"
#include "tools/command_line/standard_streams.h"
#include "tools/measuring/machine_name.h"
#include "tools/model/delegate_resolution.h"
#include "tools/model/graph_validity.h"
#include "tools/model/model_inputs.h"
#include "tools/model/run_options.h"
#include "tools/report/model_facts.h"
#include "tools/report/model_runs.h"
#include "tools/report/report_formats.h"
#include "tools/report/report_page.h"
#include "tools/validation/batch_source.h"
#include "tools/validation/calibration_inputs.h"
#include "tools/validation/label_files.h"
#include "tools/validation/layer_noise.h"
#include "tools/validation/scoring.h"
#include "tools/validation/validation.h"

namespace permafrost {
namespace {

constexpr size_t kMostModels = 12;
// Batch size if the model leaves it open.
constexpr int64_t kBatch = 32;

void DefineFlags(ReportModelOptions* options, FlagTable* flags) {
  flags->Add("in_graph", &options->in_graph, "FILES",
             "Models, separated by commas; may be repeated. The others are compared with the first.");
  flags->Add("out", &options->out, "FILE", "File to write the report to, atomically. Default: standard output.");
  flags->AddChoice("format", &options->format, {"html", "json", "csv", "md"},
                   "Format of the report: a page for a browser, all facts as JSON, one CSV line per node, or Markdown "
                   "tables. Default: the extension of --out, or else html, and md on a terminal.");
  flags->Add("title", &options->title, "TEXT", "Title of the report. Default: the names of the models.");
  flags->Add("names", &options->names, "NAMES",
             "Names of the models, separated by commas. Default: the names of their files.");
  flags->Add("inputs", &options->inputs, "FILES",
             "Inputs for the comparison of outputs: NPY files separated by commas, as for validate_model. Default: "
             "random numbers.");
  flags->Add("labels", &options->labels, "FILE",
             "Labels for the accuracy: an NPY file with one integer per row of --inputs.");
  flags->Add("run", &options->run, "Measure latency, memory and outputs; otherwise report only the contents of files.");
  flags->Group("inputs, outputs and measurement");
  flags->Add("input_layer", &options->input_layer, "NAMES", "Nodes to feed, separated by commas. Default: detected.");
  flags->Add("input_layer_shape", &options->input_layer_shape, "SHAPES",
             "Shapes of the inputs, separated by colons. Default: those of the model, with batch 1 and sizes with "
             "which the model runs.");
  flags->Add("output_layer", &options->output_layer, "NAMES",
             "Nodes to fetch, separated by commas. Default: detected.");
  flags->Add("samples", &options->samples, "N", "Number of random inputs.");
  flags->Add("seed", &options->seed, "N", "Seed of the random inputs.");
  flags->Add("layers", &options->layers, "Compare the inner tensors of the other models with those of the first.");
  flags->Add("max_time", &options->max_time, "SECONDS", "Maximum duration of the latency measurement in seconds.");
  flags->Group("");
  AddRunFlags(&options->run_flags, flags);
  AddImageFlags(&options->image, flags);
  AddReadFlags(&options->read, flags);
  flags->MarkCommon(
      {"in_graph", "out", "format", "title", "names", "inputs", "labels", "run", "delegate", "precision", "threads"});
  flags->AcceptAsArguments({"in_graph"});
  flags->MarkOutputs({"out"});
}

std::vector<std::string> Flat(const std::vector<std::string>& lists) {
  std::vector<std::string> all;
  for (const std::string& list : lists) {
    for (std::string& each : SplitList(list)) all.push_back(std::move(each));
  }
  return all;
}

absl::Status CheckOptions(const ReportModelOptions& options, size_t num_models, size_t num_names) {
  if (num_models == 0) return absl::InvalidArgumentError("--in_graph is missing");
  if (num_models > kMostModels) {
    return absl::InvalidArgumentError(
        absl::StrCat("--in_graph: found ", num_models, " models, expected at most ", kMostModels));
  }
  if (num_names != 0 && num_names != num_models) {
    return absl::InvalidArgumentError(
        absl::StrCat("--names: found ", num_names, ", expected one for each of ", num_models, " models"));
  }
  if (options.samples < 1) {
    return absl::InvalidArgumentError(absl::StrCat("--samples: found ", options.samples, ", expected at least 1"));
  }
  if (!(options.max_time > 0) || options.max_time > 1e6) {
    return absl::InvalidArgumentError(
        absl::StrCat("--max_time: found ", options.max_time, ", expected more than 0 and at most 1000000"));
  }
  if (!options.labels.empty() && options.inputs.empty()) {
    return absl::InvalidArgumentError("--labels needs --inputs: random inputs have no right answers");
  }
  return absl::OkStatus();
}

// Returns the format of the report. InvalidArgument for a page on a terminal.
absl::StatusOr<std::string> FormatOf(const ReportModelOptions& options, const Console& console) {
  const bool prints = options.out.empty() || options.out == kStandardStream;
  if (!options.format.empty()) {
    if (options.format != "html" || !prints || !console.is_terminal) return options.format;
    return absl::InvalidArgumentError(
        "--format=html: found a terminal as the output, expected --out=FILE, or --format=md");
  }
  for (const absl::string_view format : {"json", "csv", "md"}) {
    if (absl::EndsWithIgnoreCase(options.out, absl::StrCat(".", format))) return std::string(format);
  }
  return prints && console.is_terminal ? "md" : "html";
}

// Returns the last part of each path, or the whole path if two have the same last part.
std::vector<std::string> NamesOf(const std::vector<std::string>& paths) {
  std::vector<std::string> names;
  for (const std::string& path : paths) {
    const std::string last = path.substr(path.rfind('/') + 1);
    const auto is_same = [&](const std::string& other) { return other.substr(other.rfind('/') + 1) == last; };
    names.push_back(last.empty() || std::count_if(paths.begin(), paths.end(), is_same) > 1 ? path : last);
  }
  return names;
}

// Returns the default title: the names of up to three models.
std::string TitleOf(const std::vector<ModelFacts>& models) {
  constexpr size_t kMostNamed = 3;
  std::string title;
  for (size_t i = 0; i < models.size() && i < kMostNamed; ++i) {
    absl::StrAppend(&title, i == 0 ? "" : ", ", models[i].name);
  }
  if (models.size() > kMostNamed) absl::StrAppend(&title, " and ", models.size() - kMostNamed, " more");
  return title;
}

class Reporter {
 public:
  Reporter(const ReportModelOptions& options, FileSystem& files, Console& console)
      : options_(options), files_(files), console_(console), paths_(Flat(options.in_graph)) {}

  absl::Status Run() {
    const std::vector<std::string> names = Flat(options_.names);
    PF_RETURN_IF_ERROR(CheckOptions(options_, paths_.size(), names.size()));
    PF_ASSIGN_OR_RETURN(format_, FormatOf(options_, console_));
    // Opened early, so that an unwritable path is reported before the measurement.
    std::unique_ptr<FileWriter> writer;
    if (!options_.out.empty()) {
      PF_ASSIGN_OR_RETURN(writer, files_.NewWriter(options_.out));
    }
    PF_ASSIGN_OR_RETURN(run_options_, MakeRunOptions(options_.run_flags, files_));
    PF_RETURN_IF_ERROR(Open(names.empty() ? NamesOf(paths_) : names));
    const Interruption interruption;
    run_options_.chosen.loop_limits.is_cancelled = &Interruption::IsRequested;
    run_options_.reference.loop_limits.is_cancelled = &Interruption::IsRequested;
    if (options_.run) {
      PF_RETURN_IF_ERROR(Compare());
      PF_RETURN_IF_ERROR(Measure());
    }
    console_.Progress("");
    const std::string text = Text();
    if (writer == nullptr) {
      console_.out << text;
      return absl::OkStatus();
    }
    PF_RETURN_IF_ERROR(writer->Append(text));
    PF_RETURN_IF_ERROR(writer->Commit());
    console_.out << "wrote " << Printable(options_.out) << ", " << FormatBytes(text.size()) << "\n";
    return absl::OkStatus();
  }

 private:
  absl::Status Open(const std::vector<std::string>& names) {
    for (size_t i = 0; i < paths_.size(); ++i) {
      console_.Progress(absl::StrCat("reading ", paths_[i]));
      SubjectFlags flags;
      flags.graph = paths_[i];
      flags.input_layer = options_.input_layer;
      flags.output_layer = options_.output_layer;
      flags.inputs.shapes = options_.input_layer_shape;
      flags.inputs.seed = options_.seed;
      flags.read = options_.read;
      absl::StatusOr<std::unique_ptr<BenchmarkSubject>> subject = BenchmarkSubject::Open(flags, files_, console_);
      if (!subject.ok()) {
        const bool names_it = paths_.size() == 1 || absl::StrContains(subject.status().message(), paths_[i]);
        return names_it ? subject.status() : Annotate(subject.status(), absl::StrCat("'", paths_[i], "'"));
      }
      if (options_.run) {
        PF_RETURN_IF_ERROR(Annotate(CheckValidity((*subject)->graph()), absl::StrCat("'", paths_[i], "'")));
      }
      subjects_.push_back(*std::move(subject));
      ModelFacts& facts = report_.models.emplace_back();
      facts.name = names[i];
      facts.path = paths_[i];
      if (const absl::StatusOr<FileStat> stat = files_.Stat(paths_[i]); stat.ok()) facts.file_bytes = stat->size;
      facts.graph = CollectGraphFacts(subjects_[i]->graph(), subjects_[i]->fed_shapes());
    }
    report_.title = options_.title.empty() ? TitleOf(report_.models) : options_.title;
    report_.date = MeasurementDate();
    report_.machine = MachineName();
    return absl::OkStatus();
  }

  // Compares the outputs and the internal tensors of each model with those of the first.
  absl::Status Compare() {
    const Graph& first = subjects_[0]->graph();
    const std::vector<std::string> pieces = Flat(options_.inputs);
    std::vector<InputSet> sets;
    if (pieces.empty()) {
      absl::StatusOr<std::vector<InputSet>> made = SeededSets();
      if (!made.ok()) return absl::OkStatus();
      sets = *std::move(made);
    } else {
      PF_ASSIGN_OR_RETURN(const std::vector<InputSet> read, ReadInputSets(files_, pieces, first, /*any_batch=*/true));
      PF_ASSIGN_OR_RETURN(sets, SplitBatches(read, kBatch));
    }
    Labels labels;
    if (!options_.labels.empty()) {
      PF_ASSIGN_OR_RETURN(labels, ReadNpyLabels(files_, options_.labels));
    }
    if (subjects_.size() == 1 && labels.num_rows() == 0) return absl::OkStatus();
    const std::unique_ptr<BatchSource> source = KeptBatches(std::move(sets), std::nullopt);
    for (size_t i = 0; i < subjects_.size(); ++i) {
      if (Interruption::IsRequested()) return absl::CancelledError("interrupted; no report was written");
      ModelFacts& facts = report_.models[i];
      console_.Progress(absl::StrCat("comparing ", facts.name));
      QualityFacts& quality = facts.quality.emplace();
      ValidationSettings settings;
      settings.reference = run_options_.reference;
      settings.candidate = run_options_.chosen;
      settings.is_interrupted = &Interruption::IsRequested;
      const absl::StatusOr<Validation> validation =
          Validate(first, subjects_[i]->graph(), *source, labels.num_rows() == 0 ? nullptr : &labels, settings);
      if (validation.ok()) {
        AddQuality(*validation, &quality);
      } else {
        quality.warnings.push_back(absl::StrCat("outputs were not compared: ", validation.status().message()));
      }
      if (i > 0 && options_.layers) AddLayerErrors(i);
    }
    // The page would not show which parts are missing.
    if (Interruption::IsRequested()) return absl::CancelledError("interrupted; no report was written");
    return absl::OkStatus();
  }

  // Returns random inputs for the first model, in the shapes of the measurement.
  absl::StatusOr<std::vector<InputSet>> SeededSets() const {
    std::vector<InputSet> sets;
    for (int i = 0; i < options_.samples; ++i) {
      SubjectFlags flags;
      BenchmarkInputFlags inputs;
      inputs.shapes = options_.input_layer_shape;
      inputs.seed = options_.seed + static_cast<uint64_t>(i);
      PF_ASSIGN_OR_RETURN(const std::vector<BenchmarkInput> made,
                          MakeBenchmarkInputs(subjects_[0]->graph(), inputs, files_));
      InputSet& set = sets.emplace_back();
      for (const BenchmarkInput& input : made) set.push_back(input.tensor);
    }
    return sets;
  }

  static void AddQuality(const Validation& validation, QualityFacts* quality) {
    for (const OutputValidation& output : validation.outputs) {
      const OutputDifference& difference = output.difference;
      if (!difference.mismatch.empty()) {
        quality->warnings.push_back(absl::StrCat("output '", output.name, "': ", difference.mismatch));
        continue;
      }
      if (difference.num_nonfinite_mismatches > 0) {
        const int64_t count = difference.num_nonfinite_mismatches;
        quality->warnings.push_back(absl::StrCat("output '", output.name, "': ", count,
                                                 count == 1 ? " element is" : " elements are",
                                                 " finite in one of both models alone"));
      }
      if (difference.has_numbers) {
        const double error = difference.num_nonfinite_mismatches > 0 ? -std::numeric_limits<double>::infinity()
                             : difference.is_identical()             ? std::numeric_limits<double>::infinity()
                                                                     : difference.sqnr_db;
        quality->sqnr_db = std::min(quality->sqnr_db.value_or(std::numeric_limits<double>::infinity()), error);
      }
      if (difference.top1_agreement.has_value()) {
        quality->agreement = std::min(quality->agreement.value_or(1), *difference.top1_agreement);
      }
      const OutputScore& score = output.score;
      if (score.kind == OutputScore::Kind::kClasses) quality->accuracy = score.Share(score.candidate.right);
    }
  }

  void AddLayerErrors(size_t i) {
    ModelFacts& facts = report_.models[i];
    LayerNoiseSettings settings;
    settings.reference = settings.candidate = run_options_.reference;
    settings.is_interrupted = &Interruption::IsRequested;
    settings.progress = [&](size_t done, size_t all) {
      console_.Progress(absl::StrCat("comparing the layers of ", facts.name, ": ", done, " of ", all));
    };
    const std::unique_ptr<BatchSource> source = KeptBatches({subjects_[0]->feeds()}, std::nullopt);
    const absl::StatusOr<LayerNoiseReport> noise =
        MeasureLayerNoise(subjects_[0]->graph(), subjects_[i]->graph(), *source, settings);
    if (!noise.ok()) {
      facts.quality->notes.push_back(absl::StrCat("layers were not compared: ", noise.status().message()));
      return;
    }
    absl::flat_hash_map<std::string, double> decibels;  // By tensor.
    for (const LayerNoise& layer : noise->layers) {
      const bool is_finite = layer.nonfinite_mismatches == 0;
      decibels[layer.candidate] = is_finite ? layer.sqnr_db : -std::numeric_limits<double>::infinity();
    }
    for (NodeFacts& node : facts.graph.nodes) {
      const auto found = decibels.find(node.node->name());
      if (found != decibels.end()) node.sqnr_db = found->second;
    }
    if (!noise->set_aside.empty()) {
      const size_t count = noise->set_aside.size();
      facts.quality->notes.push_back(absl::StrCat(count, count == 1 ? " tensor has" : " tensors have",
                                                  " the name of one of the first model and other content, and ",
                                                  count == 1 ? "was" : "were", " not compared"));
    }
  }

  absl::Status Measure() {
    const RunFlags& flags = options_.run_flags;
    report_.conditions =
        absl::StrCat(flags.delegate, ", ", flags.precision.empty() ? "f32" : flags.precision, ", ",
                     run_options_.chosen.num_threads, run_options_.chosen.num_threads == 1 ? " thread" : " threads");
    std::vector<RunToReport> runs;
    for (size_t i = 0; i < subjects_.size(); ++i) {
      const Graph& graph = subjects_[i]->graph();
      SessionOptions session = run_options_.chosen;
      const ModelToRun model = {graph, graph.inputs(), graph.outputs(), paths_[i]};
      PF_ASSIGN_OR_RETURN(std::vector<InputSet> samples,
                          ReadCalibrationInputs(files_, flags.calibration_inputs, options_.image, {}, graph));
      if (samples.empty()) samples.push_back(subjects_[i]->feeds());
      PF_ASSIGN_OR_RETURN(const KeptWeights kept, ResolveDelegate(flags, model, samples, files_, &session, console_));
      kept_.push_back(kept);
      runs.push_back({subjects_[i].get(), std::move(session), &report_.models[i]});
    }
    PF_RETURN_IF_ERROR(MeasureModels(runs, options_.max_time, console_));
    for (const KeptWeights& kept : kept_) kept.Save(files_, console_);
    return absl::OkStatus();
  }

  std::string Text() const {
    if (format_ == "csv") return ReportCsv(report_);
    if (format_ == "md") return ReportMarkdown(report_);
    if (format_ == "html") return ReportPage(report_);
    std::ostringstream text;
    JsonWriter json(text);
    WriteReportJson(report_, &json);
    return text.str();
  }

  const ReportModelOptions& options_;
  FileSystem& files_;
  Console& console_;
  const std::vector<std::string> paths_;
  std::string format_;
  RunOptions run_options_;
  std::vector<std::unique_ptr<BenchmarkSubject>> subjects_;
  std::vector<KeptWeights> kept_;
  Report report_;
};

}  // namespace

absl::Status ReportModel(const ReportModelOptions& options, FileSystem& files, Console& console) {
  return Reporter(options, files, console).Run();
}

Tool ReportModelTool() {
  return DefineTool<ReportModelOptions>(
      "report_model", "writes a report on a model, or on variants of one side by side, as a page for a browser",
      {{"Write a page.", "model.pb --out=report.html"},
       {"Compare two models: size, latency, accuracy, and the error of each layer.",
        "--in_graph=model.pb,small.pb --inputs=images.npy --labels=labels.npy --delegate=onednn --out=report.html"},
       {"Print the contents of the file as JSON, without running it.", "model.pb --run=false --format=json"}},
      &DefineFlags, &ReportModel);
}

}  // namespace permafrost
