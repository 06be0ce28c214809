// Opens models and makes sessions.
#include "tools/benchmark/benchmark_subject.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "graph/base/nearest.h"
#include "graph/base/status.h"
#include "tools/command_line/console.h"
#include "tools/command_line/flags.h"
#include "tools/model/interface_declaration.h"

namespace permafrost {
namespace {

absl::Status CheckNodes(absl::string_view flag, const Graph& graph, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (graph.Find(name) != nullptr) continue;
    std::vector<absl::string_view> known;
    for (const Node* node = graph.first(); node != nullptr; node = node->next()) known.push_back(node->name());
    return absl::InvalidArgumentError(
        absl::StrCat(flag, ": the graph has no node '", name, "'", DidYouMean(name, known)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<BenchmarkSubject>> BenchmarkSubject::Open(const SubjectFlags& flags, FileSystem& files,
                                                                         Console& console) {
  std::unique_ptr<BenchmarkSubject> subject(new BenchmarkSubject);
  const auto start = std::chrono::steady_clock::now();
  PF_ASSIGN_OR_RETURN(subject->graph_, OpenModelFile(files, flags.graph, flags.read, console));
  subject->load_seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (const absl::StatusOr<FileView> file = files.MapFile(flags.graph); file.ok()) {
    subject->is_tflite_ = file->bytes.substr(0, 8).substr(std::min<size_t>(4, file->bytes.size())) == "TFL3";
  }
  subject->targets_ = SplitList(flags.target_layer);
  PF_RETURN_IF_ERROR(CheckNodes("--target_layer", *subject->graph_, subject->targets_));
  std::optional<std::string> outputs = flags.output_layer;
  if (!outputs.has_value() && !subject->targets_.empty()) outputs = "";
  std::vector<std::string> reasons;
  const absl::Status found = DeclareOrFindInterface(flags.input_layer, outputs, subject->graph_.get(), &reasons);
  if (!found.ok()) {
    // Here the flags have the names of TensorFlow's tool.
    return absl::Status(found.code(), absl::StrReplaceAll(found.message(), {{"--outputs", "--output_layer"},
                                                                            {"--inputs", "--input_layer"}}));
  }
  for (const Endpoint& output : subject->graph_->outputs()) subject->outputs_.push_back(output.text);
  if (subject->outputs_.empty() && subject->targets_.empty()) {
    return absl::InvalidArgumentError("found no output to run: name some with --output_layer");
  }
  PF_ASSIGN_OR_RETURN(subject->inputs_, MakeBenchmarkInputs(*subject->graph_, flags.inputs, files));
  for (const BenchmarkInput& input : subject->inputs_) {
    subject->feed_names_.push_back(input.name);
    PF_ASSIGN_OR_RETURN(subject->feeds_.emplace_back(), input.tensor.Aligned());
  }
  return subject;
}

absl::StatusOr<std::unique_ptr<Session>> BenchmarkSubject::NewSession(SessionOptions options) const {
  options.targets = targets_;
  PF_ASSIGN_OR_RETURN(std::unique_ptr<Session> session,
                      Session::Create(*graph_, feed_names_, outputs_, std::move(options)));
  std::vector<Shape> shapes;
  for (const Tensor& feed : feeds_) shapes.push_back(feed.shape());
  PF_RETURN_IF_ERROR(session->Plan(shapes).status());
  return session;
}

std::vector<std::string> NonFiniteNotes(const std::vector<std::string>& names, absl::Span<const Tensor> outputs) {
  std::vector<std::string> notes;
  for (size_t i = 0; i < outputs.size(); ++i) {
    int64_t num_nan = 0, num_infinite = 0;
    DispatchOn<float, double, Half, BFloat16>(outputs[i].dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      const auto elements = outputs[i].template elements<T>();
      for (size_t j = 0; j < elements.size(); ++j) {
        double value;
        if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
          value = ToFloat(elements[j]);
        } else {
          value = elements[j];
        }
        if (std::isnan(value)) ++num_nan;
        if (std::isinf(value)) ++num_infinite;
      }
    });
    if (num_nan == 0 && num_infinite == 0) continue;
    notes.push_back(absl::StrCat("output '", names[i], "' has ", num_nan, " NaN and ", num_infinite, " infinite of ",
                                 outputs[i].num_elements(),
                                 " elements: the model may not be what it should be, and NaN can change times"));
  }
  return notes;
}

absl::Status RunOnce(const Graph& graph, const std::vector<std::string>& nodes, SessionOptions options) {
  PF_RETURN_IF_ERROR(CheckNodes("--init_ops", graph, nodes));
  options.targets = nodes;
  absl::StatusOr<std::unique_ptr<Session>> session = Session::Create(graph, {}, {}, std::move(options));
  PF_RETURN_IF_ERROR(Annotate(session.status(), "--init_ops"));
  return Annotate((*session)->Run({}).status(), "--init_ops");
}

}  // namespace permafrost
