// The conditions under which the nodes of a program with control flow run: a static analysis of Switch, Merge and
// loops.
#ifndef PERMAFROST_RUNTIME_CHECK_PLANNING_FLOW_CONDITIONS_H_
#define PERMAFROST_RUNTIME_CHECK_PLANNING_FLOW_CONDITIONS_H_

#include <map>
#include <vector>

#include "runtime_check/program/program.h"

namespace permafrost {

// Assigns a condition to each node and tensor. Two nodes of one frame with the same condition are always both dead or
// both alive, in every iteration. The reverse does not hold: the analysis knows the structure of Switch, Merge and
// while loops, not the values of predicates.
//
// A condition is a set of atoms, and holds if all of its atoms hold. Atoms are: a Switch selects a given output, one of
// several conditions of a Merge holds, the current iteration of a loop runs, a loop is in its first iteration, an Exit
// of a loop was reached. Time and memory are linear in nodes and edges, times the nesting depth of loops.
class FlowConditions {
 public:
  static constexpr int kAlways = 0;

  // `program` must outlive the object.
  explicit FlowConditions(const Program& program);

  int OfNode(int position) const { return of_node_[position]; }
  int OfTensor(int tensor) const { return of_tensor_[tensor]; }
  // Returns the condition that holds where both conditions hold.
  int Both(int a, int b);

 private:
  // The loop variables of a frame: Merge nodes, each with an Enter and a NextIteration.
  struct Loop {
    // The frame is a while loop: all its variables are alive in the same iterations, all NextIteration nodes are alive
    // where the predicate is true, and each iteration runs if the one before was not the last. Assumed until refuted.
    bool is_plain = true;
    int predicate = -1;  // Tensor number; -1 if not found yet.
    int entered = -1;    // The condition of the Enter nodes; -1 if not found yet.
  };

  // Computes all conditions under the current assumptions. Returns false if an assumption was refuted.
  bool Pass();
  void AddNode(int position);
  int OfMerge(int position);
  bool IsLoopMerge(const ProgramNode& node) const;
  bool Confirms(const ProgramNode& merge);
  bool IsNextIteration(int tensor) const;
  int InputsCondition(const ProgramNode& node);
  // Returns the number of a set of atoms, and of an atom, given what it says.
  int Condition(std::vector<int> atoms);
  int With(int condition, std::vector<int> atom) { return Both(condition, Condition({Atom(std::move(atom))})); }
  int Atom(std::vector<int> key);

  const Program& program_;
  std::vector<int> producer_;       // By tensor: the position of its node; -1 for a feed.
  std::vector<int> root_;           // By tensor: the tensor of which it is an alias.
  std::vector<int> entered_frame_;  // By position; -1 unless the node is an Enter.
  std::vector<Loop> loops_;         // By frame.
  std::vector<int> of_node_, of_tensor_;
  std::vector<std::vector<int>> conditions_;  // By number: ascending atoms.
  std::map<std::vector<int>, int> condition_numbers_;
  std::vector<std::vector<int>> atoms_;  // By number: what the atom says.
  std::map<std::vector<int>, int> atom_numbers_;
};

}  // namespace permafrost

#endif  // PERMAFROST_RUNTIME_CHECK_PLANNING_FLOW_CONDITIONS_H_
