// Runs a small network on each delegate and compares it with the built-in kernels.
#include "tools/diagnosis/delegate_check.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/status.h"
#include "graph/graph.h"
#include "runtime_check/checking/compare.h"
#include "runtime_check/delegate.h"
#include "runtime_check/delegates/delegate_registry.h"
#include "runtime_check/session.h"

namespace permafrost {
namespace {

// The tolerance of the delegates' conformance tests for f32. Sums of 128 products in another order differ by less than
// 128 roundings of 2^-24 each.
constexpr double kTolerance = 1e-5;

// Values between -1 and 1 without a pattern that a wrong order would keep.
Tensor Values(const Shape& shape, int seed) {
  std::vector<float> values(static_cast<size_t>(shape.num_elements()));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>((i * 37 + static_cast<size_t>(seed) * 11) % 97) / 48.0f - 1.0f;
  }
  return Tensor::FromVector<float>(shape, std::move(values));
}

absl::StatusOr<Node*> AddFloatNode(const char* name, const char* op, const std::vector<Node*>& inputs, Graph* graph) {
  PF_ASSIGN_OR_RETURN(Node* const node, graph->AddNode(name, Op::Named(op)));
  for (Node* input : inputs) graph->AddInput(node, {input, 0});
  node->SetAttr("T", AttrValue::Type(DType::kFloat));
  return node;
}

absl::StatusOr<Node*> AddPlaceholder(const char* name, const Shape& shape, Graph* graph) {
  PF_ASSIGN_OR_RETURN(Node* const node, graph->AddNode(name, Op::Named("Placeholder")));
  node->SetAttr("dtype", AttrValue::Type(DType::kFloat));
  node->SetAttr("shape", AttrValue::OfShape(shape));
  return node;
}

// Large enough for the delegates that leave small convolutions and products to the built-in kernels: 10^5 products
// each.
const Shape& ImageShape() {
  static const auto* const shape = new Shape({1, 16, 16, 3});
  return *shape;
}

const Shape& RowsShape() {
  static const auto* const shape = new Shape({16, 128});
  return *shape;
}

// A convolution with bias and Relu of "image", and a matrix product of "rows".
absl::Status BuildNetwork(Graph* graph) {
  PF_ASSIGN_OR_RETURN(Node* const image, AddPlaceholder("image", ImageShape(), graph));
  PF_ASSIGN_OR_RETURN(Node* const filter, graph->AddConst("filter", Values({3, 3, 3, 16}, 1)));
  PF_ASSIGN_OR_RETURN(Node* const bias, graph->AddConst("bias", Values({16}, 2)));
  PF_ASSIGN_OR_RETURN(Node* const convolution, AddFloatNode("convolution", "Conv2D", {image, filter}, graph));
  convolution->SetAttr("strides", AttrValue::IntList({1, 1, 1, 1}));
  convolution->SetAttr("padding", AttrValue::String("SAME"));
  PF_ASSIGN_OR_RETURN(Node* const sum, AddFloatNode("sum", "BiasAdd", {convolution, bias}, graph));
  PF_RETURN_IF_ERROR(AddFloatNode("relu", "Relu", {sum}, graph).status());
  PF_ASSIGN_OR_RETURN(Node* const rows, AddPlaceholder("rows", RowsShape(), graph));
  PF_ASSIGN_OR_RETURN(Node* const matrix, graph->AddConst("matrix", Values({128, 64}, 3)));
  return AddFloatNode("product", "MatMul", {rows, matrix}, graph).status();
}

// Returns the outputs with a delegate, or with the built-in kernels if it is null. Unavailable if the delegate takes no
// node, Internal if it fails.
absl::StatusOr<std::vector<Tensor>> RunNetwork(std::shared_ptr<const Delegate> delegate, int num_threads) {
  Graph graph;
  PF_RETURN_IF_ERROR(BuildNetwork(&graph));
  SessionOptions options;
  options.num_threads = num_threads;
  options.delegate = std::move(delegate);
  const bool has_delegate = options.delegate != nullptr;
  PF_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                      Session::Create(graph, {"image", "rows"}, {"relu", "product"}, std::move(options)));
  PF_ASSIGN_OR_RETURN(std::vector<Tensor> outputs, session->Run({Values(ImageShape(), 4), Values(RowsShape(), 5)}));
  const DelegationReport& delegation = session->report().delegation;
  if (!delegation.failure.empty()) return absl::InternalError(delegation.failure);
  if (has_delegate && delegation.partitions.empty()) {
    return absl::UnavailableError("it loads, but took no node of a small network, so that its results are not checked");
  }
  return outputs;
}

Finding CheckReference(int num_threads) {
  Finding finding{Grade::kGood, absl::StrCat("delegate ", kReferenceDelegate), "the built-in kernels; f32", ""};
  const absl::Status status = RunNetwork(nullptr, num_threads).status();
  if (status.ok()) return finding;
  finding.grade = Grade::kProblem;
  finding.found = std::string(status.message());
  finding.remedy = "every run needs these kernels: report this, with the output of --json";
  return finding;
}

// Returns the precisions that need no plan and that this processor supports.
std::vector<std::string> SupportedPrecisions(const DelegateInfo& info) {
  std::vector<std::string> supported;
  for (const std::string& precision : info.AllPrecisions()) {
    DelegateOptions options;
    options.precision = precision;
    auto plan = std::make_shared<PrecisionPlan>();
    plan->precision = PrecisionNamed(precision).value_or(Precision::kF32);
    if (info.NeedsPlan(precision)) options.plan = std::move(plan);
    if (MakeDelegate(info.name, options).ok()) supported.push_back(precision);
  }
  return supported;
}

// Returns an error unless the delegate computes the network as the built-in kernels do, with one thread and with all.
absl::Status CompareWithReference(const std::shared_ptr<const Delegate>& delegate, int num_threads) {
  for (const int threads : {1, num_threads}) {
    PF_ASSIGN_OR_RETURN(const std::vector<Tensor> expected, RunNetwork(nullptr, threads));
    PF_ASSIGN_OR_RETURN(const std::vector<Tensor> actual, RunNetwork(delegate, threads));
    for (size_t i = 0; i < expected.size(); ++i) {
      const OutputDifference difference = CompareTensors(expected[i], actual[i]);
      if (!difference.IsWithin(kTolerance)) {
        return absl::DataLossError(absl::StrCat("it computes a ", i == 0 ? "convolution" : "matrix product",
                                                " wrong with ", threads,
                                                threads == 1 ? " thread: " : " threads: ", difference.ToString()));
      }
    }
  }
  return absl::OkStatus();
}

// Grades a delegate that cannot be made, and says what to do.
void SetRemedy(const absl::Status& status, Finding* finding) {
  finding->grade = Grade::kAdvice;
  if (absl::IsNotFound(status)) {
    finding->remedy =
        "install the Debian package permafrost-delegates or, for Python, 'pip install permafrost[delegates]'; until "
        "then "
        "use another delegate";
  } else if (absl::IsUnavailable(status) || absl::IsUnimplemented(status)) {
    // Devices and instruction sets that a machine need not have.
    finding->remedy = "use another delegate, or add what is missing";
  } else {
    finding->grade = Grade::kProblem;
    finding->remedy = absl::IsFailedPrecondition(status)
                          ? "reinstall the named library, and look for another version of it in LD_LIBRARY_PATH"
                          : "use another delegate; report it, with the output of --json";
  }
}

Finding CheckDelegate(const DelegateInfo& info, int num_threads) {
  Finding finding{Grade::kGood, absl::StrCat("delegate ", info.name), "", ""};
  const absl::StatusOr<std::shared_ptr<const Delegate>> delegate = MakeDelegate(info.name, DelegateOptions());
  if (!delegate.ok()) {
    finding.found = std::string(delegate.status().message());
    SetRemedy(delegate.status(), &finding);
    return finding;
  }
  const absl::Status status = CompareWithReference(*delegate, num_threads);
  if (absl::IsUnavailable(status)) {
    finding.grade = Grade::kAdvice;
    finding.found = std::string(status.message());
    finding.remedy = "check it with a model: validate_model --reference=MODEL --candidate=MODEL --delegate=NAME";
    return finding;
  }
  const std::string path = DelegateLibraryPath(info.name);
  if (!status.ok()) {
    finding.grade = Grade::kProblem;
    finding.found = absl::StrCat(status.message(), path.empty() ? "" : absl::StrCat(" (", path, ")"));
    finding.remedy = "do not use this delegate on this machine; report it, with the output of --json";
    return finding;
  }
  finding.found = absl::StrCat(path.empty() ? "" : absl::StrCat(path, "; "), "agrees with the built-in kernels; ",
                               absl::StrJoin(SupportedPrecisions(info), ", "));
  return finding;
}

}  // namespace

std::vector<Finding> CheckDelegates(int num_threads) {
  std::vector<Finding> findings;
  for (const DelegateInfo& info : KnownDelegates()) {
    findings.push_back(info.is_reference ? CheckReference(num_threads) : CheckDelegate(info, num_threads));
  }
  return findings;
}

}  // namespace permafrost
