// Runs a model in a session on request, so that a benchmark can alternate it with equally warm peers.
//
// Reads requests from standard input, one per line, with words separated by tabs, and answers each with one line of
// JSON, or with {"error": "..."}. worker.py answers the same requests for the peers. Prints {"import_ns": 0} at the
// start.
//
//   load   model=PATH           loads; then any of these:                             {"ns": N}
//          inputs=A,B outputs=C,D  nodes; default: those that the model declares
//          delegate=NAME precision=NAME threads=N
//          samples=A0.npy,B0.npy,A1.npy,B1.npy   inputs to choose and calibrate precisions; default: the first feed
//   feed   A.npy B.npy          the inputs, in the order of load's; plans             {"ns": N}
//   run    N                    computes N times into the same buffers                {"ns": [N, ...]}
//   save   PREFIX               the last outputs, to PREFIX_0.npy, PREFIX_1.npy, ...  {"outputs": N}
//   quit
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "graph/base/status.h"
#include "io/file_system.h"
#include "io/formats/json_value.h"
#include "io/formats/npy.h"
#include "io/model_file.h"
#include "runtime_check/delegates/delegate_registry.h"
#include "runtime_check/packing/packed_region.h"
#include "runtime_check/precision/precision_choice.h"
#include "runtime_check/session.h"
#include "tools/model/model_inputs.h"
#include "tools/model/weight_files.h"

namespace permafrost {
namespace {

using Clock = std::chrono::steady_clock;

// Larger than any round of a benchmark; bounds the memory that a request can use.
constexpr int kMaxRuns = 1000000;

int64_t Nanoseconds(Clock::duration duration) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(duration).count();
}

struct Settings {
  std::string model, delegate = "reference", precision = "f32";
  std::vector<std::string> inputs, outputs, samples;
  int threads = 1;
};

absl::StatusOr<Settings> ParseSettings(absl::Span<const std::string> words) {
  Settings settings;
  for (const std::string& word : words) {
    const std::pair<std::string, std::string> item = absl::StrSplit(word, absl::MaxSplits('=', 1));
    const auto& [key, value] = item;
    if (key == "model") {
      settings.model = value;
    } else if (key == "inputs") {
      settings.inputs = absl::StrSplit(value, ',', absl::SkipEmpty());
    } else if (key == "outputs") {
      settings.outputs = absl::StrSplit(value, ',', absl::SkipEmpty());
    } else if (key == "samples") {
      settings.samples = absl::StrSplit(value, ',', absl::SkipEmpty());
    } else if (key == "delegate") {
      settings.delegate = value;
    } else if (key == "precision") {
      settings.precision = value;
    } else if (key == "threads") {
      if (!absl::SimpleAtoi(value, &settings.threads) || settings.threads < 1) {
        return absl::InvalidArgumentError(absl::StrCat("threads is '", value, "', expected at least 1"));
      }
    } else {
      return absl::InvalidArgumentError(absl::StrCat(
          "unknown key '", key, "', expected one of model, inputs, outputs, threads, delegate, precision, samples"));
    }
  }
  if (settings.model.empty()) return absl::InvalidArgumentError("load needs model");
  return settings;
}

constexpr char kAuto[] = "auto";

// Returns whether the precision depends on the inputs. It is then chosen, or calibrated, with the first feeds.
bool IsSettledLater(const Settings& settings) {
  if (settings.precision == kAuto) return true;
  const DelegateInfo* info = FindDelegateInfo(settings.delegate);
  return info != nullptr && info->NeedsPlan(settings.precision);
}

absl::StatusOr<Tensor> ReadAligned(const std::string& path) {
  PF_ASSIGN_OR_RETURN(const Tensor tensor, ReadNpyFile(RealFileSystem(), path));
  return tensor.Aligned();
}

// Session options for the given names of a delegate and of a precision. `*is_settled`: the model is packed for the
// precision, and its package contains the precision plan.
absl::StatusOr<SessionOptions> OptionsFor(const Settings& settings, bool* is_settled) {
  SessionOptions options;
  options.num_threads = settings.threads;
  DelegateOptions delegate_options;
  delegate_options.precision = settings.precision;
  const std::string identity = PackingIdentity(settings.delegate);
  std::vector<std::string> notes;
  if (!identity.empty()) {
    const auto region =
        FindPackedRegion(RealFileSystem(), settings.model, settings.delegate, settings.precision, identity, &notes);
    if (region != nullptr) {
      PF_ASSIGN_OR_RETURN(delegate_options, AsPacked(CacheOf(region)));
      options.packed = delegate_options.packed;
      *is_settled = true;
    }
  }
  for (const std::string& note : notes) std::cerr << note << "\n";
  if (!*is_settled && IsSettledLater(settings)) return options;
  PF_ASSIGN_OR_RETURN(options.delegate, MakeDelegate(settings.delegate, delegate_options));
  return options;
}

// Answers requests. An answer is the members of a JSON object.
class Server {
 public:
  absl::StatusOr<std::string> Answer(const std::string& line) {
    const std::vector<std::string> words = absl::StrSplit(line, '\t');
    const auto arguments = absl::MakeConstSpan(words).subspan(1);
    if (words[0] == "load") return Load(arguments);
    if (words[0] == "feed") return Feed(arguments);
    if (words[0] == "run") return Run(arguments);
    if (words[0] == "save") return Save(arguments);
    return absl::InvalidArgumentError(
        absl::StrCat("unknown request '", words[0], "', expected one of load, feed, run, save, quit"));
  }

 private:
  absl::StatusOr<std::string> Load(absl::Span<const std::string> arguments) {
    PF_ASSIGN_OR_RETURN(settings_, ParseSettings(arguments));
    const Settings& settings = settings_;
    session_ = nullptr;
    is_settled_ = false;
    const auto start = Clock::now();
    PF_ASSIGN_OR_RETURN(SessionOptions options, OptionsFor(settings, &is_settled_));
    outputs_.clear();
    memory_.clear();
    has_feeds_ = false;
    PF_ASSIGN_OR_RETURN(graph_, OpenModel(RealFileSystem(), settings.model));
    if (settings.outputs.empty()) {
      for (const Endpoint& input : graph_->inputs()) settings_.inputs.push_back(input.text);
      for (const Endpoint& output : graph_->outputs()) settings_.outputs.push_back(output.text);
      if (settings.outputs.empty()) return absl::InvalidArgumentError("the model declares no outputs; load needs them");
    } else {
      PF_RETURN_IF_ERROR(graph_->DeclareInterface(settings.inputs, settings.outputs));
    }
    PF_ASSIGN_OR_RETURN(session_, Session::Create(*graph_, settings.inputs, settings.outputs, std::move(options)));
    return absl::StrCat("\"ns\": ", Nanoseconds(Clock::now() - start));
  }

  absl::StatusOr<std::string> Feed(absl::Span<const std::string> arguments) {
    if (session_ == nullptr) return absl::FailedPreconditionError("feed before load");
    feeds_.clear();
    std::vector<Shape> shapes;
    for (const std::string& path : arguments) {
      PF_ASSIGN_OR_RETURN(Tensor aligned, ReadAligned(path));
      shapes.push_back(aligned.shape());
      feeds_.push_back(std::move(aligned));
    }
    const auto start = Clock::now();
    if (!is_settled_ && IsSettledLater(settings_)) PF_RETURN_IF_ERROR(Choose());
    PF_ASSIGN_OR_RETURN(const std::vector<TensorSpec> specs, session_->Plan(shapes));
    outputs_.clear();
    memory_.clear();
    has_feeds_ = true;
    for (const TensorSpec& spec : specs) {
      if (!spec.shape.IsFullyKnown() || spec.dtype == DType::kString) {  // Each run returns its outputs.
        memory_.clear();
        break;
      }
      char* data = nullptr;
      PF_ASSIGN_OR_RETURN(Tensor output, Tensor::Allocate(spec.dtype, spec.shape, &data));
      memory_.emplace_back(data, output.bytes().size());
      outputs_.push_back(std::move(output));
    }
    return absl::StrCat("\"ns\": ", Nanoseconds(Clock::now() - start));
  }

  // Uses the samples if there are any, otherwise the feeds.
  absl::Status Choose() {
    SessionOptions options;
    options.num_threads = settings_.threads;
    const size_t each = settings_.inputs.size();
    if (each == 0 || settings_.samples.size() % each != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("found ", settings_.samples.size(), " samples, expected some for ", each, " inputs each"));
    }
    std::vector<std::vector<Tensor>> samples;
    for (size_t i = 0; i < settings_.samples.size(); ++i) {
      if (i % each == 0) samples.emplace_back();
      PF_ASSIGN_OR_RETURN(samples.back().emplace_back(), ReadAligned(settings_.samples[i]));
    }
    if (samples.empty()) samples.push_back(feeds_);
    ChoiceOptions choice_options;
    if (settings_.precision != kAuto) choice_options.precisions = {settings_.precision};
    PF_ASSIGN_OR_RETURN(const PrecisionChoice choice,
                        ChoosePrecision(*graph_, settings_.inputs, settings_.outputs, samples, settings_.delegate,
                                        options, choice_options));
    for (const PrecisionTrial& trial : choice.trials) {
      std::cerr << trial.precision << ": " << trial.milliseconds << " ms, error " << trial.worst_relative_rms << " "
                << trial.reason << "\n";
      for (const std::string& note : trial.notes) std::cerr << "  " << note << "\n";
    }
    DelegateOptions delegate_options{choice.precision, choice.plan};
    PF_ASSIGN_OR_RETURN(options.delegate, MakeDelegate(settings_.delegate, delegate_options));
    PF_ASSIGN_OR_RETURN(session_, Session::Create(*graph_, settings_.inputs, settings_.outputs, std::move(options)));
    settings_.precision = choice.precision;
    is_settled_ = true;
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> Run(absl::Span<const std::string> arguments) {
    if (!has_feeds_) return absl::FailedPreconditionError("run before feed");
    int runs = 0;
    if (arguments.size() != 1 || !absl::SimpleAtoi(arguments[0], &runs) || runs < 1 || runs > kMaxRuns) {
      return absl::InvalidArgumentError(absl::StrCat("run takes a number from 1 to ", kMaxRuns));
    }
    std::vector<int64_t> times(runs);
    for (int64_t& time : times) {
      const auto start = Clock::now();
      if (memory_.empty()) {
        PF_ASSIGN_OR_RETURN(outputs_, session_->Run(feeds_));
      } else {
        PF_RETURN_IF_ERROR(session_->RunInto(feeds_, memory_));
      }
      time = Nanoseconds(Clock::now() - start);
    }
    return absl::StrCat("\"ns\": [", absl::StrJoin(times, ", "), "]");
  }

  absl::StatusOr<std::string> Save(absl::Span<const std::string> arguments) {
    if (arguments.size() != 1) return absl::InvalidArgumentError("save takes a prefix");
    for (size_t i = 0; i < outputs_.size(); ++i) {
      PF_ASSIGN_OR_RETURN(const std::unique_ptr<FileWriter> writer,
                          RealFileSystem().NewWriter(absl::StrCat(arguments[0], "_", i, ".npy")));
      PF_RETURN_IF_ERROR(WriteNpy(outputs_[i], writer.get()));
      PF_RETURN_IF_ERROR(writer->Commit());
    }
    return absl::StrCat("\"outputs\": ", outputs_.size());
  }

  Settings settings_;
  bool is_settled_ = false;       // The precision is chosen, based on samples.
  std::unique_ptr<Graph> graph_;  // Must outlive the session.
  std::unique_ptr<Session> session_;
  std::vector<Tensor> feeds_;
  std::vector<Tensor> outputs_;
  std::vector<absl::Span<char>> memory_;  // Memory of outputs_; empty if their shapes are known only after a run.
  bool has_feeds_ = false;
};

void Serve() {
  std::cout << "{\"import_ns\": 0}" << std::endl;
  Server server;
  for (std::string line; std::getline(std::cin, line) && line != "quit";) {
    const absl::StatusOr<std::string> answer = server.Answer(line);
    std::cout << "{" << (answer.ok() ? *answer : absl::StrCat("\"error\": ", JsonQuoted(answer.status().message())))
              << "}" << std::endl;
  }
}

}  // namespace
}  // namespace permafrost

int main() {
  permafrost::Serve();
  return 0;
}
