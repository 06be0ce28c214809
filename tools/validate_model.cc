// Compares the outputs of two models.
#include "tools/validate_model.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "graph/base/status.h"
#include "io/model_file.h"
#include "runtime_check/checking/output_quality.h"
#include "tools/certificate/certificate.h"
#include "tools/certificate/embedded_certificate.h"
#include "tools/command_line/interruption.h"
#include "tools/command_line/json.h"
#include "tools/difference/lineage_file.h"
#include "tools/images/distortion.h"
#include "tools/images/preprocessing.h"
#include "tools/model/delegate_resolution.h"
#include "tools/model/delegation_listing.h"
#include "tools/model/interface_declaration.h"
#include "tools/model/model_inputs.h"
#include "tools/model/run_flags.h"
#include "tools/model/run_options.h"
#include "tools/validation/batch_source.h"
#include "tools/validation/calibration_inputs.h"
#include "tools/validation/half_simulation.h"
#include "tools/validation/label_files.h"
#include "tools/validation/labelled_images.h"
#include "tools/validation/layer_noise.h"
#include "tools/validation/validation.h"
#include "tools/validation/validation_report.h"

namespace permafrost {
namespace {

// Batch size if the model leaves it open: enough to keep the cores busy, with little memory.
constexpr int64_t kDefaultBatch = 32;
// Maximum number of pixels per batch: 800 MB as floats.
constexpr int64_t kMostBatchPixels = int64_t{1} << 26;

void DefineFlags(ValidateModelOptions* options, FlagTable* flags) {
  flags->Add("reference", &options->reference, "FILE", "Model whose outputs are the reference.");
  flags->Add("candidate", &options->candidate, "FILE",
             "Model to validate, with outputs of the same names. --delegate and --precision apply to it alone; the "
             "reference runs with the built-in kernels.");
  flags->Add(
      "inputs", &options->inputs, "FILES",
      "Inputs: NPY files of one or more rows, separated by commas, with the wildcards * and ?, or INPUT=FILE for "
      "each of several inputs. Default: random numbers.");
  flags->Add("outputs", &options->outputs, "NAMES", "Outputs to compare, separated by commas. Default: detected.");
  flags->Add("images", &options->images, "FOLDER",
             "Folder of PNG and JPEG files to feed instead of --inputs; without --labels each subfolder is a class. "
             "INPUT=FOLDER for a model with several inputs.");
  flags->Add("labels", &options->labels, "FILE",
             "Labels for the accuracy: an NPY file with one integer, or numbers, per row; for --images also text lines "
             "'file,class' or 'file,number,...', or one class per image in the order of names.");
  flags->Add("tolerance", &options->tolerance, "X",
             "Maximum difference of an output, relative to its scale (at least 1e-06). Exit status 1 if it is "
             "exceeded.");
  flags->Add("max_accuracy_drop", &options->max_accuracy_drop, "X",
             "Maximum loss of accuracy, as a fraction. Exit status 1 if it is exceeded.");
  flags->Group("inputs");
  flags->Add("max_image_pixels", &options->max_image_pixels, "N", "Maximum number of pixels of an image.");
  flags->Add("batch", &options->batch, "N", "Rows per run; 0: the batch of the model, or 32.");
  flags->Add("samples", &options->samples, "N", "Number of random inputs.");
  flags->Add("seed", &options->seed, "N", "Seed of the random inputs.");
  AddImageFlags(&options->image, flags);
  flags->Group("accuracy");
  flags->Add("class_names", &options->class_names, "FILE", "File with the names of the classes, one per line.");
  flags->Add("label_offset", &options->label_offset, "N",
             "Number added to each label: 1 for a model with a background class that the labels do not have.");
  flags->Add("confusion", &options->confusion, "Print the confusion matrix, for up to 16 classes.");
  flags->Add("per_class", &options->per_class, "Print the accuracy of each class.");
  flags->Add("perturb", &options->perturb, "LIST",
             "Also measure accuracy under distortions: blur, dark, off_center, fisheye, noise, jpeg, separated by "
             "commas, with default strengths or with given ones (blur=0.01:0.03). For NPY files, the --image_ flags "
             "describe the conversion that made them.");
  flags->Group("layers and latency");
  flags->Add("sqnr", &options->sqnr,
             "Also compare inner tensors, on at most 8 batches: the SQNR of each layer alone, computed from the "
             "inputs that it has in the reference, and accumulated.");
  flags->Add("lineage", &options->lineage, "FILE",
             "File that transform_graph --lineage wrote for the candidate, for --sqnr. Default: tensors of equal names "
             "are compared.");
  flags->AddChoice("simulate", &options->simulate, {"half", "bfloat16"},
                   "Run the reference alone with every activation and weight rounded to this type, and name the first "
                   "node that overflows or loses the answer. Exit status 1 if an output is ruined. No candidate.");
  flags->Add("runs", &options->runs, "N", "Number of runs of each model, in turn, for the median latency; 0: none.");
  flags->Group("certificate");
  flags->Add(
      "certificate", &options->certificate, "FILE",
      "Certificate of a model, which optimize_model writes, or a model that holds its own: check that --candidate "
      "(default: the model that holds it) is the certified model, and that this machine computes the outputs of "
      "its proof. Needs no --reference. --tolerance limits the difference.");
  flags->Group("");
  AddRunFlags(&options->run, flags);
  flags->Add("json", &options->json, "Print one JSON object instead of text.");
  AddReadFlags(&options->read, flags);
  flags->MarkCommon({"reference", "candidate", "inputs", "images", "labels", "outputs", "tolerance",
                     "max_accuracy_drop", "delegate", "precision", "threads", "sqnr", "simulate", "runs", "certificate",
                     "json"});
  flags->AcceptAsArguments({"reference", "candidate"});
}

// Repeats the proof of a certificate. Aborted if the model or its outputs are others.
absl::Status CheckCertificate(const ValidateModelOptions& options, FileSystem& files, Console& console) {
  if (!options.reference.empty() && !options.candidate.empty()) {
    return absl::InvalidArgumentError("--certificate takes one model, found --reference and --candidate");
  }
  std::string path = options.candidate.empty() ? options.reference : options.candidate;
  std::string text;
  PF_RETURN_IF_ERROR(CertifyModel(files, options.certificate, &text).status());
  if (!text.empty() && path.empty()) path = options.certificate;
  if (path.empty()) return absl::InvalidArgumentError("--candidate is missing");
  if (text.empty()) {
    if (path == options.certificate) {
      return absl::InvalidArgumentError(absl::StrCat("'", path, "' holds no certificate"));
    }
    PF_ASSIGN_OR_RETURN(text, files.ReadFile(options.certificate));
  }
  absl::StatusOr<Certificate> certificate = ParseCertificate(text);
  PF_RETURN_IF_ERROR(Annotate(certificate.status(), absl::StrCat("'", options.certificate, "'")));
  PF_ASSIGN_OR_RETURN(const CertifiedFile file, CertifyModel(files, path, nullptr));
  if (file.sha256 != certificate->model.sha256) {
    return AnswerIsNo(absl::StrCat("'", path, "' is not the model of the certificate: its SHA-256 is ", file.sha256,
                                   ", expected ", certificate->model.sha256));
  }
  console.Progress("repeating the proof");
  const ModelOpener opener(files, options.read, console);
  PF_ASSIGN_OR_RETURN(const std::unique_ptr<Graph> graph, opener.Open(path));
  std::vector<std::string> notes;
  const std::string inputs = absl::StrJoin(certificate->inputs, ",");
  PF_RETURN_IF_ERROR(DeclareOrFindInterface(inputs.empty() ? std::nullopt : std::make_optional(inputs),
                                            absl::StrJoin(certificate->outputs, ","), graph.get(), &notes));
  PF_ASSIGN_OR_RETURN(const RunOptions run, MakeRunOptions(options.run, files));
  PF_ASSIGN_OR_RETURN(const std::vector<ProvenOutput> found, ProveOutputs(*graph, certificate->seed, run.chosen));
  console.Progress("");
  PF_ASSIGN_OR_RETURN(const std::vector<ProofAgreement> agreements, CompareProofs(certificate->proof, found));
  Table table({{"output"}, {"bits"}, {"difference", true}});
  const double allowed = options.tolerance.value_or(kProofTolerance);
  const ProofAgreement* worst = nullptr;
  for (const ProofAgreement& agreement : agreements) {
    table.AddRow({Printable(agreement.name), agreement.is_identical ? "identical" : "other",
                  FormatNumber(agreement.relative_rms)});
    if (worst == nullptr || agreement.relative_rms > worst->relative_rms) worst = &agreement;
  }
  console.out << "certificate of " << Printable(certificate->date) << " by " << Printable(certificate->tool) << " on "
              << Printable(certificate->machine) << "\n";
  table.Print(console, "  ");
  if (worst != nullptr && !(worst->relative_rms <= allowed)) {
    return AnswerIsNo(absl::StrCat("output '", worst->name, "' differs from the proof by about ",
                                   FormatNumber(worst->relative_rms), " of its rms, allowed ", FormatNumber(allowed)));
  }
  return absl::OkStatus();
}

absl::Status CheckOptions(const ValidateModelOptions& options) {
  if (options.reference.empty()) return absl::InvalidArgumentError("--reference is missing");
  if (options.candidate.empty() && options.simulate.empty())
    return absl::InvalidArgumentError("--candidate is missing");
  if (!options.candidate.empty() && !options.simulate.empty()) {
    return absl::InvalidArgumentError("--simulate and --candidate are given, expected one of them");
  }
  const auto check = [](absl::string_view flag, int32_t found, int32_t least) {
    if (found >= least) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(flag, ": found ", found, ", expected at least ", least));
  };
  PF_RETURN_IF_ERROR(check("--batch", options.batch, 0));
  PF_RETURN_IF_ERROR(check("--runs", options.runs, 0));
  PF_RETURN_IF_ERROR(check("--samples", options.samples, 1));
  if (!options.images.empty() && !options.inputs.empty()) {
    return absl::InvalidArgumentError("--images and --inputs are given, expected one of them");
  }
  if (!options.labels.empty() && options.inputs.empty() && options.images.empty()) {
    return absl::InvalidArgumentError("--labels needs --images or --inputs: random inputs have no right answers");
  }
  if (!options.lineage.empty() && !options.sqnr) return absl::InvalidArgumentError("--lineage needs --sqnr");
  return absl::OkStatus();
}

// Checks the flags of a run without labels. InvalidArgument for flags that need labels.
absl::Status CheckNoLabelsNeeded(const ValidateModelOptions& options) {
  const auto check = [&](absl::string_view flag, bool is_given) {
    if (!is_given) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(flag, " needs the right answers: --labels, or --images with a folder for each class"));
  };
  PF_RETURN_IF_ERROR(check("--max_accuracy_drop", options.max_accuracy_drop.has_value()));
  PF_RETURN_IF_ERROR(check("--perturb", !options.perturb.empty()));
  PF_RETURN_IF_ERROR(check("--confusion", options.confusion));
  return check("--per_class", options.per_class);
}

// Returns the inputs named by the pieces, or nothing if a piece has no name.
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

// The inputs and the labels.
struct Questions {
  std::unique_ptr<BatchSource> source;
  std::optional<Labels> labels;
  std::vector<std::string> class_names;
};

ImageLimits LimitsOf(const ValidateModelOptions& options) {
  ImageLimits limits;
  limits.max_pixels =
      static_cast<int64_t>(std::min<uint64_t>(options.max_image_pixels, static_cast<uint64_t>(limits.max_pixels) * 16));
  return limits;
}

absl::StatusOr<Questions> ImageQuestions(const ValidateModelOptions& options, const Graph& reference, FileSystem& files,
                                         Console& console) {
  PF_ASSIGN_OR_RETURN(const Endpoint* input, OnlyInput(reference.inputs(), "--images"));
  PF_ASSIGN_OR_RETURN(PictureConverter converter, MakePictureConverter(options.image, *input));
  PF_ASSIGN_OR_RETURN(LabelledImages images,
                      FindLabelledImages(files, options.images.substr(options.images.find('=') + 1),
                                         {options.labels, options.class_names, options.label_offset}, options.seed));
  if (images.num_left_out > 0) {
    console.err << "note: " << images.num_left_out << " pictures have no label and are left out\n";
  }
  const int64_t fixed = FixedBatch(reference.inputs());
  const PictureFormat& format = converter.format();
  const int64_t fitting = std::max<int64_t>(1, kMostBatchPixels / (format.height * format.width));
  if (fixed > fitting) {
    return absl::ResourceExhaustedError(absl::StrCat("input '", input->text, "' takes ", fixed, " pictures of ",
                                                     format.height, " x ", format.width,
                                                     " at a time, expected at most ", kMostBatchPixels, " pixels"));
  }
  const int64_t batch =
      fixed > 0 ? fixed : std::min(fitting, options.batch > 0 ? int64_t{options.batch} : kDefaultBatch);
  Questions questions;
  if (images.labels.num_rows() > 0) questions.labels = std::move(images.labels);
  questions.class_names = std::move(images.class_names);
  questions.source =
      ImageBatches(files, std::move(images.paths), std::move(converter), LimitsOf(options), batch, fixed > 0);
  return questions;
}

absl::StatusOr<Questions> ArrayQuestions(const ValidateModelOptions& options, const std::vector<std::string>& pieces,
                                         const Graph& reference, FileSystem& files) {
  Questions questions;
  std::vector<InputSet> sets;
  if (pieces.empty()) {
    PF_ASSIGN_OR_RETURN(sets, SeededInputSets(reference, reference.inputs(), options.seed, options.samples));
  } else {
    PF_ASSIGN_OR_RETURN(sets, ReadInputSets(files, pieces, reference, /*any_batch=*/true));
    const int64_t fixed = FixedBatch(reference.inputs());
    PF_ASSIGN_OR_RETURN(sets, SplitBatches(sets, options.batch > 0 ? options.batch
                                                 : fixed > 0       ? fixed
                                                                   : kDefaultBatch));
  }
  std::optional<PictureConverter> converter;
  if (!options.perturb.empty()) {
    PF_ASSIGN_OR_RETURN(const Endpoint* input, OnlyInput(reference.inputs(), "--perturb"));
    ImageFlags image = options.image;
    const absl::Span<const int64_t> dims = sets[0][0].shape().dims();
    // If the model accepts pictures of any size, the size of the arrays is used.
    if (image.size.empty() && dims.size() == 4) {
      const bool is_last = dims[3] == 1 || dims[3] == 3;
      image.size = absl::StrCat(dims[is_last ? 1 : 2], ",", dims[is_last ? 2 : 3]);
    }
    PF_ASSIGN_OR_RETURN(converter, MakePictureConverter(image, *input));
  }
  questions.source = KeptBatches(std::move(sets), std::move(converter));
  if (!options.class_names.empty()) {
    PF_ASSIGN_OR_RETURN(questions.class_names, ReadClassNames(files, options.class_names));
  }
  if (options.labels.empty()) return questions;
  PF_ASSIGN_OR_RETURN(questions.labels, ReadNpyLabels(files, options.labels));
  PF_RETURN_IF_ERROR(ShiftClasses(options.label_offset, &*questions.labels));
  if (questions.labels->num_rows() != questions.source->num_rows()) {
    return absl::InvalidArgumentError(absl::StrCat("'", options.labels, "' holds ", questions.labels->num_rows(),
                                                   " labels, the inputs have ", questions.source->num_rows(), " rows"));
  }
  return questions;
}

// Returns the batches with which a precision is chosen.
absl::StatusOr<std::vector<InputSet>> FirstSets(BatchSource& source) {
  constexpr size_t kEnough = 8;
  std::vector<InputSet> sets;
  for (size_t i = 0; i < std::min(kEnough, source.num_batches()); ++i) {
    PF_ASSIGN_OR_RETURN(Batch batch, source.Read(i, nullptr));
    sets.push_back(std::move(batch.feeds));
  }
  return sets;
}

// Returns, for example, "[=====>    ] 120 of 540 rows, 3 s left".
std::string ProgressLine(int64_t done, int64_t all, double seconds) {
  constexpr int kWidth = 30;
  const double share = all == 0 ? 1 : static_cast<double>(done) / static_cast<double>(all);
  const int filled = static_cast<int>(share * kWidth);
  return absl::StrCat("[", std::string(static_cast<size_t>(filled), '='), filled < kWidth ? ">" : "",
                      std::string(static_cast<size_t>(std::max(0, kWidth - filled - 1)), ' '), "] ", done, " of ", all,
                      " rows, ", FormatSeconds(share > 0 ? seconds * (1 - share) / share : 0), " left");
}

void WriteJson(const Validation& validation, const std::optional<LayerNoiseReport>& layers, bool passes, bool explain,
               const KeptWeights& kept, std::ostream& out) {
  JsonWriter json(out);
  json.BeginObject();
  json.Key("passes").Bool(passes);
  WriteValidation(validation, &json);
  if (layers.has_value()) {
    json.Key("layers");
    WriteLayerNoise(*layers, &json);
  }
  if (explain) {
    json.Key("candidate_plan");
    WriteDelegation(validation.candidate_plan, &json);
    json.Key("packed_weights");
    kept.Write(&json);
  }
  json.End();
}

// Returns OK, or the reason why a limit is exceeded.
absl::Status Judge(const ValidateModelOptions& options, const Validation& validation) {
  for (const OutputValidation& output : validation.outputs) {
    if (!output.difference.mismatch.empty()) {
      return AnswerIsNo(absl::StrCat("output '", output.name, "': ", output.difference.mismatch));
    }
    if (options.tolerance.has_value() && !(output.difference.relative() <= *options.tolerance)) {
      return AnswerIsNo(absl::StrCat("output '", output.name, "' differs by ",
                                     FormatNumber(output.difference.relative()), " relative to its scale, allowed ",
                                     FormatNumber(*options.tolerance)));
    }
    const OutputScore& score = output.score;
    if (!options.max_accuracy_drop.has_value() || score.kind != OutputScore::Kind::kClasses) continue;
    const double drop = score.Share(score.reference.right) - score.Share(score.candidate.right);
    if (drop > *options.max_accuracy_drop) {
      return AnswerIsNo(absl::StrCat("output '", output.name, "' loses ", FormatNumber(drop),
                                     " of its right answers, allowed ", FormatNumber(*options.max_accuracy_drop)));
    }
  }
  return absl::OkStatus();
}

// Prints on `err` which outputs are ruined, and how to find the cause.
void WarnOfRuin(const Validation& validation, const Console& console) {
  bool any = false;
  for (const OutputValidation& output : validation.outputs) {
    if (JudgeQuality(output.difference) != OutputQuality::kRuined) continue;
    any = true;
    console.err << console.Styled(Style::kBad, "warning") << ": output '" << Printable(output.name)
                << "' is ruined: " << Printable(output.difference.ToString()) << "\n";
  }
  if (any) {
    console.err << "  way out: --sqnr shows the layers at fault; transform_graph --transforms=quantize measures every "
                   "output and keeps layers in float; --precision=auto chooses a precision that keeps the outputs\n";
  }
}

absl::StatusOr<LayerNoiseReport> MeasureLayers(const ValidateModelOptions& options, const Graph& reference,
                                               const Graph& candidate, const ValidationSettings& settings,
                                               BatchSource& source, FileSystem& files, const Console& console) {
  OriginsByName origins;
  LayerNoiseSettings layer_settings;
  layer_settings.reference = settings.reference;
  layer_settings.candidate = settings.candidate;
  layer_settings.is_interrupted = &Interruption::IsRequested;
  layer_settings.progress = [&](size_t done, size_t all) {
    console.Progress(absl::StrCat("comparing layers: ", 100 * done / std::max<size_t>(all, 1), " %"));
  };
  if (!options.lineage.empty()) {
    PF_ASSIGN_OR_RETURN(origins, ReadLineageFile(files, options.lineage));
    layer_settings.origins = &origins;
  }
  console.Progress("comparing layers");
  absl::StatusOr<LayerNoiseReport> report = MeasureLayerNoise(reference, candidate, source, layer_settings);
  console.Progress("");
  return report;
}

// The node of a tensor, as reports name it.
std::string NodeOf(const SimulatedTensor& tensor) { return absl::StrCat("node '", tensor.name, "' (", tensor.op, ")"); }

// Ranges beyond 2^24 are clearer as powers of ten.
std::string MagnitudeText(double value) {
  constexpr double kMostDigits = 16777216;
  return value < kMostDigits ? FormatCount(static_cast<uint64_t>(value)) : FormatNumber(value);
}

void PrintSimulation(const std::string& type, const HalfSimulation& simulation, const Console& console) {
  console.out << "simulated " << type << " on " << simulation.num_batches
              << (simulation.num_batches == 1 ? " batch" : " batches") << ": every activation and weight rounded\n";
  Table outputs({{"output"}, {"largest", true}, {"relative error", true}, {"SQNR dB", true}, {"verdict"}});
  for (const SimulatedTensor& output : simulation.outputs) {
    const OutputDifference& difference = output.difference;
    outputs.AddRow(
        {output.name, FormatNumber(output.largest), FormatNumber(difference.relative()),
         FormatNumber(difference.sqnr_db),
         difference.num_nonfinite_mismatches > 0 ? "ruined" : std::string(QualityName(JudgeQuality(difference)))});
  }
  outputs.Print(console, "  ");
  if (!simulation.covers_inner_tensors) {
    console.out << "only outputs are compared: inner tensors of loops and branches cannot be read\n";
  }
  if (simulation.beyond.empty()) {
    console.out << "no tensor leaves the range of " << type << "\n";
  } else {
    const SimulatedTensor& first = simulation.beyond[0];
    console.out << "first overflow: " << Printable(NodeOf(first)) << " reaches " << MagnitudeText(first.largest)
                << ", beyond " << MagnitudeText(simulation.limit) << "\n";
  }
  if (simulation.lost.has_value()) {
    const OutputDifference& difference = simulation.lost->difference;
    console.out << "first node that loses the answer: " << Printable(NodeOf(*simulation.lost)) << ": ";
    if (difference.num_nonfinite_mismatches > 0) {
      console.out << FormatCount(static_cast<uint64_t>(difference.num_nonfinite_mismatches)) << " of "
                  << FormatCount(static_cast<uint64_t>(difference.num_elements)) << " values are not finite\n";
    } else {
      console.out << "SQNR " << FormatNumber(difference.sqnr_db) << " dB\n";
    }
  }
  if (simulation.beyond.empty()) return;
  console.out << "nodes to keep in float, unless they are rescaled\n";
  Table nodes({{"node"}, {"op"}, {"largest", true}});
  for (const SimulatedTensor& tensor : simulation.beyond) {
    nodes.AddRow({tensor.name, tensor.op, MagnitudeText(tensor.largest)});
  }
  nodes.Print(console, "  ");
  if (simulation.dtype != DType::kHalf) return;
  std::vector<std::string> entries;
  for (const SimulatedTensor& tensor : simulation.beyond) {
    // Rounded up, so that the scale suffices.
    entries.push_back(absl::StrFormat("largest=\"%s=%.0f\"", tensor.name, std::ceil(tensor.largest)));
  }
  console.out << "repair: --transforms='rescale_for_half(" << Printable(absl::StrJoin(entries, ", ")) << ")'\n";
}

void WriteSimulation(const std::string& type, const HalfSimulation& simulation, std::ostream& out) {
  JsonWriter json(out);
  const auto write = [&](const SimulatedTensor& tensor) {
    const OutputDifference& difference = tensor.difference;
    json.BeginObject();
    json.Key("name").Text(tensor.name);
    json.Key("op").Text(tensor.op);
    json.Key("largest").Number(tensor.largest);
    json.Key("relative_error").Number(difference.relative());
    json.Key("sqnr_db").Number(difference.sqnr_db);
    json.Key("not_finite").Integer(difference.num_nonfinite_mismatches);
    json.End();
  };
  json.BeginObject();
  json.Key("simulate").Text(type);
  json.Key("limit").Number(simulation.limit);
  json.Key("batches").Count(simulation.num_batches);
  json.Key("covers_inner_tensors").Bool(simulation.covers_inner_tensors);
  json.Key("outputs").BeginArray();
  for (const SimulatedTensor& output : simulation.outputs) write(output);
  json.End();
  json.Key("overflows").BeginArray();
  for (const SimulatedTensor& tensor : simulation.beyond) write(tensor);
  json.End();
  json.Key("first_lost");
  if (simulation.lost.has_value()) {
    write(*simulation.lost);
  } else {
    json.Null();
  }
  json.End();
}

// Batches that the simulation runs: as many as --sqnr, for the same reason.
constexpr size_t kMostSimulatedBatches = 8;

absl::Status Simulate(const ValidateModelOptions& options, const Graph& graph, BatchSource& source,
                      const SessionOptions& session, Console& console) {
  console.Progress("running the model in float and rounded");
  const DType dtype = options.simulate == "half" ? DType::kHalf : DType::kBFloat16;
  PF_ASSIGN_OR_RETURN(const HalfSimulation simulation,
                      SimulateHalf(graph, dtype, source, kMostSimulatedBatches, session));
  console.Progress("");
  if (options.json) {
    WriteSimulation(options.simulate, simulation, console.out);
  } else {
    PrintSimulation(options.simulate, simulation, console);
  }
  for (const SimulatedTensor& output : simulation.outputs) {
    const OutputDifference& difference = output.difference;
    if (options.tolerance.has_value() && !difference.IsWithin(*options.tolerance)) {
      return AnswerIsNo(absl::StrCat("output '", output.name, "' differs by ", FormatNumber(difference.relative()),
                                     " relative to its scale, allowed ", FormatNumber(*options.tolerance)));
    }
    if (difference.num_nonfinite_mismatches > 0 || JudgeQuality(difference) == OutputQuality::kRuined) {
      return AnswerIsNo(absl::StrCat("output '", output.name, "' is ruined in ", options.simulate));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ValidateModel(const ValidateModelOptions& options, FileSystem& files, Console& console) {
  if (!options.certificate.empty()) return CheckCertificate(options, files, console);
  PF_RETURN_IF_ERROR(CheckOptions(options));
  PF_ASSIGN_OR_RETURN(RunOptions run, MakeRunOptions(options.run, files));
  std::vector<Distortion> distortions;
  if (!options.perturb.empty()) {
    absl::StatusOr<std::vector<Distortion>> parsed = ParseDistortions(options.perturb);
    if (!parsed.ok()) return Annotate(parsed.status(), "--perturb");
    distortions = *std::move(parsed);
  }
  std::vector<std::string> pieces;
  if (!options.images.empty()) pieces.push_back(options.images);
  for (const std::string& list : options.inputs) {
    for (std::string& piece : SplitList(list)) pieces.push_back(std::move(piece));
  }
  console.Progress("reading the models");
  const ModelOpener opener(files, options.read, console);
  PF_ASSIGN_OR_RETURN(const std::unique_ptr<Graph> reference, opener.Open(options.reference));
  std::unique_ptr<Graph> candidate;
  if (options.simulate.empty()) {
    PF_ASSIGN_OR_RETURN(candidate, opener.Open(options.candidate));
  }
  std::vector<std::string> notes;
  PF_RETURN_IF_ERROR(
      Annotate(DeclareOrFindInterface(NamedInputs(pieces), options.outputs, reference.get(), &notes), "reference"));
  if (reference->outputs().empty()) return absl::InvalidArgumentError("no output is named");
  PF_ASSIGN_OR_RETURN(const Questions questions, options.images.empty()
                                                     ? ArrayQuestions(options, pieces, *reference, files)
                                                     : ImageQuestions(options, *reference, files, console));
  if (!options.simulate.empty()) return Simulate(options, *reference, *questions.source, run.reference, console);
  if (!questions.labels.has_value()) PF_RETURN_IF_ERROR(CheckNoLabelsNeeded(options));
  const Interruption interruption;
  ValidationSettings settings;
  settings.reference = std::move(run.reference);
  settings.candidate = std::move(run.chosen);
  settings.distortions = std::move(distortions);
  settings.seed = options.seed;
  settings.is_interrupted = &Interruption::IsRequested;
  settings.reference.loop_limits.is_cancelled = settings.candidate.loop_limits.is_cancelled = settings.is_interrupted;
  std::vector<InputSet> sets;
  if (!options.run.precision.empty() || options.run.delegate == kBestDelegate) {
    console.Progress(options.run.precision.empty() ? "measuring the delegates" : "settling the precision");
    PF_ASSIGN_OR_RETURN(sets, ReadCalibrationInputs(files, options.run.calibration_inputs, options.image,
                                                    LimitsOf(options), *reference));
    if (sets.empty()) {
      PF_ASSIGN_OR_RETURN(sets, FirstSets(*questions.source));
    }
  }
  const ModelToRun model = {*candidate, reference->inputs(), reference->outputs(), options.candidate};
  PF_ASSIGN_OR_RETURN(const KeptWeights kept,
                      ResolveDelegate(options.run, model, sets, files, &settings.candidate, console));
  settings.timed_runs = options.runs;
  console.Progress("running the models");
  const auto start = std::chrono::steady_clock::now();
  settings.progress = [&](int64_t done) {
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    console.Progress(ProgressLine(done, questions.source->num_rows(), seconds));
  };
  PF_ASSIGN_OR_RETURN(const Validation validation,
                      Validate(*reference, *candidate, *questions.source,
                               questions.labels.has_value() ? &*questions.labels : nullptr, settings));
  console.Progress("");
  kept.Save(files, console);
  if (!validation.candidate_plan.delegation.failure.empty()) {
    console.err << "note: candidate: " << Printable(validation.candidate_plan.delegation.failure) << "\n";
  }
  std::optional<LayerNoiseReport> layers;
  if (options.sqnr && !validation.was_interrupted) {
    PF_ASSIGN_OR_RETURN(layers,
                        MeasureLayers(options, *reference, *candidate, settings, *questions.source, files, console));
  }
  const absl::Status verdict = Judge(options, validation);
  if (options.json) {
    WriteJson(validation, layers, verdict.ok(), options.run.explain, kept, console.out);
  } else {
    PrintValidation(validation, {options.confusion, options.per_class, questions.class_names}, console);
    if (layers.has_value()) PrintLayerNoise(*layers, console);
    if (options.run.explain) {
      PrintDelegation(validation.candidate_plan, console);
      kept.Print(console);
    }
  }
  WarnOfRuin(validation, console);
  if (layers.has_value() && layers->was_interrupted) return absl::CancelledError("interrupted between layers");
  if (validation.was_interrupted) {
    return absl::CancelledError(
        absl::StrCat("interrupted after ", validation.num_runs, " of ", validation.num_batches, " runs"));
  }
  return verdict;
}

Tool ValidateModelTool() {
  return DefineTool<ValidateModelOptions>(
      "validate_model", "compares the outputs and the accuracy of two models",
      {{"Fail if an output differs by more than 5 % on random inputs.", "model.pb tiny.pb --tolerance=0.05"},
       {"Measure the accuracy of both models on labelled inputs.",
        "model.pb tiny.pb --inputs=image=images.npy --labels=labels.npy"},
       {"Measure accuracy on a folder of images per class, also blurred and darkened.",
        "model.pb tiny.pb --images=photos --image_fit=crop --perturb=blur,dark"},
       {"Print the quantisation error of each layer.", "folded.pb tiny.pb --images=photos --sqnr"},
       {"Compare int8, calibrated on other images, with f32.",
        "model.pb model.pb --images=photos --delegate=onednn --precision=int8 "
        "--calibration_inputs=more_photos"},
       {"Measure the fastest precision of a model, and its error.",
        "model.pb model.pb --inputs=photo.npy --delegate=onednn --precision=auto --runs=20"}},
      &DefineFlags, &ValidateModel);
}

}  // namespace permafrost
