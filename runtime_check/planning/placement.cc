// Estimates placements of nodes, and improves them by minimum cuts (alpha expansion: Boykov, Veksler and Zabih, 2001).
#include "runtime_check/planning/placement.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>

#include "graph/base/minimum_cut.h"
#include "runtime_check/kernel.h"
#include "runtime_check/planning/prepared_node.h"
#include "runtime_check/planning/step_cost.h"

namespace permafrost {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr int kKernels = 0;
// The preference for the order that the user gives, against differences within the error of the estimates.
constexpr double kPreference = 0.95;
// The share of the time of a step that remains where it is fused with the node before.
constexpr double kFusedShare = 0.1;
// Rounds of expansions over all owners. Two are enough for the recorded models.
constexpr int kMostRounds = 4;
// Visits of edges of one cut, about 0.2 seconds.
constexpr int64_t kMostSteps = 20'000'000;

// An operand that a node reads from another node, or a result that a fetch reads.
struct Crossing {
  int from = -1, to = -1;  // Positions; -1: a feed or fetch, in the memory of the host.
  double bytes = 0;        // Of the tensor, divided among its readers.
  double share = 1;        // 1 / number of readers.
};

class Placer {
 public:
  Placer(const Program& program, const PlanState& state, const std::vector<Runner>& runners,
         const DelegateChoice& choice, int num_threads)
      : program_(program), state_(state), runners_(runners), choice_(choice), num_threads_(num_threads) {
    speeds_.emplace_back();  // Of the built-in kernels; unused but for the transfers.
    speeds_.back().entry_ns = 0;
    for (const auto& member : choice.members) speeds_.push_back(member->Speed(num_threads));
  }

  Placement Place() {
    EstimateNodes();
    FindCrossings();
    const auto preferred = [&](size_t i) { return FirstOf(i, 0); };
    std::vector<int> best = Owners(preferred);
    double least = Estimate(best) * kPreference;
    const auto consider = [&](std::vector<int> owners) {
      Expand(&owners);
      const double estimate = Estimate(owners);
      if (estimate >= least) return;
      least = estimate;
      best = std::move(owners);
    };
    consider(best);
    for (int owner = choice_.includes_kernels ? kKernels : 1; owner <= num_members(); ++owner) {
      consider(Owners([&](size_t i) { return FirstOf(i, owner); }));
    }
    result_.owners = best;
    result_.total_ns = Estimate(best);
    for (int owner = num_members(); owner >= 0; --owner) {
      const auto alone = Owners([&](size_t i) { return owner != kKernels && Supports(i, owner) ? owner : kKernels; });
      result_.alone.emplace_back(owner == kKernels ? "the built-in kernels" : choice_.members[owner - 1]->name(),
                                 Estimate(alone));
    }
    std::reverse(result_.alone.begin(), result_.alone.end());
    return std::move(result_);
  }

 private:
  int num_members() const { return static_cast<int>(choice_.members.size()); }
  bool IsPlaced(size_t position) const { return runners_[position] == Runner::kDelegate; }
  bool Supports(size_t position, int owner) const {
    return (state_.nodes[position].supporters >> (owner - 1) & 1) != 0;
  }
  // Whether a node may be placed there.
  bool MayRun(size_t position, int owner) const {
    return owner == kKernels ? choice_.includes_kernels : Supports(position, owner);
  }
  // Returns `wanted` if the node may run there, else the first member that supports it. 0: no wish unless
  // includes_kernels.
  int FirstOf(size_t position, int wanted) const {
    if (wanted != kKernels && Supports(position, wanted)) return wanted;
    for (int owner = 1; owner <= num_members(); ++owner) {
      if (Supports(position, owner)) return owner;
    }
    return kKernels;
  }

  template <typename OwnerOf>
  std::vector<int> Owners(OwnerOf owner_of) const {
    std::vector<int> owners(program_.nodes.size(), kKernels);
    for (size_t i = 0; i < owners.size(); ++i) {
      if (IsPlaced(i)) owners[i] = owner_of(i);
    }
    return owners;
  }

  double BytesOf(int tensor) const {
    const TensorState& state = state_.tensors[tensor];
    if (!state.shape.IsFullyKnown()) return 0;
    return static_cast<double>(ValueBytes(program_.tensors[tensor].dtype, state.shape).value_or(0));
  }

  void EstimateNodes() {
    result_.estimated_ns.resize(program_.nodes.size());
    for (size_t i = 0; i < program_.nodes.size(); ++i) {
      std::vector<double>& estimates = result_.estimated_ns[i];
      estimates.assign(static_cast<size_t>(num_members()) + 1, kInfinite);
      if (runners_[i] == Runner::kNone) continue;
      const ProgramNode& node = program_.nodes[i];
      std::vector<TypedShape> inputs, outputs;
      bool is_known = true;
      int num_computed = 0;  // Inputs that are no constants.
      const auto add = [&](int tensor, std::vector<TypedShape>* shapes) {
        is_known = is_known && state_.tensors[tensor].shape.IsFullyKnown();
        shapes->push_back({program_.tensors[tensor].dtype, state_.tensors[tensor].shape});
      };
      for (const int tensor : program_.InputsOf(node)) {
        add(tensor, &inputs);
        num_computed += state_.tensors[tensor].kind != TensorState::Kind::kConstant ? 1 : 0;
      }
      for (int j = 0; j < node.num_outputs; ++j) add(node.first_output + j, &outputs);
      if (!is_known || node.kernel == nullptr || node.kernel->is_alias()) {
        estimates[kKernels] = 0;  // The same everywhere.
        for (int owner = 1; IsPlaced(i) && owner <= num_members(); ++owner) {
          if (Supports(i, owner)) estimates[static_cast<size_t>(owner)] = 0;
        }
        continue;
      }
      estimates[kKernels] = EstimateOnThreads(EstimateOnOneThread(*node.node, inputs, outputs), num_threads_);
      if (!IsPlaced(i)) continue;
      const StepWork work = WorkOf(*node.node, inputs, outputs);
      for (int owner = 1; owner <= num_members(); ++owner) {
        if (!Supports(i, owner)) continue;
        const DelegateSpeed& speed = speeds_[static_cast<size_t>(owner)];
        double& estimate = estimates[static_cast<size_t>(owner)];
        estimate = state_.nodes[i].estimated_ns[static_cast<size_t>(owner) - 1];
        if (estimate < 0) {
          estimate = speed.node_ns + work.flops / speed.flops_per_ns + work.bytes / speed.bytes_per_ns;
          if (speed.fuses_steps && work.flops == 0 && num_computed < 2) estimate *= kFusedShare;
        }
      }
    }
  }

  void FindCrossings() {
    producer_.assign(program_.tensors.size(), -1);
    for (size_t i = 0; i < program_.nodes.size(); ++i) {
      const ProgramNode& node = program_.nodes[i];
      if (runners_[i] == Runner::kNone) continue;
      for (int j = 0; j < node.num_outputs; ++j) producer_[node.first_output + j] = static_cast<int>(i);
    }
    std::vector<int> readers(program_.tensors.size(), 0);
    std::vector<std::pair<int, int>> reads;  // Tensor and reader.
    const auto read = [&](int tensor, int reader) {
      if (state_.tensors[tensor].kind == TensorState::Kind::kConstant) return;
      ++readers[tensor];
      reads.emplace_back(tensor, reader);
    };
    for (size_t i = 0; i < program_.nodes.size(); ++i) {
      if (runners_[i] == Runner::kNone) continue;
      for (const int tensor : program_.InputsOf(program_.nodes[i])) read(tensor, static_cast<int>(i));
    }
    for (const int tensor : program_.fetches) read(tensor, -1);
    for (const auto& [tensor, reader] : reads) {
      const double share = 1.0 / readers[tensor];
      crossings_.push_back({producer_[tensor], reader, BytesOf(tensor) * share, share});
    }
  }

  double NsPerByte(int owner) const {
    const double speed = speeds_[static_cast<size_t>(owner)].transfer_bytes_per_ns;
    return speed > 0 ? 1 / speed : 0;
  }

  // The estimated time of a run, with the partitions that the placement leads to.
  double Estimate(const std::vector<int>& owners) const {
    double total = 0;
    std::vector<int> group_of(program_.nodes.size(), -1);
    const std::vector<NodeGroup> groups = GroupByOwner(program_, runners_, owners);
    for (size_t g = 0; g < groups.size(); ++g) {
      total += speeds_[static_cast<size_t>(groups[g].owner)].entry_ns;
      for (const int position : groups[g].positions) {
        group_of[position] = static_cast<int>(g);
        total += result_.estimated_ns[position][static_cast<size_t>(groups[g].owner)];
      }
    }
    // A tensor enters a partition once, and leaves it once.
    std::vector<std::pair<int, int>> entered;
    std::vector<bool> left(program_.tensors.size(), false);
    const auto cross = [&](int tensor, int group) {
      if (state_.tensors[tensor].kind == TensorState::Kind::kConstant) return;
      const int from = producer_[tensor] < 0 ? -1 : group_of[producer_[tensor]];
      if (from == group) return;
      if (from >= 0 && !left[tensor]) {
        left[tensor] = true;
        total += BytesOf(tensor) * NsPerByte(groups[from].owner);
      }
      if (group >= 0 && groups[group].owner != kKernels) entered.emplace_back(tensor, group);
    };
    for (size_t g = 0; g < groups.size(); ++g) {
      for (const int position : groups[g].positions) {
        for (const int tensor : program_.InputsOf(program_.nodes[position])) cross(tensor, static_cast<int>(g));
      }
    }
    for (const int tensor : program_.fetches) cross(tensor, -1);
    std::sort(entered.begin(), entered.end());
    entered.erase(std::unique(entered.begin(), entered.end()), entered.end());
    for (const auto& [tensor, group] : entered) total += BytesOf(tensor) * NsPerByte(groups[group].owner);
    return total;
  }

  // The cost of a tensor that goes from one owner to another.
  double CrossingNs(const Crossing& crossing, int from, int to) const {
    if (from == to) return 0;
    return crossing.bytes * (NsPerByte(from) + NsPerByte(to)) +
           crossing.share * speeds_[static_cast<size_t>(to)].entry_ns;
  }

  // Moves nodes to one owner after the other where that lowers the cost.
  void Expand(std::vector<int>* owners) const {
    for (int round = 0; round < kMostRounds; ++round) {
      bool has_moved = false;
      for (int owner = 0; owner <= num_members(); ++owner) has_moved = ExpandTo(owner, owners) || has_moved;
      if (!has_moved) return;
    }
  }

  // The best set of nodes to move to `owner`, all at once.
  bool ExpandTo(int owner, std::vector<int>* owners) const {
    MinimumCut cut;
    std::vector<int> vertex(owners->size(), -1);
    for (size_t i = 0; i < owners->size(); ++i) {
      if (IsPlaced(i) && (*owners)[i] != owner && MayRun(i, owner)) vertex[i] = cut.AddVertex();
    }
    // Costs of keeping the owner (on the side of the source) and of moving, by node; capacities are nanoseconds.
    std::vector<double> keep(owners->size(), 0), move(owners->size(), 0);
    for (size_t i = 0; i < owners->size(); ++i) {
      if (vertex[i] < 0) continue;
      keep[i] = result_.estimated_ns[i][static_cast<size_t>((*owners)[i])];
      move[i] = result_.estimated_ns[i][static_cast<size_t>(owner)];
    }
    for (const Crossing& crossing : crossings_) {
      const int from = crossing.from < 0 ? kKernels : (*owners)[crossing.from];
      const int to = crossing.to < 0 ? kKernels : (*owners)[crossing.to];
      const int u = crossing.from < 0 ? -1 : vertex[crossing.from], v = crossing.to < 0 ? -1 : vertex[crossing.to];
      if (u < 0 && v < 0) continue;
      const double both = CrossingNs(crossing, from, to);
      const double first = CrossingNs(crossing, owner, to), second = CrossingNs(crossing, from, owner);
      if (u < 0) {
        keep[crossing.to] += both;
        move[crossing.to] += second;
      } else if (v < 0) {
        keep[crossing.from] += both;
        move[crossing.from] += first;
      } else {
        // both + (first - both) [u moves] - first [v moves] + (first + second - both) [only v moves].
        keep[crossing.from] += both;
        move[crossing.from] += first;
        keep[crossing.to] += first;
        cut.AddEdge(u, v, Capacity(first + second - both));
      }
    }
    for (size_t i = 0; i < owners->size(); ++i) {
      if (vertex[i] < 0) continue;
      const double base = std::min(keep[i], move[i]);
      // On the side of the sink a node moves: then the edge from the source is cut.
      cut.AddEdge(MinimumCut::kSource, vertex[i], Capacity(move[i] - base));
      cut.AddEdge(vertex[i], MinimumCut::kSink, Capacity(keep[i] - base));
    }
    const std::optional<std::vector<bool>> is_source = cut.Find(kMostSteps);
    if (!is_source.has_value()) return false;
    std::vector<int> moved = *owners;
    bool has_moved = false;
    for (size_t i = 0; i < owners->size(); ++i) {
      if (vertex[i] < 0 || (*is_source)[vertex[i]]) continue;
      moved[i] = owner;
      has_moved = true;
    }
    if (!has_moved || Estimate(moved) >= Estimate(*owners)) return false;
    *owners = std::move(moved);
    return true;
  }

  static int64_t Capacity(double ns) {
    return static_cast<int64_t>(std::min(std::max(ns, 0.0), 1e15));  // 1e15: eleven days.
  }

  const Program& program_;
  const PlanState& state_;
  const std::vector<Runner>& runners_;
  const DelegateChoice& choice_;
  const int num_threads_;
  std::vector<DelegateSpeed> speeds_;  // By owner.
  std::vector<int> producer_;          // By tensor: the node that runs; -1 for a feed.
  std::vector<Crossing> crossings_;
  Placement result_;
};

}  // namespace

Placement PlaceNodes(const Program& program, const PlanState& state, const std::vector<Runner>& runners,
                     const DelegateChoice& choice, int num_threads) {
  return Placer(program, state, runners, choice, num_threads).Place();
}

}  // namespace permafrost
