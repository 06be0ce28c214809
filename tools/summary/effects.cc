// Looks every op of a graph and of its functions up in the table of effects.
#include "tools/summary/effects.h"

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "graph/base/nearest.h"
#include "graph/base/status.h"
#include "graph/base/wire.h"
#include "graph/functions/function.h"
#include "graph/ops/op_schema.h"
#include "graph/wire_format/node_def.h"
#include "tools/summary/loop_bounds.h"

namespace permafrost {
namespace {

constexpr char kTable[] =
#include "tools/summary/op_effects.inc"
    ;

constexpr EffectKind kKinds[] = {
    {"read_files", "reads files"},
    {"write_files", "writes files"},
    {"network", "sends to or receives from other processes"},
    {"code", "runs code that the graph does not contain"},
    {"print", "prints"},
    {"random", "draws random numbers"},
    {"state", "changes state that outlives a run"},
    {"loop", "loops without a provable bound"},
    {"wait", "may wait for another run, process or time"},
    {"fail", "may end a run by itself"},
    {"environment", "depends on the time, the device or settings"},
    {"device", "drives an accelerator"},
    {"other_ops", "uses ops outside of the allowed list"},
};

constexpr uint32_t kFunctionNode = 3;  // FunctionDef.node_def

// Loops are examined until their functions have this many nodes in total, so that many loops over one large function do
// not take quadratic time. The largest models have some 10^5 nodes in functions.
constexpr size_t kMostLoopNodes = 10000000;

const EffectKind* KindNamed(absl::string_view name) {
  for (const EffectKind& kind : kKinds) {
    if (kind.name == name) return &kind;
  }
  return nullptr;
}

using OpEffects = absl::flat_hash_map<absl::string_view, std::vector<const EffectKind*>>;

// Returns the effects of each op in the table, which are none for most.
const OpEffects& TableOfEffects() {
  static const OpEffects* table = [] {
    auto* ops = new OpEffects;
    for (const absl::string_view line : absl::StrSplit(kTable, '\n', absl::SkipWhitespace())) {
      if (line[0] == '#') continue;
      const std::pair<absl::string_view, absl::string_view> row = absl::StrSplit(line, absl::MaxSplits(' ', 1));
      std::vector<const EffectKind*>& effects = (*ops)[row.first];
      for (const absl::string_view name : absl::StrSplit(row.second, ',')) {
        if (const EffectKind* kind = KindNamed(name); kind != nullptr) effects.push_back(kind);
      }
    }
    return ops;
  }();
  return *table;
}

class EffectFinder {
 public:
  EffectFinder(const FunctionLibrary& library, const absl::flat_hash_set<std::string>* allowed_ops)
      : library_(library), allowed_ops_(allowed_ops) {}

  void AddOp(absl::string_view name, absl::string_view op, absl::string_view function) {
    if (library_.Find(op) != nullptr) return;  // A call. The nodes of the function count by themselves.
    const auto row = TableOfEffects().find(op);
    if (row != TableOfEffects().end()) {
      for (const EffectKind* kind : row->second) Add(kind, name, op, function, "");
    } else if (FindSchema(Op::Named(op)) == nullptr) {
      Add(KindNamed("code"), name, op, function, "no op of TensorFlow: a library has to be loaded");
    } else if (absl::StartsWith(op, "TFLite:")) {  // Carried (io/formats/tflite/carried_operator.h).
      Add(KindNamed("code"), name, op, function,
          "an operator of TensorFlow Lite that its runtime or a library computes");
    }
    if (allowed_ops_ != nullptr && !allowed_ops_->contains(op)) Add(KindNamed("other_ops"), name, op, function, "");
  }

  // Adds the references of an attribute to functions that do not exist.
  absl::Status AddReferences(const AttrValue& value, absl::string_view name, absl::string_view op,
                             absl::string_view function) {
    return value.VisitFunctions([&](absl::string_view callee) {
      // Ops may be called as functions, too.
      if (callee.empty() || library_.Find(callee) != nullptr || TableOfEffects().contains(callee)) return;
      Add(KindNamed("code"), name, op, function, absl::StrCat("calls the function '", callee, "', which is missing"));
    });
  }

  void AddLoop(const Node& node, absl::string_view function) {
    for (const char* attr : {"cond", "body"}) {
      const AttrValue* value = node.FindAttr(attr);
      if (value == nullptr) continue;
      const Function* callee = library_.Find(value->AsFunctionName().value_or(""));
      if (callee != nullptr) loop_nodes_ += callee->num_nodes();
    }
    const std::string why = loop_nodes_ > kMostLoopNodes ? "too many loops to examine" : WhyUnbounded(node, library_);
    if (!why.empty()) Add(KindNamed("loop"), node.name(), node.op().name(), function, why);
  }

  void Add(const EffectKind* kind, absl::string_view name, absl::string_view op, absl::string_view function,
           std::string reason) {
    sources_[kind].push_back({std::string(name), std::string(op), std::string(function), std::move(reason)});
  }

  std::vector<FoundEffect> Finish() && {
    std::vector<FoundEffect> found;
    for (const EffectKind& kind : kKinds) {
      const auto sources = sources_.find(&kind);
      if (sources != sources_.end()) found.push_back({&kind, std::move(sources->second)});
    }
    return found;
  }

 private:
  const FunctionLibrary& library_;
  const absl::flat_hash_set<std::string>* allowed_ops_;
  absl::flat_hash_map<const EffectKind*, std::vector<EffectSource>> sources_;
  size_t loop_nodes_ = 0;
};

// Adds the nodes of a function. They are read in wire form, because a body whose attributes depend on its caller is no
// graph by itself.
absl::Status AddFunction(const Function& function, const FunctionLibrary& library, EffectFinder* finder) {
  bool has_loops = false;
  Graph memory;
  NodeDefReader node(nullptr);
  std::vector<absl::string_view> inputs;
  WireReader reader(function.encoded());
  WireField field;
  while (reader.Next(&field)) {
    if (field.number != kFunctionNode || field.type != WireType::kLengthDelimited) continue;
    inputs.clear();
    PF_RETURN_IF_ERROR(node.Read(field.bytes, &memory, &inputs));
    finder->AddOp(node.name(), node.op(), function.name());
    for (const Attr& attr : *node.attrs()) {
      PF_RETURN_IF_ERROR(finder->AddReferences(attr.value, node.name(), node.op(), function.name()));
    }
    has_loops = has_loops || IsLoopOp(node.op());
  }
  PF_RETURN_IF_ERROR(reader.status());
  if (!has_loops) return absl::OkStatus();
  const absl::StatusOr<std::unique_ptr<Graph>> body = library.InstantiateToEdit({std::string(function.name()), {}});
  if (!body.ok()) {
    finder->Add(KindNamed("loop"), "", "", function.name(), "the function depends on attributes of its callers");
    return absl::OkStatus();
  }
  for (const Node* loop = (*body)->first(); loop != nullptr; loop = loop->next()) {
    if (IsLoopOp(loop->op().name())) finder->AddLoop(*loop, function.name());
  }
  return absl::OkStatus();
}

}  // namespace

absl::Span<const EffectKind> EffectKinds() { return kKinds; }

absl::StatusOr<std::vector<FoundEffect>> FindEffects(const Graph& graph,
                                                     const absl::flat_hash_set<std::string>* allowed_ops) {
  absl::StatusOr<FunctionLibrary> library = FunctionLibrary::Of(graph);
  if (!library.ok()) return Annotate(library.status(), "function library");
  EffectFinder finder(*library, allowed_ops);
  for (const Node* node = graph.first(); node != nullptr; node = node->next()) {
    finder.AddOp(node->name(), node->op().name(), "");
    for (const Attr& attr : node->attrs()) {
      // A malformed value names no function.
      (void)finder.AddReferences(attr.value, node->name(), node->op().name(), "");
    }
    if (IsLoopOp(node->op().name())) finder.AddLoop(*node, "");
  }
  PF_ASSIGN_OR_RETURN(const absl::flat_hash_set<absl::string_view> reached,
                      library->Reachable(library->CalledBy(graph)));
  for (const Function* function : library->functions()) {
    if (!reached.contains(function->name())) continue;
    PF_RETURN_IF_ERROR(
        Annotate(AddFunction(*function, *library, &finder), absl::StrCat("function ", Quoted(function->name()))));
  }
  // A call that leads back to its function repeats without a counter that could be checked.
  if (const auto order = library->CallOrder(library->CalledBy(graph)); !order.ok()) {
    finder.Add(KindNamed("loop"), "", "", "", std::string(order.status().message()));
  }
  return std::move(finder).Finish();
}

absl::StatusOr<absl::flat_hash_set<std::string>> ParseForbiddenEffects(absl::string_view list) {
  absl::flat_hash_set<std::string> forbidden;
  for (const absl::string_view word : absl::StrSplit(list, ',', absl::SkipWhitespace())) {
    const absl::string_view name = absl::StripAsciiWhitespace(word);
    if (name == "files" || name == "all") {
      for (const EffectKind& kind : kKinds) {
        if (name == "all" || absl::EndsWith(kind.name, "_files")) forbidden.emplace(kind.name);
      }
    } else if (KindNamed(name) != nullptr) {
      forbidden.emplace(name);
    } else {
      std::vector<absl::string_view> names = {"all", "files"};
      for (const EffectKind& kind : kKinds) names.push_back(kind.name);
      return absl::InvalidArgumentError(absl::StrCat("--forbid: unknown effect ", Quoted(name), DidYouMean(name, names),
                                                     "; expected ", absl::StrJoin(names, ", ")));
    }
  }
  return forbidden;
}

absl::flat_hash_set<std::string> ParseOpList(absl::string_view text) {
  absl::flat_hash_set<std::string> ops;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const absl::string_view content = line.substr(0, line.find('#'));
    for (const absl::string_view op : absl::StrSplit(content, absl::ByAnyChar(" ,\t\r"), absl::SkipEmpty())) {
      ops.emplace(op);
    }
  }
  return ops;
}

}  // namespace permafrost
