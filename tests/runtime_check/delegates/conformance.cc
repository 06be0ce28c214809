// Runs the recorded cases with a delegate.
#include "tests/runtime_check/delegates/conformance.h"

#include <signal.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/ops/op_schema.h"
#include "runtime_check/kernel.h"
#include "runtime_check/planning/prepared_node.h"
#include "runtime_check/session.h"
#include "tests/kernels/recorded_cases.h"
#include "tests/runtime_check/delegates/guarded_memory.h"

namespace permafrost {
namespace {

// Partition guarantees this alignment for buffers, but not for constants.
constexpr size_t kBufferAlignment = 64;
// Equal to the planner's limit on values that a delegate may read during shape inference.
constexpr size_t kMostShapeBytes = 1024;

// Prints the current case if the process ends, because an access to a guard page ends it.
class CrashNote {
 public:
  CrashNote() {
    struct sigaction action = {};
    action.sa_handler = &Tell;
    sigaction(SIGSEGV, &action, &previous_);
  }
  ~CrashNote() { sigaction(SIGSEGV, &previous_, nullptr); }
  CrashNote(const CrashNote&) = delete;
  CrashNote& operator=(const CrashNote&) = delete;

  static void Set(const std::string& text) {
    std::strncpy(text_, text.c_str(), sizeof(text_) - 2);
    text_[std::strlen(text_)] = '\n';
  }

 private:
  static void Tell(int) {
    const ssize_t written = write(STDERR_FILENO, text_, strnlen(text_, sizeof(text_)));
    static_cast<void>(written);
    sigaction(SIGSEGV, &previous_, nullptr);  // The instruction is executed again and ends the process.
  }

  static struct sigaction previous_;
  static char text_[512];
};

struct sigaction CrashNote::previous_;
char CrashNote::text_[512];

class EagerDelegate final : public Delegate {
 public:
  explicit EagerDelegate(std::shared_ptr<const Delegate> delegate) : delegate_(std::move(delegate)) {}

  absl::string_view name() const override { return delegate_->name(); }
  absl::Status Supports(const Partition& single) const override { return delegate_->Supports(single); }
  bool IsWorthwhile(const Partition&) const override { return true; }
  absl::StatusOr<std::unique_ptr<CompiledPartition>> Compile(const Partition& partition,
                                                             int num_threads) const override {
    return delegate_->Compile(partition, num_threads);
  }

 private:
  std::shared_ptr<const Delegate> delegate_;
};

// The inputs that are fed, and the outputs that are read.
struct Setting {
  std::vector<bool> is_fed;
  bool reads_first_output_only = false;

  std::string ToString() const {
    std::string text = "fed:";
    for (size_t i = 0; i < is_fed.size(); ++i) {
      if (is_fed[i]) absl::StrAppend(&text, " ", i);
    }
    return absl::StrCat(text, reads_first_output_only ? ", read: 0" : "");
  }
};

std::vector<Setting> SettingsOf(const RecordedCase& recorded) {
  std::set<std::vector<bool>> seen;
  std::vector<Setting> settings;
  const size_t count = recorded.inputs.size();
  for (size_t i = 0; i <= count && count > 0; ++i) {
    std::vector<bool> is_fed(count, i == count);
    if (i < count) is_fed[i] = true;
    if (seen.insert(is_fed).second) settings.push_back({std::move(is_fed), false});
  }
  if (recorded.expected.size() > 1 && !settings.empty()) settings.push_back({settings[0].is_fed, true});
  return settings;
}

// A partition with only the node of the case, and the memory of its constants.
struct SingleNode {
  Partition partition;
  std::vector<std::unique_ptr<GuardedMemory>> constants;
};

// Returns false if a session would not offer the node to a delegate.
absl::StatusOr<bool> MakePartition(const RecordedCase& recorded, const Setting& setting, SingleNode* single) {
  const Node& node = *recorded.node;
  const Kernel* kernel = FindKernel(node.op());
  const OpSchema* schema = FindSchema(node.op());
  if (kernel == nullptr || schema == nullptr || schema->traits != kPure || kernel->reads_shapes_only() ||
      kernel->uses_state() || kernel->is_done_by_session()) {
    return false;
  }
  PF_ASSIGN_OR_RETURN(const std::vector<DType> types, OutputTypes(node));
  std::vector<PrepareInput> shapes;
  for (const Tensor& input : recorded.inputs) shapes.push_back({input.dtype(), input.shape()});
  const auto value = [&](int i) -> absl::StatusOr<const Tensor*> {
    const Tensor& input = recorded.inputs[i];
    return setting.is_fed[i] || input.bytes().size() > kMostShapeBytes ? nullptr : &input;
  };
  PreparedNode prepared;
  PF_RETURN_IF_ERROR(PrepareNode(node, *kernel, shapes, types, 1, value, &prepared));
  if (prepared.needs_value_of >= 0) return false;
  DelegateNode& entry = single->partition.nodes.emplace_back();
  entry.node = &node;
  const auto add = [&](DType dtype, const Shape& shape) {
    if (dtype == DType::kString) return false;
    DelegateTensor& tensor = single->partition.tensors.emplace_back();
    tensor.dtype = dtype;
    tensor.shape = shape;
    return true;
  };
  for (size_t i = 0; i < recorded.inputs.size(); ++i) {
    const Tensor& input = recorded.inputs[i];
    if (!add(input.dtype(), input.shape())) return false;
    const auto number = static_cast<int>(i);
    entry.inputs.push_back(number);
    if (setting.is_fed[i]) {
      single->partition.inputs.push_back(number);
      continue;
    }
    auto memory = std::make_unique<GuardedMemory>(input.bytes().size(), 1);
    memory->Fill(input.bytes());
    memory->MakeReadOnly();
    PF_ASSIGN_OR_RETURN(single->partition.tensors.back().constant,
                        Tensor::FromBytes(input.dtype(), input.shape(), memory->bytes(), nullptr));
    single->constants.push_back(std::move(memory));
  }
  for (size_t i = 0; i < types.size(); ++i) {
    if (prepared.outputs[i].depends_on_values || !add(types[i], prepared.outputs[i].shape)) return false;
    entry.outputs.push_back(static_cast<int>(single->partition.tensors.size()) - 1);
    if (i == 0 || !setting.reads_first_output_only) single->partition.outputs.push_back(entry.outputs.back());
  }
  return true;
}

struct Run {
  std::vector<std::unique_ptr<GuardedMemory>> inputs, outputs;
  std::unique_ptr<GuardedMemory> scratch;
};

absl::Status RunOnce(CompiledPartition* compiled, const Run& run, const PieceCallback& on_piece) {
  std::vector<const char*> inputs;
  std::vector<char*> outputs;
  for (const auto& input : run.inputs) inputs.push_back(input->data());
  for (const auto& output : run.outputs) {
    output->Scribble();
    outputs.push_back(output->data());
  }
  run.scratch->Scribble();
  PF_RETURN_IF_ERROR(compiled->Run(inputs, absl::MakeSpan(outputs), run.scratch->data(), on_piece));
  for (size_t i = 0; i < run.outputs.size(); ++i) {
    PF_RETURN_IF_ERROR(Annotate(run.outputs[i]->CheckSurroundings(), absl::StrCat("memory of output ", i)));
  }
  return Annotate(run.scratch->CheckSurroundings(), "scratch memory");
}

absl::Status CheckOutputs(const RecordedCase& recorded, const Partition& partition, const Run& run, double slack) {
  for (size_t i = 0; i < run.outputs.size(); ++i) {
    // The outputs that are read are in order, and are either all outputs or only the first.
    const DelegateTensor& tensor = partition.tensors[partition.outputs[i]];
    if (!recorded.expected[i].has_value()) continue;
    PF_ASSIGN_OR_RETURN(const Tensor actual,
                        Tensor::FromBytes(tensor.dtype, tensor.shape, run.outputs[i]->bytes(), nullptr));
    PF_RETURN_IF_ERROR(Annotate(CompareWithRecorded(actual, *recorded.expected[i], slack), absl::StrCat("output ", i)));
  }
  return absl::OkStatus();
}

absl::Status CompileAndRun(const Delegate& delegate, const RecordedCase& recorded, const Partition& partition,
                           int num_threads, double slack) {
  absl::StatusOr<std::unique_ptr<CompiledPartition>> compiled = delegate.Compile(partition, num_threads);
  PF_RETURN_IF_ERROR(Annotate(compiled.status(), "took the node, but failed to compile it"));
  if ((*compiled)->scratch_bytes() < 0 || (*compiled)->constant_bytes() < 0) {
    return absl::InternalError("reports a negative number of bytes");
  }
  Run run;
  run.scratch = std::make_unique<GuardedMemory>((*compiled)->scratch_bytes(), kBufferAlignment);
  for (const int number : partition.inputs) {
    const absl::string_view bytes = recorded.inputs[number].bytes();
    GuardedMemory& memory = *run.inputs.emplace_back(std::make_unique<GuardedMemory>(bytes.size(), kBufferAlignment));
    memory.Fill(bytes);
    memory.MakeReadOnly();
  }
  for (const int number : partition.outputs) {
    const DelegateTensor& tensor = partition.tensors[number];
    PF_ASSIGN_OR_RETURN(const int64_t bytes, ValueBytes(tensor.dtype, tensor.shape));
    run.outputs.push_back(std::make_unique<GuardedMemory>(bytes, kBufferAlignment));
  }
  PF_RETURN_IF_ERROR(RunOnce(compiled->get(), run, nullptr));
  PF_RETURN_IF_ERROR(CheckOutputs(recorded, partition, run, slack));
  std::vector<std::string> first;
  for (const auto& output : run.outputs) first.emplace_back(output->bytes());
  absl::Status pieces;
  const PieceCallback on_piece = [&](absl::string_view name, absl::Duration duration) {
    if (name.empty() || duration < absl::ZeroDuration()) pieces = absl::InternalError("a piece without name or time");
  };
  PF_RETURN_IF_ERROR(Annotate(RunOnce(compiled->get(), run, on_piece), "second run"));
  PF_RETURN_IF_ERROR(pieces);
  for (size_t i = 0; i < first.size(); ++i) {
    if (run.outputs[i]->bytes() != first[i]) {
      return absl::InternalError(absl::StrCat("output ", i, " of a second run differs"));
    }
  }
  return absl::OkStatus();
}

// Returns the case with finite numbers instead of NaN and infinity, and with the outputs of the reference kernel.
// Returns nothing if the case has only finite numbers.
absl::StatusOr<std::optional<RecordedCase>> Tamed(const Graph& graph, const RecordedCase& recorded) {
  RecordedCase tamed = recorded;
  bool is_changed = false;
  std::vector<std::string> feeds, fetches;
  for (size_t i = 0; i < recorded.inputs.size(); ++i) {
    feeds.push_back(recorded.node->input(static_cast<int>(i)).ToString());
    if (recorded.inputs[i].dtype() != DType::kFloat) continue;
    const auto elements = recorded.inputs[i].elements<float>();
    float* values = nullptr;
    PF_ASSIGN_OR_RETURN(tamed.inputs[i], Tensor::Allocate<float>(recorded.inputs[i].shape(), &values));
    for (size_t j = 0; j < elements.size(); ++j) {
      values[j] = std::isfinite(elements[j]) ? elements[j] : static_cast<float>(j % 7) * 0.75f - 2;
      is_changed |= !std::isfinite(elements[j]);
    }
  }
  if (!is_changed) return absl::StatusOr<std::optional<RecordedCase>>(std::nullopt);
  for (size_t i = 0; i < recorded.expected.size(); ++i) {
    fetches.push_back(absl::StrCat(recorded.node->name(), ":", i));
  }
  PF_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Create(graph, feeds, fetches));
  PF_ASSIGN_OR_RETURN(std::vector<Tensor> outputs, session->Run(tamed.inputs));
  for (size_t i = 0; i < outputs.size(); ++i) tamed.expected[i] = std::move(outputs[i]);
  return std::optional<RecordedCase>(std::move(tamed));
}

absl::Status RunInSession(const std::shared_ptr<const Delegate>& delegate, const Graph& graph,
                          const RecordedCase& recorded, const Setting& setting, double slack) {
  const Node& node = *recorded.node;
  std::vector<std::string> feeds, fetches;
  std::vector<Tensor> values;
  for (size_t i = 0; i < recorded.inputs.size(); ++i) {
    if (!setting.is_fed[i]) continue;
    feeds.push_back(node.input(static_cast<int>(i)).ToString());
    values.push_back(recorded.inputs[i]);
  }
  for (size_t i = 0; i < (setting.reads_first_output_only ? 1 : recorded.expected.size()); ++i) {
    fetches.push_back(absl::StrCat(node.name(), ":", i));
  }
  SessionOptions options;
  options.delegate = AlwaysWorthwhile(delegate);
  PF_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Create(graph, feeds, fetches, options));
  PF_ASSIGN_OR_RETURN(const std::vector<Tensor> outputs, session->Run(values));
  // A delegate may decline a run because of its inputs. The session then reports a failure and uses the kernels.
  const DelegationReport& report = session->report().delegation;
  // For these nodes, the session redirects readers to the input and omits the node.
  const bool is_left_out =
      node.op() == ops::kIdentityN || node.op() == ops::kStopGradient || node.op() == ops::kPreventGradient;
  if (report.partitions.empty() && report.failure.empty() && !is_left_out) {
    return absl::InternalError("the delegate got no partition");
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!recorded.expected[i].has_value()) continue;
    PF_RETURN_IF_ERROR(
        Annotate(CompareWithRecorded(outputs[i], *recorded.expected[i], slack), absl::StrCat("output ", i)));
  }
  return absl::OkStatus();
}

// Results of one case so far.
struct CaseResult {
  bool is_asked = false, is_run = false;
  std::set<std::string> reasons;
};

// Runs all settings of one case. `is_in_graph`: the constants are those of the graph.
void RunSettings(const std::shared_ptr<const Delegate>& delegate, const Graph& graph, const RecordedCase& recorded,
                 bool is_in_graph, const ConformanceOptions& options, CaseResult* result, ConformanceReport* report) {
  for (const Setting& setting : SettingsOf(recorded)) {
    const std::string place =
        absl::StrCat(recorded.node->Describe(), is_in_graph ? ", " : " without NaN, ", setting.ToString());
    const auto fail = [&](const absl::Status& status, absl::string_view more) {
      if (status.ok()) return;
      if (options.may_decline && options.may_decline(status)) {
        ++report->num_declined;
      } else {
        report->failures.push_back(absl::StrCat(place, more, ": ", status.message()));
      }
    };
    SingleNode single;
    const absl::StatusOr<bool> is_offered = MakePartition(recorded, setting, &single);
    fail(is_offered.status(), "");
    if (!is_offered.ok() || !*is_offered) continue;
    result->is_asked = true;
    const absl::Status supported = delegate->Supports(single.partition);
    if (!supported.ok()) {
      if (supported.message().empty()) fail(absl::InternalError("refused without a reason"), "");
      result->reasons.insert(std::string(supported.message()));
      continue;
    }
    result->is_run = true;
    if (options.only_ask) continue;
    for (const int num_threads : options.thread_counts) {
      const std::string threads = absl::StrCat(", ", num_threads, " threads");
      CrashNote::Set(absl::StrCat("crashed on ", place, threads));
      fail(CompileAndRun(*delegate, recorded, single.partition, num_threads, options.slack), threads);
    }
    if (!is_in_graph) continue;
    CrashNote::Set(absl::StrCat("crashed on ", place, ", in a session"));
    fail(RunInSession(delegate, graph, recorded, setting, options.slack), ", in a session");
  }
}

absl::Status RunCase(const std::shared_ptr<const Delegate>& delegate, const Graph& graph, const Node& node,
                     const ConformanceOptions& options, ConformanceReport* report) {
  PF_ASSIGN_OR_RETURN(const RecordedCase recorded, ReadRecordedCase(graph, node));
  CaseResult result;
  RunSettings(delegate, graph, recorded, true, options, &result, report);
  if (!result.is_asked) return absl::OkStatus();
  PF_ASSIGN_OR_RETURN(const std::optional<RecordedCase> tamed, Tamed(graph, recorded));
  if (tamed.has_value()) RunSettings(delegate, graph, *tamed, false, options, &result, report);
  OpConformance& op = report->ops[std::string(node.op().name())];
  ++op.num_cases;
  if (result.is_run) ++op.num_run;
  for (const std::string& reason : result.reasons) ++op.refusals[reason];
  return absl::OkStatus();
}

}  // namespace

std::shared_ptr<const Delegate> AlwaysWorthwhile(std::shared_ptr<const Delegate> delegate) {
  return std::make_shared<EagerDelegate>(std::move(delegate));
}

absl::Status RunConformance(const std::shared_ptr<const Delegate>& delegate, const std::string& family,
                            const ConformanceOptions& options, ConformanceReport* report) {
  const CrashNote note;
  PF_ASSIGN_OR_RETURN(const std::unique_ptr<Graph> graph, ReadRecordedFamily(family));
  for (const Node* node : RecordedNodes(*graph)) {
    PF_RETURN_IF_ERROR(RunCase(delegate, *graph, *node, options, report));
  }
  return absl::OkStatus();
}

}  // namespace permafrost
