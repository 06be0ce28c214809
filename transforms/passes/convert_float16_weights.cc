// Stores float constants in sixteen bits.
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/multiversion.h"
#include "graph/base/status.h"
#include "transforms/pass.h"
#include "transforms/pipeline/thread_team.h"
#include "transforms/rewrites/compact_constants.h"
#include "transforms/rewrites/float_ranges.h"
#include "transforms/rewrites/function_bodies.h"

namespace permafrost {
namespace {

struct Params {
  // On smaller constants the two additional nodes cost about as much as sixteen bits save.
  int32_t minimum_size = 64;
  std::vector<std::string> exclude_node;
  std::vector<std::string> exclude_op;
  float max_error = 0.01f;
};

// Statistics of a range of elements and of their conversion errors.
struct Loss {
  double squares = 0;  // Sum over the finite elements.
  double error_squares = 0;
  int64_t overflows = 0;  // Finite elements that overflow half.

  void operator+=(const Loss& other) {
    squares += other.squares;
    error_squares += other.error_squares;
    overflows += other.overflows;
  }
  double relative() const { return squares > 0 ? std::sqrt(error_squares / squares) : 0; }
};

struct Conversion {
  Node* node;
  Tensor tensor;
  Tensor half;
  absl::Status status;
  Loss loss;
};

void Convert(UnalignedSpan<float> values, size_t start, size_t end, char* out, Loss* loss) {
  for (size_t i = start; i < end; ++i) {
    const float value = values[i];
    const Half half = ToHalf(value);
    std::memcpy(out + i * sizeof(Half), &half, sizeof(Half));
    if (!std::isfinite(value)) continue;
    const float back = ToFloat(half);
    if (!std::isfinite(back)) {
      ++loss->overflows;
      continue;
    }
    const double error = static_cast<double>(back) - value;
    loss->squares += static_cast<double>(value) * value;
    loss->error_squares += error * error;
  }
}

void ConvertTensor(Conversion* job) {
  char* out = nullptr;
  absl::StatusOr<Tensor> half = Tensor::Allocate(DType::kHalf, job->tensor.shape(), &out);
  if (!half.ok()) {
    job->status = half.status();
    return;
  }
  const UnalignedSpan<float> values = job->tensor.elements<float>();
  // Sums are accumulated by blocks, so that rounding errors do not grow with the size of the tensor.
  for (size_t start = 0; start < values.size(); start += kBlock) {
    Loss block;
    Convert(values, start, std::min(values.size(), start + kBlock), out, &block);
    job->loss += block;
  }
  job->half = *std::move(half);
}

// Returns why the constant is unchanged; empty if it can be converted.
std::string Objection(const Loss& loss, float max_error) {
  if (loss.overflows > 0) {
    return absl::StrCat(loss.overflows, " of its values exceed 65504, the largest of half");
  }
  if (max_error > 0 && loss.relative() > max_error) {
    return absl::StrCat("its error in half is ", loss.relative(), " of its size, more than max_error=", max_error,
                        " (values below 6.1e-05 lose digits)");
  }
  return "";
}

absl::StatusOr<int64_t> ConvertIn(Graph* graph, const Params& params, PassContext* context) {
  PF_ASSIGN_OR_RETURN(const std::vector<Node*> nodes,
                      SelectConstants(graph, {params.minimum_size, params.exclude_node, params.exclude_op}, context));
  std::vector<Conversion> jobs;
  for (Node* node : nodes) {
    PF_ASSIGN_OR_RETURN(Tensor tensor, ConstValue(*node));
    jobs.push_back({node, std::move(tensor), {}, absl::OkStatus(), {}});
  }
  ThreadTeam team(context->num_threads);
  team.ForEach(jobs.size(), [&](size_t i) { ConvertTensor(&jobs[i]); });
  int64_t rewrites = 0;
  uint64_t bytes = 0;
  ConstantNotes notes(context);
  for (Conversion& job : jobs) {
    PF_RETURN_IF_ERROR(Annotate(job.status, job.node->Describe()));
    if (const std::string objection = Objection(job.loss, params.max_error); !objection.empty()) {
      notes.Kept(*job.node, objection);
      continue;
    }
    const RewriteScope rewrite(context, graph, {job.node});
    if (!rewrite) continue;
    PF_ASSIGN_OR_RETURN(Node * half, AddCompanion(graph, job.node, "/half", std::move(job.half)));
    TurnInto(graph, job.node, ops::kCast, {half});
    job.node->SetAttr("DstT", AttrValue::Type(DType::kFloat));
    job.node->SetAttr("SrcT", AttrValue::Type(DType::kHalf));
    ++rewrites;
    bytes += job.tensor.bytes().size();
  }
  notes.Finish();
  if (rewrites > 0) {
    context->Note(absl::StrCat("stored ", rewrites, " constants of ", bytes, " bytes in sixteen bits"));
  }
  return rewrites;
}

absl::StatusOr<int64_t> ConvertWeights(Graph* graph, const Params& params, PassContext* context) {
  PF_ASSIGN_OR_RETURN(const int64_t in_graph, ConvertIn(graph, params, context));
  PF_ASSIGN_OR_RETURN(const int64_t in_bodies, EditFunctionBodies(graph, context, [&](Graph* body) {
                        return ConvertIn(body, params, context);
                      }));
  return in_graph + in_bodies;
}

}  // namespace

// Stores each float constant as half precision (float16) in the file, and converts it to float when the model is
// loaded.
//
//   Const n (float)   =>   Cast n (half to float) of Const n/half
//
// Constants in the bodies of functions that the graph may call are converted as well.
//
// Half precision keeps eleven significant bits, about three decimal digits, for magnitudes between 6.1e-05 and 65504.
// Smaller magnitudes have lower precision, down to 6e-08. NaN and infinities are preserved.
//
// Leaves a constant unchanged if it has fewer than minimum_size elements, holds a value too large for half precision,
// exceeds max_error (the RMS of the errors relative to the RMS of the values), is excluded, is fed, or is the range of
// a Dequantize. Run fold_constants before this pass; running it afterwards undoes the conversion.
DEFINE_PASS(convert_float16_weights) {
  return Pass<Params>("Stores float constants as float16, which halves their size.")
      .Why("Halves the download size at a precision of three decimal digits, which rarely affects accuracy.")
      .Param("minimum_size", &Params::minimum_size, kMinimumSizeHelp, AtLeast(0))
      .Param("exclude_node", &Params::exclude_node, kExcludeNodeHelp)
      .Param("exclude_op", &Params::exclude_op, kExcludeOpHelp)
      .Param("max_error", &Params::max_error, "Maximum relative error of a constant; 0: no limit.", AtLeast(0))
      .Numerics(Changes("weights keep eleven significant bits"))
      .Idempotent()
      .Run(ConvertWeights);
}

}  // namespace permafrost
