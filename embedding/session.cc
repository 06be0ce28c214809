// Implements sessions for the C interface.
#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "embedding/caller_error.h"
#include "embedding/delegate_choice.h"
#include "embedding/handles.h"
#include "embedding/packed_package.h"
#include "embedding/permafrost_runtime.h"
#include "embedding/session_interface.h"
#include "embedding/tensors.h"
#include "graph/base/status.h"
#include "runtime_check/session_settings.h"

namespace permafrost {
namespace {

constexpr int64_t kMostLoopIterations = 1'000'000;

absl::Status CheckSetting(absl::string_view name, int64_t found, int64_t most) {
  if (found >= 0 && found <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(name, ": found ", found, ", expected 0 to ", most));
}

absl::Status ChooseDelegate(const pf_model& model, const pf_session_options& given, SessionOptions* options,
                            pf_session* session) {
  const std::string name = given.delegate == nullptr ? kReferenceDelegate : given.delegate;
  DelegateOptions with;
  if (given.precision != nullptr) with.precision = given.precision;
#define PERMAFROST_SET(field, flag, help)                   \
  PF_RETURN_IF_ERROR(CheckSetting(#field, given.field, 1)); \
  with.field = given.field != 0;
  PERMAFROST_SESSION_SWITCHES(PERMAFROST_SET)
#undef PERMAFROST_SET
  PF_RETURN_IF_ERROR(UsePacked(model.package, name, &with, &session->packed));
  options->packed = with.packed;
  PF_ASSIGN_OR_RETURN(options->delegate, ChooseDelegate(name, with));
  return absl::OkStatus();
}

absl::StatusOr<SessionOptions> OptionsOf(const pf_session_options& given) {
  SessionOptions options;
#define PERMAFROST_SET(field, flag, preset, most, at_zero, help) \
  PF_RETURN_IF_ERROR(CheckSetting(#field, given.field, most));   \
  options.field = std::max(1, given.field);
  PERMAFROST_SESSION_COUNTS(PERMAFROST_SET)
#undef PERMAFROST_SET
  if (given.num_processors > 0) {
    PF_RETURN_IF_ERROR(CheckGiven(given.processors, "processors"));
    options.processors.assign(given.processors, given.processors + given.num_processors);
  }
  if (given.memory_limit < 0) {
    return absl::InvalidArgumentError(absl::StrCat("found a memory limit of ", given.memory_limit, " bytes"));
  }
  if (given.memory_limit > 0) options.memory_limit = given.memory_limit;
  options.loop_limits.most_iterations =
      given.most_loop_iterations == 0 ? kMostLoopIterations : std::max<int64_t>(0, given.most_loop_iterations);
  return options;
}

absl::Status CheckCount(absl::string_view kind, size_t found, size_t expected) {
  if (found == expected) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("found ", found, " ", kind, ", expected ", expected));
}

absl::Status InInput(const pf_session& session, size_t i, const absl::Status& status) {
  return Annotate(status, absl::StrCat("input '", session.inputs[i].name, "'"));
}

// Plans a run for these shapes. REQUIRES: the lock is held.
absl::Status PlanFor(pf_session* session, std::vector<Shape> shapes) {
  if (!session->planned.empty() && shapes == session->planned_inputs) return absl::OkStatus();
  session->planned.clear();
  PF_ASSIGN_OR_RETURN(std::vector<TensorSpec> planned, session->session->Plan(shapes));
  session->planned_inputs = std::move(shapes);
  session->planned = std::move(planned);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Tensor>> FeedsOf(const pf_session& session, const pf_tensor* inputs, size_t num_inputs) {
  PF_RETURN_IF_ERROR(CheckCount("inputs", num_inputs, session.inputs.size()));
  if (num_inputs > 0) PF_RETURN_IF_ERROR(CheckGiven(inputs, "inputs"));
  std::vector<Tensor> feeds;
  for (size_t i = 0; i < num_inputs; ++i) {
    absl::StatusOr<Tensor> feed = ViewOfCaller(inputs[i]);
    PF_RETURN_IF_ERROR(InInput(session, i, feed.status()));
    feeds.push_back(*std::move(feed));
  }
  return feeds;
}

// Adds the last run to the summary. REQUIRES: the lock is held.
void Summarise(pf_session* session) {
  if (!session->profiler.is_recording()) return;
  session->summary.Add(session->profiler);
  session->profiler.Clear();
}

absl::Status CheckRoom(const pf_session& session, size_t i, const pf_tensor& output, uint64_t needed) {
  if (output.data == nullptr && needed > 0) {
    return absl::InvalidArgumentError(absl::StrCat("output '", session.outputs[i].name, "': found no memory"));
  }
  if (output.num_bytes >= needed) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("output '", session.outputs[i].name, "': found memory of ",
                                                 output.num_bytes, " bytes, expected ", needed));
}

// Runs with outputs in memory of the caller. REQUIRES: the shape of each output is known before the run.
absl::Status RunInPlace(pf_session* session, absl::Span<const Tensor> feeds, absl::Span<const pf_tensor> described,
                        pf_tensor* outputs) {
  std::vector<absl::Span<char>> memory;
  for (size_t i = 0; i < described.size(); ++i) {
    PF_RETURN_IF_ERROR(CheckRoom(*session, i, outputs[i], described[i].num_bytes));
    memory.emplace_back(static_cast<char*>(outputs[i].data), described[i].num_bytes);
  }
  PF_RETURN_IF_ERROR(session->session->RunInto(feeds, memory));
  for (size_t i = 0; i < described.size(); ++i) {
    void* const data = outputs[i].data;
    outputs[i] = described[i];
    outputs[i].data = data;
  }
  return absl::OkStatus();
}

absl::Status RunAndCopy(pf_session* session, absl::Span<const Tensor> feeds, pf_tensor* outputs) {
  PF_ASSIGN_OR_RETURN(const std::vector<Tensor> made, session->session->Run(feeds));
  std::vector<pf_tensor> described;
  for (size_t i = 0; i < made.size(); ++i) {
    PF_ASSIGN_OR_RETURN(described.emplace_back(), Described(made[i], nullptr));
    PF_RETURN_IF_ERROR(CheckRoom(*session, i, outputs[i], described[i].num_bytes));
  }
  for (size_t i = 0; i < made.size(); ++i) {
    void* const data = outputs[i].data;
    if (described[i].num_bytes > 0) std::memcpy(data, described[i].data, described[i].num_bytes);
    outputs[i] = described[i];
    outputs[i].data = data;
  }
  return absl::OkStatus();
}

absl::Status Run(pf_session* session, const pf_tensor* inputs, size_t num_inputs, pf_tensor* outputs,
                 size_t num_outputs) {
  PF_ASSIGN_OR_RETURN(const std::vector<Tensor> feeds, FeedsOf(*session, inputs, num_inputs));
  PF_RETURN_IF_ERROR(CheckCount("outputs", num_outputs, session->outputs.size()));
  if (num_outputs > 0) PF_RETURN_IF_ERROR(CheckGiven(outputs, "outputs"));
  PF_RETURN_IF_ERROR(CheckDisjoint({inputs, num_inputs}, {outputs, num_outputs}));
  std::vector<Shape> shapes;
  for (const Tensor& feed : feeds) shapes.push_back(feed.shape());
  const std::lock_guard<std::mutex> lock(session->mutex);
  // The session checks the types of the feeds.
  PF_RETURN_IF_ERROR(PlanFor(session, std::move(shapes)));
  std::vector<pf_tensor> described;
  bool is_static = true;
  for (size_t i = 0; i < num_outputs; ++i) {
    if (session->planned[i].dtype == DType::kString) {
      return absl::InvalidArgumentError(
          absl::StrCat("output '", session->outputs[i].name, "' holds strings; use pf_run_new instead"));
    }
    PF_ASSIGN_OR_RETURN(described.emplace_back(), Described(session->planned[i]));
    is_static = is_static && session->planned[i].shape.IsFullyKnown();
  }
  PF_RETURN_IF_ERROR(is_static ? RunInPlace(session, feeds, described, outputs) : RunAndCopy(session, feeds, outputs));
  Summarise(session);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<pf_session>> CreateSession(const pf_model& model, const pf_session_options& given) {
  auto session = std::make_unique<pf_session>();
  session->graph = model.graph;
  PF_ASSIGN_OR_RETURN(SessionOptions options, OptionsOf(given));
  PF_RETURN_IF_ERROR(ChooseDelegate(model, given, &options, session.get()));
  options.profiler = &session->profiler;
  PF_ASSIGN_OR_RETURN(const SessionInterface interface, ChooseInterface(*model.graph, given));
  PF_ASSIGN_OR_RETURN(session->session,
                      EmbeddedSession::Create(*model.graph, interface.inputs, interface.outputs, std::move(options)));
  session->inputs = session->session->Inputs();
  std::vector<Shape> shapes;
  for (const TensorSpec& input : session->inputs) shapes.push_back(input.shape);
  if (std::all_of(shapes.begin(), shapes.end(), [](const Shape& shape) { return shape.IsFullyKnown(); })) {
    PF_RETURN_IF_ERROR(PlanFor(session.get(), std::move(shapes)));
    session->outputs = session->planned;
  } else {
    session->outputs = DescribeOutputs(*model.graph, interface.outputs);
  }
  return session;
}

pf_status Describe(const std::vector<TensorSpec>& specs, absl::string_view kind, size_t index, pf_tensor* tensor,
                   CallerError error) {
  return Guarded(error, [&]() -> absl::Status {
    PF_RETURN_IF_ERROR(CheckGiven(tensor, "tensor"));
    if (index >= specs.size()) {
      return absl::InvalidArgumentError(absl::StrCat("no ", kind, " ", index, "; there are ", specs.size()));
    }
    absl::StatusOr<pf_tensor> described = Described(specs[index]);
    PF_RETURN_IF_ERROR(Annotate(described.status(), absl::StrCat(kind, " '", specs[index].name, "'")));
    *tensor = *described;
    return absl::OkStatus();
  });
}

}  // namespace
}  // namespace permafrost

using permafrost::CheckGiven;
using permafrost::Guarded;

pf_status pf_create_session(const pf_model* model, const pf_session_options* options, pf_session** session, char* error,
                            size_t error_size) {
  return Guarded({error, error_size}, [&]() -> absl::Status {
    PF_RETURN_IF_ERROR(CheckGiven(model, "model"));
    PF_RETURN_IF_ERROR(CheckGiven(session, "session"));
    pf_session_options given;
    PF_RETURN_IF_ERROR(permafrost::ReadOptions(options, &given));
    PF_ASSIGN_OR_RETURN(std::unique_ptr<pf_session> made, permafrost::CreateSession(*model, given));
    *session = made.release();
    return absl::OkStatus();
  });
}

void pf_free_session(pf_session* session) { delete session; }

size_t pf_num_inputs(const pf_session* session) { return session == nullptr ? 0 : session->inputs.size(); }
size_t pf_num_outputs(const pf_session* session) { return session == nullptr ? 0 : session->outputs.size(); }

const char* pf_input_name(const pf_session* session, size_t index) {
  return index < pf_num_inputs(session) ? session->inputs[index].name.c_str() : nullptr;
}
const char* pf_output_name(const pf_session* session, size_t index) {
  return index < pf_num_outputs(session) ? session->outputs[index].name.c_str() : nullptr;
}

pf_status pf_describe_input(const pf_session* session, size_t index, pf_tensor* tensor, char* error,
                            size_t error_size) {
  if (session == nullptr) return permafrost::Tell(CheckGiven(session, "session"), {error, error_size});
  return permafrost::Describe(session->inputs, "input", index, tensor, {error, error_size});
}

pf_status pf_describe_output(const pf_session* session, size_t index, pf_tensor* tensor, char* error,
                             size_t error_size) {
  if (session == nullptr) return permafrost::Tell(CheckGiven(session, "session"), {error, error_size});
  return permafrost::Describe(session->outputs, "output", index, tensor, {error, error_size});
}

pf_status pf_plan(pf_session* session, const pf_tensor* inputs, size_t num_inputs, pf_tensor* outputs,
                  size_t num_outputs, char* error, size_t error_size) {
  return Guarded({error, error_size}, [&]() -> absl::Status {
    PF_RETURN_IF_ERROR(CheckGiven(session, "session"));
    PF_RETURN_IF_ERROR(permafrost::CheckCount("inputs", num_inputs, session->inputs.size()));
    PF_RETURN_IF_ERROR(permafrost::CheckCount("outputs", num_outputs, session->outputs.size()));
    if (num_inputs > 0) PF_RETURN_IF_ERROR(CheckGiven(inputs, "inputs"));
    if (num_outputs > 0) PF_RETURN_IF_ERROR(CheckGiven(outputs, "outputs"));
    std::vector<permafrost::Shape> shapes;
    for (size_t i = 0; i < num_inputs; ++i) {
      const permafrost::DType expected = session->inputs[i].dtype,
                              found = static_cast<permafrost::DType>(inputs[i].dtype);
      if (expected != permafrost::DType::kInvalid && found != expected) {
        return permafrost::InInput(
            *session, i,
            absl::InvalidArgumentError(absl::StrCat("found type ", permafrost::DTypeName(found), ", expected ",
                                                    permafrost::DTypeName(expected))));
      }
      absl::StatusOr<permafrost::Shape> shape = permafrost::ShapeOf(inputs[i]);
      PF_RETURN_IF_ERROR(permafrost::InInput(*session, i, shape.status()));
      shapes.push_back(*std::move(shape));
    }
    const std::lock_guard<std::mutex> lock(session->mutex);
    PF_RETURN_IF_ERROR(permafrost::PlanFor(session, std::move(shapes)));
    std::vector<pf_tensor> described;
    for (const permafrost::TensorSpec& spec : session->planned) {
      PF_ASSIGN_OR_RETURN(described.emplace_back(), permafrost::Described(spec));
    }
    std::copy(described.begin(), described.end(), outputs);
    return absl::OkStatus();
  });
}

pf_status pf_run(pf_session* session, const pf_tensor* inputs, size_t num_inputs, pf_tensor* outputs,
                 size_t num_outputs, char* error, size_t error_size) {
  return Guarded({error, error_size}, [&]() -> absl::Status {
    PF_RETURN_IF_ERROR(CheckGiven(session, "session"));
    return permafrost::Run(session, inputs, num_inputs, outputs, num_outputs);
  });
}

pf_status pf_run_new(pf_session* session, const pf_tensor* inputs, size_t num_inputs, pf_result** result, char* error,
                     size_t error_size) {
  return Guarded({error, error_size}, [&]() -> absl::Status {
    PF_RETURN_IF_ERROR(CheckGiven(session, "session"));
    PF_RETURN_IF_ERROR(CheckGiven(result, "result"));
    PF_ASSIGN_OR_RETURN(const std::vector<permafrost::Tensor> feeds, permafrost::FeedsOf(*session, inputs, num_inputs));
    auto made = std::make_unique<pf_result>();
    {
      const std::lock_guard<std::mutex> lock(session->mutex);
      // The session plans this run itself, and may replace the current plan.
      session->planned.clear();
      PF_ASSIGN_OR_RETURN(made->outputs, session->session->Run(feeds));
      permafrost::Summarise(session);
    }
    // Copies outputs that are inputs or constants of the model, because they could outlive those.
    for (permafrost::Tensor& output : made->outputs) {
      if (output.owner() != nullptr || output.dtype() == permafrost::DType::kString) continue;
      char* data = nullptr;
      PF_ASSIGN_OR_RETURN(permafrost::Tensor copy, permafrost::Tensor::Allocate(output.dtype(), output.shape(), &data));
      if (!output.bytes().empty()) std::memcpy(data, output.bytes().data(), output.bytes().size());
      output = std::move(copy);
    }
    made->strings.resize(made->outputs.size());
    for (size_t i = 0; i < made->outputs.size(); ++i) {
      PF_RETURN_IF_ERROR(permafrost::Described(made->outputs[i], &made->strings[i]).status());
    }
    *result = made.release();
    return absl::OkStatus();
  });
}

pf_status pf_result_output(const pf_result* result, size_t index, pf_tensor* output, char* error, size_t error_size) {
  return Guarded({error, error_size}, [&]() -> absl::Status {
    PF_RETURN_IF_ERROR(CheckGiven(result, "result"));
    PF_RETURN_IF_ERROR(CheckGiven(output, "output"));
    if (index >= result->outputs.size()) {
      return absl::InvalidArgumentError(absl::StrCat("no output ", index, "; there are ", result->outputs.size()));
    }
    std::vector<pf_string> strings;
    PF_ASSIGN_OR_RETURN(pf_tensor described, permafrost::Described(result->outputs[index], &strings));
    // The views were made with the result and stay valid.
    if (described.dtype == PF_STRING) described.data = const_cast<pf_string*>(result->strings[index].data());
    *output = described;
    return absl::OkStatus();
  });
}

void pf_free_result(pf_result* result) { delete result; }

pf_status pf_get_report(pf_session* session, pf_report* report, char* error, size_t error_size) {
  return Guarded({error, error_size}, [&]() -> absl::Status {
    PF_RETURN_IF_ERROR(CheckGiven(session, "session"));
    PF_RETURN_IF_ERROR(CheckGiven(report, "report"));
    pf_report made = {};
    {
      const std::lock_guard<std::mutex> lock(session->mutex);
      const permafrost::PlanReport plan = session->session->FullReport();
      made.arena_bytes = plan.arena_bytes;
      made.constant_bytes = plan.constant_bytes;
      made.num_steps = plan.num_steps;
      for (const auto& partition : plan.delegation.partitions) {
        made.num_delegated += static_cast<int64_t>(partition.nodes.size());
      }
      permafrost::CopyLine(plan.delegation.failure, made.delegate_failure, sizeof(made.delegate_failure));
      permafrost::Report(session->packed, &made);
    }
    return permafrost::WriteStruct(made, report);
  });
}
