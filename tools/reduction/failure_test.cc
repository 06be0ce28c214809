// Runs commands and sessions in child processes and compares what they show.
#include "tools/reduction/failure_test.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "graph/base/status.h"
#include "io/formats/npy.h"
#include "io/model_file.h"
#include "runtime_check/checking/compare.h"
#include "runtime_check/session.h"
#include "tools/command_line/child_command.h"
#include "tools/command_line/console.h"
#include "tools/model/delegate_resolution.h"
#include "tools/model/run_options.h"
#include "tools/model/tool_session.h"
#include "tools/optimizing/isolated_runs.h"

namespace permafrost {
namespace {

absl::StatusOr<std::string> RunInChild(IsolatedFunction function, double seconds) {
  absl::StatusOr<std::string> outcome = absl::InternalError("the trial did not run");
  RunIsolated({std::move(function)}, {1, seconds}, nullptr,
              [&](size_t, absl::StatusOr<std::string> result) { outcome = std::move(result); });
  return outcome;
}

// Leaves out of a message what depends on the model: quoted names and numbers.
std::string KindOf(absl::string_view message) {
  std::string kind;
  bool is_quoted = false;
  for (const char c : message) {
    if (c == '\'') is_quoted = !is_quoted;
    if (!is_quoted && !absl::ascii_isdigit(c)) kind.push_back(c);
  }
  return kind;
}

std::vector<std::string> FedNames(const ReducibleModel& model, std::vector<Tensor>* values) {
  std::vector<std::string> names;
  for (size_t i = 0; i < model.graph->inputs().size() && i < model.inputs.size(); ++i) {
    if (model.inputs[i].dtype() == DType::kInvalid) continue;
    names.push_back(model.graph->inputs()[i].text);
    values->push_back(model.inputs[i]);
  }
  return names;
}

absl::StatusOr<std::vector<Tensor>> RunGraph(const ReducibleModel& model, const std::vector<std::string>& fetches,
                                             SessionOptions options) {
  options.print = [](absl::string_view, absl::string_view) {};
  std::vector<Tensor> values;
  const std::vector<std::string> feeds = FedNames(model, &values);
  PF_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                      Session::Create(*model.graph, feeds, fetches, std::move(options)));
  return session->Run(values);
}

// Tensors as text for a pipe between processes of one machine.
absl::StatusOr<std::string> Packed(const std::vector<Tensor>& tensors) {
  std::string packed;
  const auto add = [&](int64_t number) { packed.append(reinterpret_cast<const char*>(&number), sizeof(number)); };
  for (const Tensor& tensor : tensors) {
    if (tensor.dtype() == DType::kString || SizeOf(tensor.dtype()) == 0) {
      return absl::UnimplementedError("a tensor without elements of a fixed size");
    }
    add(static_cast<int64_t>(tensor.dtype()));
    add(tensor.shape().rank());
    for (const int64_t dim : tensor.shape().dims()) add(dim);
    packed.append(tensor.bytes().data(), tensor.bytes().size());
  }
  return packed;
}

absl::StatusOr<std::vector<Tensor>> Unpacked(const std::string& packed) {
  std::vector<Tensor> tensors;
  absl::string_view rest = packed;
  const auto next = [&](int64_t* number) {
    if (rest.size() < sizeof(*number)) return false;
    std::memcpy(number, rest.data(), sizeof(*number));
    rest.remove_prefix(sizeof(*number));
    return true;
  };
  while (!rest.empty()) {
    constexpr int64_t kMostRank = 254;
    int64_t dtype = 0, rank = 0;
    if (!next(&dtype) || !next(&rank) || rank < 0 || rank > kMostRank)
      return absl::InternalError("a trial's answer is damaged");
    std::vector<int64_t> dims(static_cast<size_t>(rank));
    for (int64_t& dim : dims) {
      if (!next(&dim)) return absl::InternalError("a trial's answer is damaged");
    }
    const Shape shape(dims);
    const size_t size = static_cast<size_t>(shape.num_elements()) * SizeOf(static_cast<DType>(dtype));
    if (rest.size() < size) return absl::InternalError("a trial's answer is damaged");
    char* out = nullptr;
    PF_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Allocate(static_cast<DType>(dtype), shape, &out));
    std::memcpy(out, rest.data(), size);
    rest.remove_prefix(size);
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

}  // namespace

absl::StatusOr<std::string> WriteInputs(const ReducibleModel& model, const std::string& folder, FileSystem& files) {
  std::vector<std::string> pieces;
  for (size_t i = 0; i < model.inputs.size(); ++i) {
    if (model.inputs[i].dtype() == DType::kInvalid) continue;
    const std::string path = absl::StrCat(folder, "/input_", i, ".npy");
    PF_ASSIGN_OR_RETURN(const std::unique_ptr<FileWriter> file, files.NewWriter(path));
    PF_RETURN_IF_ERROR(WriteNpy(model.inputs[i], file.get()));
    PF_RETURN_IF_ERROR(file->Commit());
    pieces.push_back(absl::StrCat(model.graph->inputs()[i].text, "=", path));
  }
  // Files of a larger model that was written before.
  std::error_code ignored;
  for (size_t i = model.inputs.size(); std::filesystem::remove(absl::StrCat(folder, "/input_", i, ".npy"), ignored);
       ++i) {
  }
  return absl::StrJoin(pieces, ",");
}

absl::StatusOr<std::unique_ptr<FailureTest>> FailureTest::Create(FailureSettings settings, FileSystem& files) {
  std::unique_ptr<FailureTest> test(new FailureTest(std::move(settings), files));
  if (test->settings_.command.empty()) return test;
  const char* parent = std::getenv("TMPDIR");
  std::string pattern = absl::StrCat(parent == nullptr ? "/tmp" : parent, "/reduce_model_XXXXXX");
  if (mkdtemp(pattern.data()) == nullptr) {
    return absl::UnavailableError(absl::StrCat("cannot create a folder '", pattern, "': ", std::strerror(errno)));
  }
  test->folder_ = pattern;
  return test;
}

FailureTest::~FailureTest() {
  std::error_code ignored;
  if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
}

bool FailureTest::NeedsInputs() const {
  return settings_.command.empty() || absl::StrContains(settings_.command, "{inputs}");
}

absl::StatusOr<std::vector<Tensor>> FailureTest::Compute(const ReducibleModel& model,
                                                         const std::vector<std::string>& fetches) const {
  PF_ASSIGN_OR_RETURN(const std::string packed, RunInChild(
                                                    [&]() -> absl::StatusOr<std::string> {
                                                      PF_ASSIGN_OR_RETURN(const RunOptions options,
                                                                          MakeRunOptions(settings_.run, files_));
                                                      PF_ASSIGN_OR_RETURN(const std::vector<Tensor> values,
                                                                          RunGraph(model, fetches, options.reference));
                                                      return Packed(values);
                                                    },
                                                    settings_.trial_seconds));
  return Unpacked(packed);
}

absl::StatusOr<std::string> FailureTest::OutcomeOfCommand(const ReducibleModel& model) const {
  const std::string path = absl::StrCat(folder_, "/model.pb");
  PF_RETURN_IF_ERROR(SaveModel(files_, *model.graph, path));
  std::string command = settings_.command;
  if (absl::StrContains(command, "{inputs}")) {
    PF_ASSIGN_OR_RETURN(const std::string inputs, WriteInputs(model, folder_, files_));
    command = absl::StrReplaceAll(command, {{"{inputs}", inputs}});
  }
  command = absl::StrContains(command, "{}") ? absl::StrReplaceAll(command, {{"{}", path}})
                                             : absl::StrCat(command, " ", path);
  PF_ASSIGN_OR_RETURN(const CommandEnd end, RunCommand(command, settings_.trial_seconds));
  if (!settings_.text.empty()) {
    return absl::StrContains(end.output, settings_.text) ? absl::StrCat("the command prints '", settings_.text, "'")
                                                         : "";
  }
  return end.is_ok ? "" : absl::StrCat("the command ends with ", end.how);
}

absl::StatusOr<std::string> FailureTest::OutcomeOfRun(const ReducibleModel& model) const {
  const auto compare = [&]() -> absl::StatusOr<std::string> {
    PF_ASSIGN_OR_RETURN(RunOptions options, MakeRunOptions(settings_.run, files_));
    const std::vector<std::string> fetches = model.OutputNames();
    PF_ASSIGN_OR_RETURN(const std::vector<Tensor> expected, RunGraph(model, fetches, options.reference));
    std::ostringstream discarded;
    Console console{discarded, discarded};
    std::vector<Endpoint> fed;
    InputSet set;
    for (size_t i = 0; i < model.inputs.size(); ++i) {
      if (model.inputs[i].dtype() == DType::kInvalid) continue;
      fed.push_back(model.graph->inputs()[i]);
      set.push_back(model.inputs[i]);
    }
    const std::vector<std::vector<Tensor>> samples = {set};
    const ModelToRun to_run = {*model.graph, fed, model.graph->outputs(), "model"};
    const absl::StatusOr<KeptWeights> kept =
        ResolveDelegate(settings_.run, to_run, samples, files_, &options.chosen, console);
    absl::StatusOr<std::vector<Tensor>> actual = kept.ok() ? RunGraph(model, fetches, options.chosen) : kept.status();
    if (!actual.ok()) {
      return absl::StrCat("the run fails: ", absl::StatusCodeToString(actual.status().code()), ": ",
                          KindOf(actual.status().message()));
    }
    for (size_t i = 0; i < expected.size(); ++i) {
      if (CompareTensors(expected[i], (*actual)[i]).relative() > settings_.max_error)
        return std::string("an output differs");
    }
    return std::string();
  };
  absl::StatusOr<std::string> outcome = RunInChild(compare, settings_.trial_seconds);
  // A crash or a hang is what the run shows. Everything else says that the built-in kernels cannot run the model.
  const bool has_died =
      absl::IsInternal(outcome.status()) && absl::StartsWith(outcome.status().message(), "the trial ");
  if (has_died || absl::IsDeadlineExceeded(outcome.status())) return std::string(outcome.status().message());
  return outcome;
}

absl::StatusOr<std::string> FailureTest::Outcome(const ReducibleModel& model) const {
  return settings_.command.empty() ? OutcomeOfRun(model) : OutcomeOfCommand(model);
}

absl::StatusOr<std::string> FailureTest::Establish(const ReducibleModel& model) {
  PF_ASSIGN_OR_RETURN(failure_, Outcome(model));
  if (!failure_.empty()) return failure_;
  if (settings_.command.empty()) {
    return absl::AbortedError(absl::StrCat("the model does not show a failure: no output differs by more than ",
                                           settings_.max_error, " of its scale"));
  }
  if (settings_.text.empty()) {
    return absl::AbortedError("the model does not show a failure: the command ends with exit status 0");
  }
  return absl::AbortedError(
      absl::StrCat("the model does not show the failure: the command does not print '", settings_.text, "'"));
}

bool FailureTest::IsShownBy(const ReducibleModel& model) {
  const absl::StatusOr<std::string> outcome = Outcome(model);
  return outcome.ok() && *outcome == failure_;
}

}  // namespace permafrost
