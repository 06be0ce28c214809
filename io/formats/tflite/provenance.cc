// Implements the comparison of a graph with what the import of its source makes.
#include "io/formats/tflite/provenance.h"

#include <algorithm>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "graph/analysis/order.h"
#include "graph/analysis/uniform_quantization.h"
#include "graph/analysis/variable_initializers.h"
#include "graph/base/status.h"
#include "graph/functions/function.h"
#include "graph/ops/op_schema.h"
#include "graph/shapes/shape_inference.h"
#include "io/formats/tflite/carried_operator.h"
#include "io/formats/tflite/subgraph_import.h"

namespace permafrost {
namespace {

constexpr absl::string_view kFormat = "tflite";
// Constants of fewer bytes, such as axes, occur in many operators; larger ones identify the operator that reads them.
constexpr size_t kLeastIdentifyingBytes = 32;
// Uses that are tried at each step from a constant to the result of an operator.
constexpr size_t kMostBranches = 8;

bool SameBytes(absl::string_view a, absl::string_view b) {
  return a.size() == b.size() && (a.data() == b.data() || a == b);
}

bool SameTensor(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return false;
  return a.dtype() == DType::kString ? a.strings() == b.strings() : SameBytes(a.bytes(), b.bytes());
}

bool SameValue(const AttrValue& a, const AttrValue& b) {
  if (a.kind() != b.kind()) return false;
  if (a.kind() != AttrValue::Kind::kTensor) return a.Encoded() == b.Encoded();
  const absl::StatusOr<Tensor> x = a.AsTensor(), y = b.AsTensor();
  return x.ok() && y.ok() && SameTensor(*x, *y);
}

bool IsNote(absl::string_view key) { return key == "_output_shapes" || key == "_inferred_shapes"; }

bool SameLibrary(const Graph* a, const Graph* b) { return a->library() == b->library(); }

// Compares functions of two graphs: the same nodes in the same order, whatever their names.
class FunctionComparison {
 public:
  // Does not own the graphs.
  FunctionComparison(const Graph& a, const Graph& b)
      : has_same_library_(SameLibrary(&a, &b)), a_(FunctionLibrary::Of(a)), b_(FunctionLibrary::Of(b)) {}

  // True if both values refer to functions that are the same, with the same arguments.
  bool SameCalls(const AttrValue& a, const AttrValue& b);

 private:
  bool SameFunction(const std::string& a, const std::string& b);
  bool SameBody(const Graph& a, const Graph& b);

  bool has_same_library_;
  absl::StatusOr<FunctionLibrary> a_, b_;
  // Pairs that were compared. One under comparison counts as the same: functions do not call each other in a circle.
  absl::flat_hash_map<std::pair<std::string, std::string>, bool> compared_;
};

bool IsCall(const AttrValue& value) { return value.kind() == AttrValue::Kind::kFunction; }

// Compares the attributes without notes that passes leave.
bool SameAttrs(const Node& a, const Node& b, FunctionComparison* functions = nullptr) {
  const auto count = [](const Node& node) {
    return std::count_if(node.attrs().begin(), node.attrs().end(), [](const Attr& attr) { return !IsNote(attr.key); });
  };
  if (count(a) != count(b)) return false;
  for (const Attr& attr : a.attrs()) {
    if (IsNote(attr.key)) continue;
    const AttrValue* other = b.FindAttr(attr.key);
    if (other == nullptr) return false;
    if (functions != nullptr && IsCall(attr.value) && IsCall(*other)) {
      if (!functions->SameCalls(attr.value, *other)) return false;
    } else if (!SameValue(attr.value, *other)) {
      return false;
    }
  }
  return true;
}

bool FunctionComparison::SameCalls(const AttrValue& a, const AttrValue& b) {
  const absl::StatusOr<FunctionRef> x = a.AsFunction(), y = b.AsFunction();
  // The importer makes functions without attributes.
  if (!x.ok() || !y.ok() || !x->attrs.empty() || !y->attrs.empty()) return false;
  return (has_same_library_ && x->name == y->name) || SameFunction(x->name, y->name);
}

bool FunctionComparison::SameFunction(const std::string& a, const std::string& b) {
  if (!a_.ok() || !b_.ok()) return false;
  const auto [known, is_new] = compared_.try_emplace({a, b}, true);
  if (!is_new) return known->second;
  const auto x = a_->Instantiate({a, {}}), y = b_->Instantiate({b, {}});
  const bool is_same = x.ok() && y.ok() && SameBody(**x, **y);
  compared_[{a, b}] = is_same;
  return is_same;
}

bool FunctionComparison::SameBody(const Graph& a, const Graph& b) {
  if (a.num_nodes() != b.num_nodes()) return false;
  absl::flat_hash_map<const Node*, const Node*> image;
  const Node* ours = b.first();
  for (const Node* theirs = a.first(); theirs != nullptr; theirs = theirs->next(), ours = ours->next()) {
    image.emplace(theirs, ours);
  }
  for (const auto& [theirs, other] : image) {
    if (theirs->op() != other->op() || theirs->num_inputs() != other->num_inputs() ||
        theirs->num_data_inputs() != other->num_data_inputs() || !SameAttrs(*theirs, *other, this)) {
      return false;
    }
    for (int k = 0; k < theirs->num_inputs(); ++k) {
      const TensorRef x = theirs->input(k), y = other->input(k);
      if (x.port != y.port || image.at(x.node) != y.node) return false;
    }
  }
  return true;
}

// Nodes without inputs that several operators share, and the numbers behind codes, which each reader of codes has.
bool IsShared(const Node& node) {
  return node.op() == ops::kConst || node.op() == ops::kVarHandleOp || node.op() == ops::kHashTableV2 ||
         node.op() == UniformDequantizeOp();
}

// The resource that a handle refers to.
std::string HandleKey(const Node& node) {
  const absl::StatusOr<std::string> name = StringAttr(node, "shared_name");
  return absl::StrCat(node.op().name(), "/", name.ok() ? *name : "");
}

// Nodes that give variables their initial values or fill tables.
absl::flat_hash_set<const Node*> InitializersOf(const Graph& graph) {
  absl::flat_hash_set<const Node*> nodes;
  for (const Node* node : VariableInitializers(graph)) nodes.insert(node);
  for (const Node* node = graph.first(); node != nullptr; node = node->next()) {
    if (FillsTable(node->op()) && node->num_data_inputs() > 0) nodes.insert(node);
  }
  return nodes;
}

std::vector<const Node*> ControlsOf(const Node& node) {
  std::vector<const Node*> nodes;
  for (int k = node.num_data_inputs(); k < node.num_inputs(); ++k) nodes.push_back(node.input(k).node);
  return nodes;
}

bool HasEffect(const Node& node) {
  const OpSchema* schema = FindSchema(node.op());
  return schema == nullptr || schema->Is(kStateful | kHasSideEffect);
}

// Finds the operators of the source in a graph.
class OperatorFinder {
 public:
  OperatorFinder(const TfliteContainer& container, int entry, const Graph& source,
                 const std::vector<OperatorTrace>& trace, Graph* graph)
      : container_(container),
        entry_(entry),
        source_(source),
        trace_(trace),
        graph_(graph),
        functions_(source, *graph),
        source_initializers_(InitializersOf(source)),
        initializers_(InitializersOf(*graph)) {}

  void Run();
  // Replaces the operators that were found. Returns their number.
  absl::StatusOr<int> Replace();

 private:
  struct Found {
    absl::flat_hash_map<const Node*, Node*> image;  // By node of the source.
    std::vector<TensorRef> inputs, results;         // In the graph, by operand and result.
  };
  // The state of one attempt.
  struct Attempt {
    const OperatorTrace* traced = nullptr;
    absl::flat_hash_set<TensorRef> boundary;  // Operands, in the source.
    absl::flat_hash_map<const Node*, Node*> image;
    absl::flat_hash_map<TensorRef, TensorRef> bound;  // Operands.
  };

  void TryOperator(size_t i);
  bool TryAt(size_t i, TensorRef result);
  bool MatchRef(TensorRef theirs, TensorRef ours, Attempt* attempt) const;
  bool MatchNode(const Node* theirs, Node* ours, Attempt* attempt) const;
  bool MatchEffects(Attempt* attempt) const;
  bool HasOtherReaders(const Attempt& attempt) const;
  bool HasOrderOf(const Node& theirs, const Node& ours) const;
  void Follow(size_t i);
  void DropContradictions();
  void DropUninitialized();
  void BindForwards(TensorRef theirs, TensorRef ours);
  Node* ImageOf(const Node* theirs) const;

  const TfliteContainer& container_;
  int entry_;
  const Graph& source_;
  const std::vector<OperatorTrace>& trace_;
  Graph* graph_;
  mutable FunctionComparison functions_;
  absl::flat_hash_set<const Node*> source_initializers_, initializers_;
  bool has_values_ = false;                                         // Operators with results were tried.
  bool is_strict_ = false;                                          // Effects must have the operands that are known.
  std::vector<std::unique_ptr<Found>> found_;                       // By operator.
  absl::flat_hash_map<TensorRef, TensorRef> bound_;                 // Values of the source in the graph.
  absl::flat_hash_set<const Node*> owned_;                          // Nodes of the graph that belong to an operator.
  absl::flat_hash_map<const Node*, Node*> images_;                  // Of all operators, by node of the source.
  absl::flat_hash_map<const char*, std::vector<Node*>> constants_;  // Of the graph, by their bytes.
  absl::flat_hash_map<std::string, std::vector<Node*>> handles_;    // Of the graph, by HandleKey.
};

// Values behind nodes that only forward belong to each other, too.
void OperatorFinder::BindForwards(TensorRef theirs, TensorRef ours) {
  while (bound_.try_emplace(theirs, ours).second && theirs.node->op() == ops::kIdentity &&
         ours.node->op() == ops::kIdentity) {
    theirs = theirs.node->input(0);
    ours = ours.node->input(0);
  }
}

void OperatorFinder::Run() {
  found_.resize(trace_.size());
  for (Node* node = graph_->first(); node != nullptr; node = node->next()) {
    if (node->op() == ops::kVarHandleOp || node->op() == ops::kHashTableV2) handles_[HandleKey(*node)].push_back(node);
    if (node->op() != ops::kConst) continue;
    const absl::StatusOr<Tensor> value = ConstValue(*node);
    if (value.ok() && value->bytes().size() >= kLeastIdentifyingBytes)
      constants_[value->bytes().data()].push_back(node);
  }
  const auto bind = [this](const std::vector<Endpoint>& theirs, const std::vector<Endpoint>& ours) {
    for (size_t i = 0; theirs.size() == ours.size() && i < theirs.size(); ++i) {
      if (theirs[i].node == nullptr || ours[i].node == nullptr) continue;
      BindForwards({theirs[i].node, theirs[i].port}, {ours[i].node, ours[i].port});
    }
  };
  bind(source_.inputs(), graph_->inputs());
  bind(source_.outputs(), graph_->outputs());
  // Names are hints, and so are readers that were found, constants and operands: they hold where names were changed.
  for (size_t i = trace_.size(); i-- > 0;) TryOperator(i);
  for (size_t i = 0; i < trace_.size(); ++i) Follow(i);
  // Operators without results, such as assignments, are identified by the values that they read. Where these are not
  // known, any operator of the same form may be taken.
  has_values_ = is_strict_ = true;
  for (size_t i = trace_.size(); i-- > 0;) TryOperator(i);
  is_strict_ = false;
  for (size_t i = trace_.size(); i-- > 0;) TryOperator(i);
  DropContradictions();
  DropUninitialized();
}

void OperatorFinder::TryOperator(size_t i) {
  if (found_[i] != nullptr) return;
  const OperatorTrace& traced = trace_[i];
  TensorRef first;
  for (const TensorRef result : traced.results) {
    if (result.node == nullptr) continue;
    // The operator has no nodes of its own.
    if (std::find(traced.inputs.begin(), traced.inputs.end(), result) != traced.inputs.end()) return;
    if (first.node == nullptr) {
      first = result;
      if (Node* node = graph_->Find(result.node->name()); node != nullptr && TryAt(i, {node, result.port})) return;
    }
    const auto bound = bound_.find(result);
    if (bound == bound_.end() || result.node != first.node) continue;
    if (TryAt(i, {bound->second.node, first.port})) return;
  }
  if (first.node == nullptr && has_values_) TryAt(i, {});
}

bool OperatorFinder::MatchRef(TensorRef theirs, TensorRef ours, Attempt* attempt) const {
  if (theirs.is_control() || ours.is_control()) return false;
  if (attempt->boundary.contains(theirs)) return attempt->bound.try_emplace(theirs, ours).first->second == ours;
  return theirs.port == ours.port && MatchNode(theirs.node, ours.node, attempt);
}

bool OperatorFinder::MatchNode(const Node* theirs, Node* ours, Attempt* attempt) const {
  const auto [entry, is_new] = attempt->image.try_emplace(theirs, ours);
  if (!is_new) return entry->second == ours;
  if (theirs->op() != ours->op() || theirs->num_data_inputs() != ours->num_data_inputs() || graph_->IsInput(ours) ||
      theirs->op() == ops::kPlaceholder) {
    return false;
  }
  if (source_initializers_.contains(theirs) != initializers_.contains(ours) || !HasOrderOf(*theirs, *ours) ||
      !SameAttrs(*theirs, *ours, &functions_)) {
    return false;
  }
  for (int k = 0; k < theirs->num_data_inputs(); ++k) {
    if (!MatchRef(theirs->input(k), ours->input(k), attempt)) return false;
  }
  return true;
}

// False if `ours` does not follow the images of the effects that `theirs` follows, as far as they are known. Of several
// reads of a variable this selects the one at the same place between the assignments.
bool OperatorFinder::HasOrderOf(const Node& theirs, const Node& ours) const {
  const std::vector<const Node*> expected = ControlsOf(theirs), actual = ControlsOf(ours);
  if (expected.size() != actual.size()) return false;
  return std::all_of(expected.begin(), expected.end(), [&](const Node* control) {
    const auto image = images_.find(control);
    return image == images_.end() || std::find(actual.begin(), actual.end(), image->second) != actual.end();
  });
}

// Matches what an operator does beside computing results: assignments, initialisers.
bool OperatorFinder::MatchEffects(Attempt* attempt) const {
  for (const Node* theirs : attempt->traced->created) {
    if (attempt->image.contains(theirs) || !HasEffect(*theirs)) continue;
    std::vector<Node*> candidates;
    if (Node* named = graph_->Find(theirs->name())) candidates.push_back(named);
    if (theirs->num_data_inputs() == 0) {
      const auto same = handles_.find(HandleKey(*theirs));
      if (same != handles_.end()) candidates.insert(candidates.end(), same->second.begin(), same->second.end());
    } else {
      const TensorRef input = theirs->input(0);
      const auto image = attempt->image.find(input.node);
      const auto bound = bound_.find(input);
      const Node* producer = image != attempt->image.end() ? image->second
                             : bound != bound_.end()       ? bound->second.node
                                                           : nullptr;
      for (size_t k = 0; producer != nullptr && k < producer->uses().size(); ++k) {
        const Use& use = producer->uses()[k];
        if (candidates.size() < kMostBranches && use.index == 0) candidates.push_back(use.consumer);
      }
    }
    bool is_matched = false;
    for (Node* ours : candidates) {
      const Attempt before = *attempt;
      is_matched = MatchNode(theirs, ours, attempt);
      for (int k = 0; is_strict_ && is_matched && k < theirs->num_data_inputs(); ++k) {
        const auto known = bound_.find(theirs->input(k));
        is_matched = known == bound_.end() || known->second == ours->input(k);
      }
      if (is_matched) break;
      *attempt = before;
    }
    if (!is_matched) return false;
  }
  return true;
}

// True if a value inside the operator is read from outside, fetched or fed.
bool OperatorFinder::HasOtherReaders(const Attempt& attempt) const {
  absl::flat_hash_set<const Node*> own;
  for (const auto& [theirs, ours] : attempt.image) own.insert(ours);
  absl::flat_hash_set<TensorRef> results;
  for (const TensorRef theirs : attempt.traced->results) {
    if (theirs.node == nullptr) continue;
    const auto ours = attempt.image.find(theirs.node);
    if (ours != attempt.image.end()) results.insert({ours->second, theirs.port});
  }
  for (const auto& [theirs, ours] : attempt.image) {
    if (IsShared(*ours)) continue;
    for (const Use& use : ours->uses()) {
      const TensorRef read = use.consumer->input(static_cast<int>(use.index));
      if (!read.is_control() && !own.contains(use.consumer) && !results.contains(read)) return true;
    }
    for (const Endpoint& output : graph_->outputs()) {
      if (output.node == ours && !results.contains({ours, output.port})) return true;
    }
  }
  return false;
}

bool OperatorFinder::TryAt(size_t i, TensorRef result) {
  Attempt attempt;
  attempt.traced = &trace_[i];
  for (const TensorRef input : attempt.traced->inputs) {
    if (input.node != nullptr) attempt.boundary.insert(input);
  }
  bool is_first = true;
  for (const TensorRef theirs : attempt.traced->results) {
    if (theirs.node == nullptr) continue;
    TensorRef ours = result;
    if (!is_first) {
      const auto image = attempt.image.find(theirs.node);
      const auto bound = bound_.find(theirs);
      if (image != attempt.image.end()) {
        ours = {image->second, theirs.port};
      } else if (Node* named = graph_->Find(theirs.node->name())) {
        ours = {named, theirs.port};
      } else if (bound != bound_.end()) {
        ours = bound->second;
      } else {
        return false;
      }
    }
    is_first = false;
    if (attempt.boundary.contains(theirs) || !MatchRef(theirs, ours, &attempt)) return false;
  }
  if (!MatchEffects(&attempt) || attempt.image.empty() || HasOtherReaders(attempt)) return false;
  auto found = std::make_unique<Found>();
  for (const TensorRef theirs : attempt.traced->inputs) {
    TensorRef ours;
    if (theirs.node != nullptr) {
      if (const auto bound = attempt.bound.find(theirs); bound != attempt.bound.end()) {
        ours = bound->second;
      } else if (const auto known = bound_.find(theirs); known != bound_.end()) {
        ours = known->second;  // An operand that the import does not read.
      } else if (Node* named = graph_->Find(theirs.node->name())) {
        ours = {named, theirs.port};
      } else {
        return false;
      }
    }
    found->inputs.push_back(ours);
  }
  for (const TensorRef theirs : attempt.traced->results) {
    found->results.push_back(theirs.node == nullptr ? TensorRef()
                                                    : TensorRef{attempt.image.at(theirs.node), theirs.port});
  }
  // A node belongs to one operator.
  for (const auto& [theirs, ours] : attempt.image) {
    if (!IsShared(*ours) && owned_.contains(ours)) return false;
  }
  for (const auto& [theirs, ours] : attempt.image) {
    if (!IsShared(*ours)) owned_.insert(ours);
  }
  images_.insert(attempt.image.begin(), attempt.image.end());
  for (const auto& [theirs, ours] : attempt.bound) BindForwards(theirs, ours);
  for (const TensorRef theirs : attempt.traced->results) {
    if (theirs.node != nullptr) BindForwards(theirs, {attempt.image.at(theirs.node), theirs.port});
  }
  found->image = std::move(attempt.image);
  found_[i] = std::move(found);
  return true;
}

// Goes from a constant of the operator, or from an operand that is known, to its result, in the source and in the graph
// at the same time.
void OperatorFinder::Follow(size_t i) {
  if (found_[i] != nullptr) return;
  const OperatorTrace& traced = trace_[i];
  TensorRef result;
  for (const TensorRef ref : traced.results) {
    if (result.node == nullptr) result = ref;
  }
  if (result.node == nullptr) return;
  // The way back from the result to each node, as (node, input).
  absl::flat_hash_map<const Node*, std::pair<const Node*, uint32_t>> reader;
  std::vector<const Node*> open = {result.node};
  // Where to start: a node and its input, and the tensor of the graph that this input reads.
  struct Start {
    const Node* reader;
    uint32_t index;
    TensorRef ours;
  };
  std::vector<Start> starts;
  reader.emplace(result.node, std::make_pair(nullptr, 0u));
  while (!open.empty()) {
    const Node* node = open.back();
    open.pop_back();
    if (node->op() == ops::kConst && node != result.node) {
      const absl::StatusOr<Tensor> value = ConstValue(*node);
      if (!value.ok() || value->bytes().size() < kLeastIdentifyingBytes) continue;
      const auto same = constants_.find(value->bytes().data());
      if (same == constants_.end()) continue;
      const auto [next, index] = reader.at(node);
      for (Node* ours : same->second) starts.push_back({next, index, {ours, 0}});
    }
    for (int k = 0; k < node->num_data_inputs(); ++k) {
      const TensorRef input = node->input(k);
      if (std::find(traced.inputs.begin(), traced.inputs.end(), input) != traced.inputs.end()) {
        const auto bound = bound_.find(input);
        if (bound != bound_.end()) starts.push_back({node, static_cast<uint32_t>(k), bound->second});
        continue;
      }
      if (reader.try_emplace(input.node, node, static_cast<uint32_t>(k)).second) open.push_back(input.node);
    }
  }
  for (const Start& start : starts) {
    std::vector<Node*> ours;
    const auto add_readers = [](const Node& node, std::optional<int> port, const Node* like, uint32_t index,
                                std::vector<Node*>* readers) {
      for (const Use& use : node.uses()) {
        if (readers->size() == kMostBranches) return;
        if (use.index != index || use.consumer->op() != like->op()) continue;
        if (port.has_value() && use.consumer->input(static_cast<int>(index)).port != *port) continue;
        readers->push_back(use.consumer);
      }
    };
    add_readers(*start.ours.node, start.ours.port, start.reader, start.index, &ours);
    for (const Node* theirs = start.reader; theirs != result.node && !ours.empty();) {
      const auto [next, index] = reader.at(theirs);
      std::vector<Node*> readers;
      for (const Node* node : ours) add_readers(*node, std::nullopt, next, index, &readers);
      ours = std::move(readers);
      theirs = next;
    }
    for (Node* node : ours) {
      if (TryAt(i, {node, result.port})) return;
    }
  }
}

Node* OperatorFinder::ImageOf(const Node* theirs) const {
  if (const auto image = images_.find(theirs); image != images_.end()) return image->second;
  Node* named = graph_->Find(theirs->name());
  return named != nullptr && named->op() == theirs->op() ? named : nullptr;
}

// An operator whose order among the effects has changed is not kept. Dropping one may contradict another.
void OperatorFinder::DropContradictions() {
  for (std::unique_ptr<Found>& found : found_) {
    if (found == nullptr) continue;
    for (const auto& [theirs, ours] : found->image) {
      std::vector<const Node*> expected;
      for (const Node* control : ControlsOf(*theirs)) expected.push_back(ImageOf(control));
      std::vector<const Node*> actual = ControlsOf(*ours);
      std::sort(expected.begin(), expected.end());
      std::sort(actual.begin(), actual.end());
      if (expected == actual) continue;
      found = nullptr;
      break;
    }
  }
}

// A carried operator hides the variable or table behind a handle from the writer. So a handle is only kept if an
// operator that is kept gives the resource its initial value.
void OperatorFinder::DropUninitialized() {
  absl::flat_hash_set<const Node*> kept;
  for (const std::unique_ptr<Found>& found : found_) {
    if (found == nullptr) continue;
    for (const auto& [theirs, ours] : found->image) kept.insert(ours);
  }
  absl::flat_hash_set<const Node*> open;  // Handles.
  for (const Node* node : initializers_) {
    if (!kept.contains(node)) open.insert(node->input(0).node);
  }
  for (std::unique_ptr<Found>& found : found_) {
    if (found == nullptr) continue;
    const bool is_open = std::any_of(found->results.begin(), found->results.end(),
                                     [&](TensorRef result) { return open.contains(result.node); });
    if (is_open) found = nullptr;
  }
}

absl::StatusOr<int> OperatorFinder::Replace() {
  TfliteContainer container = container_;
  CarriedOperatorMaker maker(&container, entry_, graph_);
  const absl::StatusOr<ShapeMap> shapes = InferShapes(*graph_), source_shapes = InferShapes(source_);
  std::vector<std::string> input_texts, output_texts;
  for (const Endpoint& input : graph_->inputs()) input_texts.push_back(input.text);
  for (const Endpoint& output : graph_->outputs()) output_texts.push_back(output.text);

  absl::flat_hash_map<TensorRef, TensorRef> replaced;        // Results.
  absl::flat_hash_map<const Node*, Node*> carrier;           // By node of an operator.
  std::vector<std::pair<Node*, std::vector<Node*>>> follow;  // Control inputs of carriers, before replacement.
  std::vector<Node*> initializers, carriers;
  const auto& operators = *container_.subgraph(entry_).operators();
  int count = 0;
  for (size_t i = 0; i < found_.size(); ++i) {
    if (found_[i] == nullptr) continue;
    const Found& found = *found_[i];
    const tflite::Operator& op = *operators.Get(static_cast<uint32_t>(i));
    // Result 0 keeps the name of a fetched node, and others get an Identity of that name.
    const auto is_fetched = [&](TensorRef ref) {
      return std::any_of(graph_->outputs().begin(), graph_->outputs().end(),
                         [&](const Endpoint& output) { return output.node == ref.node && output.port == ref.port; });
    };
    bool is_kept = true;
    for (size_t k = 0; k < found.results.size(); ++k) {
      const TensorRef ref = found.results[k];
      if (ref.node != nullptr && is_fetched(ref)) is_kept &= ref.port == 0;
    }
    // Several operators may return the same handle of a variable.
    const bool is_known =
        !found.results.empty() && found.results[0].node != nullptr && replaced.contains(found.results[0]);
    if (is_known) {
      ++count;
      continue;
    }
    if (!is_kept) continue;
    absl::flat_hash_map<int, TensorRef> values;
    // An operand that the import ignores may have no value yet where the operator stands.
    bool has_operands = true;
    for (size_t k = 0; k < found.inputs.size(); ++k) {
      const int tensor = op.inputs()->Get(static_cast<uint32_t>(k));
      if (found.inputs[k].node != nullptr) {
        values[tensor] = found.inputs[k];
      } else if (tensor >= 0 && !container.IsConstantOperand(entry_, tensor)) {
        has_operands &= container.tensor(entry_, tensor).is_variable();
      }
    }
    if (!has_operands) continue;
    const auto value_of = [&](int tensor) -> absl::StatusOr<TensorRef> {
      const auto value = values.find(tensor);
      if (value == values.end()) return absl::InternalError(absl::StrCat("tensor ", tensor, " has no value"));
      const auto known = replaced.find(value->second);
      return known == replaced.end() ? value->second : known->second;
    };
    Node* first = nullptr;
    for (const TensorRef ref : found.results) {
      if (first == nullptr) first = ref.node;
    }
    const std::string name =
        first == nullptr ? graph_->UniqueName(absl::StrCat("operator_", i)) : std::string(first->name());
    const std::string own_name = first == nullptr ? name : graph_->UniqueName(absl::StrCat(name, "/operator"));
    PF_ASSIGN_OR_RETURN(Node * node, maker.Add(op, own_name, first, value_of));
    carriers.push_back(node);
    PF_ASSIGN_OR_RETURN(CarriedOperator carried, ReadCarried(*node));
    std::vector<Shape> output_shapes;
    for (size_t k = 0; k < found.results.size(); ++k) {
      const TensorRef ours = found.results[k];
      const TensorRef theirs = trace_[i].results[k];
      tflite::TensorT& tensor = *carried.tensors[static_cast<size_t>(carried.num_inputs) + k];
      Shape shape = Shape::UnknownRank();
      if (ours.node != nullptr) {
        shape = shapes.ok() ? shapes->Of(ours) : Shape::UnknownRank();
        // The name of the file stays unless the node was renamed.
        if (ours.node->name() != theirs.node->name()) {
          tensor.name = ours.port == 0 ? std::string(ours.node->name()) : ours.ToString();
        }
        if (shape.has_rank() && !(source_shapes.ok() && source_shapes->Of(theirs) == shape)) {
          std::vector<int32_t> dims, open;
          for (int d = 0; d < shape.rank(); ++d) {
            dims.push_back(static_cast<int32_t>(std::max<int64_t>(shape.dim(d), shape.dim(d) < 0 ? 1 : 0)));
            open.push_back(static_cast<int32_t>(shape.dim(d)));
          }
          tensor.shape = std::move(dims);
          tensor.shape_signature = shape.IsFullyKnown() ? std::vector<int32_t>() : std::move(open);
        }
      }
      output_shapes.push_back(shape);
    }
    StoreCarried(carried, node);
    node->SetAttr("output_shapes", AttrValue::ShapeList(output_shapes));
    std::vector<Node*> controls;
    for (const auto& [theirs, ours] : found.image) {
      if (IsShared(*ours) && first != ours) continue;
      carrier.emplace(ours, node);
      for (int k = ours->num_data_inputs(); k < ours->num_inputs(); ++k) controls.push_back(ours->input(k).node);
    }
    std::sort(controls.begin(), controls.end(), [](const Node* a, const Node* b) { return a->id() < b->id(); });
    follow.emplace_back(node, std::move(controls));
    if (carried.op.builtin_options.AsCallOnceOptions() != nullptr) initializers.push_back(node);
    for (size_t k = 0; k < found.results.size(); ++k) {
      if (found.results[k].node == nullptr) continue;
      replaced.emplace(found.results[k], TensorRef{node, static_cast<int>(k)});
      const TensorRef old = found.results[k];
      graph_->ReplaceUses(old, {node, static_cast<int>(k)});
      if (k == 0 || old.node == first || !is_fetched(old)) continue;
      const std::string fetched_name(old.node->name());
      PF_ASSIGN_OR_RETURN(const std::vector<DType> types, OutputTypes(*old.node));
      PF_RETURN_IF_ERROR(graph_->Rename(old.node, graph_->UniqueName(absl::StrCat(fetched_name, "/replaced"))));
      PF_ASSIGN_OR_RETURN(Node * fetched, graph_->AddNode(fetched_name, ops::kIdentity));
      graph_->AddInput(fetched, {node, static_cast<int>(k)});
      fetched->SetAttr("T", AttrValue::Type(types[0]));
    }
    if (first != nullptr) {
      PF_RETURN_IF_ERROR(graph_->Rename(first, graph_->UniqueName(absl::StrCat(name, "/replaced"))));
      PF_RETURN_IF_ERROR(graph_->Rename(node, name));
    }
    ++count;
  }
  PF_RETURN_IF_ERROR(graph_->DeclareInterface(input_texts, output_texts));
  for (const auto& [node, controls] : follow) {
    for (Node* control : controls) {
      const auto known = carrier.find(control);
      graph_->AddControlInput(node, known == carrier.end() ? control : known->second);
    }
  }
  // In the order of their numbers, so that the result does not depend on addresses.
  for (Node* node : graph_->Nodes()) {
    if (const auto known = carrier.find(node); known != carrier.end()) {
      graph_->ReplaceControlUses(node, known->second);
    }
  }
  // Initialisers have no readers. They run before operators on resources.
  for (Node* initializer : initializers) {
    for (Node* node : carriers) {
      PF_ASSIGN_OR_RETURN(const std::vector<DType> outputs, OutputTypes(*node));
      if (std::find(outputs.begin(), outputs.end(), DType::kResource) != outputs.end()) {
        graph_->AddControlInput(node, initializer);
      }
    }
  }
  // Removes replaced nodes that have no other readers.
  std::vector<bool> is_candidate(graph_->id_limit(), false);
  for (const std::unique_ptr<Found>& found : found_) {
    if (found == nullptr) continue;
    for (const auto& [theirs, ours] : found->image) is_candidate[ours->id()] = true;
  }
  std::vector<Node*> roots;
  for (Node* node : graph_->Nodes()) {
    if (!is_candidate[node->id()] || graph_->IsEndpoint(node)) roots.push_back(node);
  }
  std::vector<bool> is_needed = ReachedBackwards(*graph_, roots, std::vector<bool>(graph_->id_limit(), false));
  std::vector<bool> remove(graph_->id_limit(), false);
  for (size_t id = 0; id < remove.size(); ++id) remove[id] = is_candidate[id] && !is_needed[id];
  PF_RETURN_IF_ERROR(graph_->RemoveNodes(remove));
  return count;
}

}  // namespace

absl::string_view TfliteSource::format() const { return kFormat; }

std::shared_ptr<const TfliteSource> TfliteSourceOf(const Graph& graph) {
  std::shared_ptr<const GraphSource> source = SourceOf(graph);
  if (source == nullptr || source->format() != kFormat) return nullptr;
  return std::static_pointer_cast<const TfliteSource>(source);
}

absl::StatusOr<bool> IsUnchanged(const Graph& graph, const TfliteSource& source) {
  PF_ASSIGN_OR_RETURN(TfliteContainer container, source.Open());
  PF_ASSIGN_OR_RETURN(const std::unique_ptr<Graph> original, ImportTflite(std::move(container), source.entry()));
  if (graph.num_nodes() != original->num_nodes() || !SameLibrary(&graph, original.get())) return false;
  const auto same_texts = [](const std::vector<Endpoint>& a, const std::vector<Endpoint>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](const Endpoint& x, const Endpoint& y) { return x.text == y.text; });
  };
  if (!same_texts(graph.inputs(), original->inputs()) || !same_texts(graph.outputs(), original->outputs())) {
    return false;
  }
  const Node* theirs = original->first();
  for (const Node* ours = graph.first(); ours != nullptr; ours = ours->next(), theirs = theirs->next()) {
    if (ours->name() != theirs->name() || ours->op() != theirs->op() || ours->num_inputs() != theirs->num_inputs() ||
        ours->num_data_inputs() != theirs->num_data_inputs() || !SameAttrs(*ours, *theirs)) {
      return false;
    }
    for (int k = 0; k < ours->num_inputs(); ++k) {
      const TensorRef a = ours->input(k), b = theirs->input(k);
      if (a.port != b.port || a.node->name() != b.node->name()) return false;
    }
  }
  return true;
}

absl::StatusOr<KeptOperators> KeepOperators(Graph* graph) {
  KeptOperators result;
  const std::shared_ptr<const TfliteSource> source = TfliteSourceOf(*graph);
  if (source == nullptr) return result;
  PF_ASSIGN_OR_RETURN(const TfliteContainer container, source->Open());
  std::vector<OperatorTrace> trace;
  PF_ASSIGN_OR_RETURN(const std::unique_ptr<Graph> original, ImportTflite(container, source->entry(), &trace));
  result.total = static_cast<int>(trace.size());
  if (trace.empty()) return result;
  OperatorFinder finder(container, source->entry(), *original, trace, graph);
  finder.Run();
  PF_ASSIGN_OR_RETURN(result.kept, finder.Replace());
  return result;
}

}  // namespace permafrost
