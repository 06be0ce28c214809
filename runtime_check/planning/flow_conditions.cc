// Analyses under which conditions nodes run.
#include "runtime_check/planning/flow_conditions.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "graph/graph.h"
#include "runtime_check/kernel.h"

namespace permafrost {
namespace {

// The first number of an atom's key.
enum AtomKind : int {
  kSwitchAtom,  // The tensor of the predicate, the number of outputs, the selected output.
  kMergeAtom,   // The conditions of the inputs, one of which holds.
  kLoopAtom,    // The frame: a plain loop runs this iteration.
  kVariable,    // The position of a NextIteration, or of a Merge in a loop that is not plain.
  kFirstAtom,   // The frame: this is the first iteration.
  kExitAtom,    // The frame, and the condition of the input, which held in some iteration.
  kOpaqueAtom,  // Conditions that all hold, and have too many atoms together.
};

// Branches nest a few deep. The limit bounds the analysis of hostile graphs; beyond it equal conditions may get two
// numbers, which costs speed only.
constexpr size_t kMostAtoms = 32;
// Each pass that refutes an assumption is repeated without it; loops that are not while loops are rare.
constexpr int kMostPasses = 8;

}  // namespace

FlowConditions::FlowConditions(const Program& program) : program_(program) {
  Condition({});  // kAlways.
  of_node_.assign(program.nodes.size(), kAlways);
  of_tensor_.assign(program.tensors.size(), kAlways);
  if (!program.has_control_flow()) return;
  producer_.assign(program.tensors.size(), -1);
  root_.resize(program.tensors.size());
  for (size_t i = 0; i < root_.size(); ++i) root_[i] = static_cast<int>(i);
  entered_frame_.assign(program.nodes.size(), -1);
  absl::flat_hash_map<absl::string_view, int> by_name;
  for (size_t i = 1; i < program.frames.size(); ++i) by_name.emplace(program.frames[i].name, static_cast<int>(i));
  for (size_t i = 0; i < program.nodes.size(); ++i) {
    const ProgramNode& node = program.nodes[i];
    for (int j = 0; j < node.num_outputs; ++j) producer_[node.first_output + j] = static_cast<int>(i);
    if (node.role == FlowRole::kEnter) {
      const auto found = by_name.find(StringAttr(*node.node, "frame_name").value_or(""));
      if (found != by_name.end()) entered_frame_[i] = found->second;
    } else if (node.role == FlowRole::kNone && node.kernel != nullptr && node.kernel->is_alias() &&
               node.num_inputs > 0) {
      root_[node.first_output] = root_[program.InputsOf(node)[0]];
    }
  }
  loops_.resize(program.frames.size());
  for (int pass = 0; !Pass(); ++pass) {
    if (pass < kMostPasses) continue;
    for (Loop& loop : loops_) loop.is_plain = false;
  }
}

bool FlowConditions::Pass() {
  for (Loop& loop : loops_) loop.predicate = loop.entered = -1;
  for (size_t i = 0; i < program_.nodes.size(); ++i) {
    const ProgramNode& node = program_.nodes[i];
    if (node.role != FlowRole::kNextIteration) continue;
    // The value of the iteration before, which any node may read.
    of_tensor_[node.first_output] = Condition({Atom({kVariable, static_cast<int>(i)})});
  }
  for (size_t i = 0; i < program_.nodes.size(); ++i) AddNode(static_cast<int>(i));
  bool is_confirmed = true;
  for (const ProgramNode& node : program_.nodes) {
    if (node.role != FlowRole::kMerge || !IsLoopMerge(node) || !loops_[node.frame].is_plain) continue;
    if (Confirms(node)) continue;
    loops_[node.frame].is_plain = false;
    is_confirmed = false;
  }
  return is_confirmed;
}

bool FlowConditions::IsNextIteration(int tensor) const {
  return producer_[tensor] >= 0 && program_.nodes[producer_[tensor]].role == FlowRole::kNextIteration;
}

bool FlowConditions::IsLoopMerge(const ProgramNode& node) const {
  const absl::Span<const int> inputs = program_.InputsOf(node);
  return std::any_of(inputs.begin(), inputs.end(), [&](int tensor) { return IsNextIteration(tensor); });
}

int FlowConditions::InputsCondition(const ProgramNode& node) {
  int condition = kAlways;
  for (const int tensor : program_.InputsOf(node)) condition = Both(condition, of_tensor_[tensor]);
  for (const int control : program_.ControlsOf(node)) condition = Both(condition, of_node_[control]);
  return condition;
}

void FlowConditions::AddNode(int position) {
  const ProgramNode& node = program_.nodes[position];
  int condition = node.role == FlowRole::kMerge     ? OfMerge(position)
                  : node.role == FlowRole::kTrigger ? kAlways
                                                    : InputsCondition(node);
  int output = condition;
  if (node.role == FlowRole::kEnter && !BoolAttr(*node.node, "is_constant").value_or(false)) {
    output = With(condition, {kFirstAtom, entered_frame_[position]});
  } else if (node.role == FlowRole::kExit) {
    const Loop& loop = loops_[node.frame];
    // A plain loop ends with an iteration in which its predicate is false.
    const bool is_end =
        loop.is_plain && loop.entered >= 0 && loop.predicate >= 0 &&
        condition == With(With(loop.entered, {kLoopAtom, node.frame}), {kSwitchAtom, loop.predicate, 2, 0});
    condition = is_end ? loop.entered : Condition({Atom({kExitAtom, node.frame, condition})});
    output = condition;
  }
  of_node_[position] = condition;
  if (node.role == FlowRole::kNextIteration) return;
  for (int i = 0; i < node.num_outputs; ++i) of_tensor_[node.first_output + i] = output;
  if (node.role != FlowRole::kSwitch) return;
  const int chooser = program_.InputsOf(node)[1];
  const int predicate = root_[chooser];
  Loop& loop = loops_[node.frame];
  if (loop.predicate < 0 && producer_[chooser] >= 0 &&
      program_.nodes[producer_[chooser]].node->op() == ops::kLoopCond) {
    loop.predicate = predicate;
  }
  for (int i = 0; i < node.num_outputs; ++i) {
    of_tensor_[node.first_output + i] = With(condition, {kSwitchAtom, predicate, node.num_outputs, i});
  }
}

int FlowConditions::OfMerge(int position) {
  const ProgramNode& node = program_.nodes[position];
  const absl::Span<const int> inputs = program_.InputsOf(node);
  if (IsLoopMerge(node)) {
    Loop& loop = loops_[node.frame];
    if (!loop.is_plain) return Condition({Atom({kVariable, position})});
    for (const int tensor : inputs) {
      if (loop.entered < 0 && !IsNextIteration(tensor) && producer_[tensor] >= 0) {
        loop.entered = of_node_[producer_[tensor]];
      }
    }
    return With(std::max(0, loop.entered), {kLoopAtom, node.frame});
  }
  std::vector<int> key = {kMergeAtom};
  for (const int tensor : inputs) {
    if (of_tensor_[tensor] == kAlways) return kAlways;
    key.push_back(of_tensor_[tensor]);
  }
  std::sort(key.begin() + 1, key.end());
  key.erase(std::unique(key.begin() + 1, key.end()), key.end());
  if (key.size() == 2) return key[1];
  if (key.size() == 3) {
    // The two outputs of a Switch: together they are as alive as the Switch.
    const std::vector<int>& a = conditions_[key[1]];
    const std::vector<int>& b = conditions_[key[2]];
    std::vector<int> both, differ;
    std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
    std::set_symmetric_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(differ));
    if (differ.size() == 2 && a.size() == b.size()) {
      const std::vector<int>& first = atoms_[differ[0]];
      const std::vector<int>& second = atoms_[differ[1]];
      const bool are_choices = first[0] == kSwitchAtom && second[0] == kSwitchAtom;
      if (are_choices && first[2] == 2 && second[2] == 2 && first[1] == second[1]) return Condition(std::move(both));
    }
  }
  return Condition({Atom(std::move(key))});
}

bool FlowConditions::Confirms(const ProgramNode& merge) {
  const Loop& loop = loops_[merge.frame];
  const absl::Span<const int> inputs = program_.InputsOf(merge);
  if (inputs.size() != 2 || loop.predicate < 0 || loop.entered < 0) return false;
  const int runs = With(loop.entered, {kLoopAtom, merge.frame});
  const int goes_on = With(runs, {kSwitchAtom, loop.predicate, 2, 1});
  int num_entered = 0;
  for (const int tensor : inputs) {
    if (producer_[tensor] < 0) return false;
    const ProgramNode& from = program_.nodes[producer_[tensor]];
    if (from.role == FlowRole::kNextIteration) {
      if (of_node_[producer_[tensor]] != goes_on) return false;
    } else if (from.role == FlowRole::kEnter && !BoolAttr(*from.node, "is_constant").value_or(false)) {
      if (of_node_[producer_[tensor]] != loop.entered) return false;
      ++num_entered;
    } else {
      return false;
    }
  }
  return num_entered == 1;
}

int FlowConditions::Both(int a, int b) {
  if (a == b || b == kAlways) return a;
  if (a == kAlways) return b;
  std::vector<int> atoms;
  std::set_union(conditions_[a].begin(), conditions_[a].end(), conditions_[b].begin(), conditions_[b].end(),
                 std::back_inserter(atoms));
  if (atoms.size() > kMostAtoms) atoms = {Atom({kOpaqueAtom, std::min(a, b), std::max(a, b)})};
  return Condition(std::move(atoms));
}

int FlowConditions::Condition(std::vector<int> atoms) {
  const auto [found, is_new] = condition_numbers_.emplace(std::move(atoms), static_cast<int>(conditions_.size()));
  if (is_new) conditions_.push_back(found->first);
  return found->second;
}

int FlowConditions::Atom(std::vector<int> key) {
  const auto [found, is_new] = atom_numbers_.emplace(std::move(key), static_cast<int>(atoms_.size()));
  if (is_new) atoms_.push_back(found->first);
  return found->second;
}

}  // namespace permafrost
