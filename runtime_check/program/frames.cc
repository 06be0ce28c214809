// Assigns nodes to frames, then sorts each frame separately.
#include "runtime_check/program/frames.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "graph/base/status.h"

namespace permafrost {
namespace {

class FrameSorter {
 public:
  FrameSorter(const Graph& graph, const std::vector<bool>& needed, absl::FunctionRef<bool(TensorRef)> waits_for)
      : graph_(graph), needed_(needed), waits_for_(waits_for) {}

  absl::StatusOr<FrameOrder> Run() {
    frame_of_.assign(graph_.id_limit(), kNone);
    entered_.assign(graph_.id_limit(), kNone);
    frames_.emplace_back();
    PF_RETURN_IF_ERROR(SpreadFrames());
    PF_RETURN_IF_ERROR(SortFrames());
    Flatten();
    return std::move(result_);
  }

 private:
  static constexpr int kNone = -1;

  std::string NameOf(int frame) const {
    return frame == 0 ? std::string("outside any frame") : absl::StrCat("in frame '", frames_[frame].name, "'");
  }

  // Returns whether input `index` of the consumer counts: it is computed by a node that is needed.
  bool Counts(const Node& consumer, int index) const {
    const TensorRef input = consumer.input(index);
    return needed_[input.node->id()] && waits_for_(input);
  }

  bool HasNoneToWaitFor(const Node& node) const {
    for (int i = 0; i < node.num_inputs(); ++i) {
      if (Counts(node, i)) return false;
    }
    return true;
  }

  absl::Status Enter(const Node& node, int parent) {
    absl::StatusOr<std::string> name = StringAttr(node, "frame_name");
    PF_RETURN_IF_ERROR(name.status());
    if (name->empty()) return absl::InvalidArgumentError(absl::StrCat(node.Describe(), ": 'frame_name' is empty"));
    const auto [found, is_new] = by_name_.emplace(*name, static_cast<int>(frames_.size()));
    if (is_new) {
      Frame frame;
      frame.name = *std::move(name);
      frame.parent = parent;
      frame.depth = frames_[parent].depth + 1;
      frames_.push_back(std::move(frame));
    } else if (frames_[found->second].parent != parent) {
      return absl::InvalidArgumentError(absl::StrCat(node.Describe(), ": enters frame '", *name, "' ", NameOf(parent),
                                                     ", while another node enters it ",
                                                     NameOf(frames_[found->second].parent)));
    }
    entered_[node.id()] = found->second;
    return absl::OkStatus();
  }

  absl::Status SpreadFrames() {
    absl::Status outside;
    std::vector<const Node*> open;
    for (const Node* node = graph_.first(); node != nullptr; node = node->next()) {
      if (!needed_[node->id()]) continue;
      ++num_needed_;
      bool is_outside = HasNoneToWaitFor(*node);
      // Fed values are outside any frame.
      for (int i = 0; i < node->num_data_inputs(); ++i) is_outside = is_outside || !Counts(*node, i);
      if (!is_outside) continue;
      frame_of_[node->id()] = 0;
      open.push_back(node);
    }
    while (!open.empty()) {
      const Node* node = open.back();
      open.pop_back();
      const int frame = frame_of_[node->id()];
      const FlowRole role = FlowRoleOf(node->op());
      if (role == FlowRole::kEnter) PF_RETURN_IF_ERROR(Enter(*node, frame));
      if (frame == 0 && (role == FlowRole::kExit || role == FlowRole::kNextIteration)) {
        // Reported only if no edge crosses frames, because that error is more specific.
        outside = absl::InvalidArgumentError(absl::StrCat(node->Describe(), ": not in a frame; no Enter leads here"));
      }
      const int to = FrameOfOutputs(frames_, role, frame, entered_[node->id()]);
      for (const Use& use : node->uses()) {
        const Node* consumer = use.consumer;
        if (!needed_[consumer->id()] || !Counts(*consumer, static_cast<int>(use.index))) continue;
        int& known = frame_of_[consumer->id()];
        if (known == kNone) {
          known = to;
          open.push_back(consumer);
        } else if (known != to) {
          return absl::InvalidArgumentError(absl::StrCat(consumer->Describe(), ": input '",
                                                         consumer->input(static_cast<int>(use.index)).ToString(),
                                                         "' is ", NameOf(to), ", another input ", NameOf(known)));
        }
      }
    }
    return outside;
  }

  // The blocks to sort: nodes, and frames as blocks of their parents.
  size_t BlockOfFrame(int frame) const { return graph_.id_limit() + static_cast<size_t>(frame); }

  template <typename Visit>
  void ForEachConsumer(const Node& node, Visit visit) const {
    for (const Use& use : node.uses()) {
      const Node& consumer = *use.consumer;
      if (needed_[consumer.id()] && Counts(consumer, static_cast<int>(use.index))) visit(size_t{consumer.id()});
    }
  }

  // Visits the blocks of the node's own frame that wait for it, once per edge.
  template <typename Visit>
  void ForEachBlockAfter(const Node& node, Visit visit) const {
    switch (FlowRoleOf(node.op())) {
      case FlowRole::kEnter:
        visit(BlockOfFrame(entered_[node.id()]));
        return;
      case FlowRole::kExit:           // The value comes from the frame as a whole.
      case FlowRole::kNextIteration:  // The value is read in the next iteration.
        return;
      default:
        ForEachConsumer(node, visit);
    }
  }

  absl::Status SortFrames() {
    const size_t num_blocks = graph_.id_limit() + frames_.size();
    std::vector<uint32_t> pending(num_blocks, 0);
    std::vector<uint32_t> position(num_blocks, 0);
    std::vector<std::vector<const Node*>> exits(frames_.size());
    uint32_t next = 0;
    for (const Node* node = graph_.first(); node != nullptr; node = node->next()) {
      position[node->id()] = next++;
      if (!needed_[node->id()] || frame_of_[node->id()] == kNone) continue;
      ForEachBlockAfter(*node, [&](size_t to) { ++pending[to]; });
      if (FlowRoleOf(node->op()) != FlowRole::kExit) continue;
      exits[frame_of_[node->id()]].push_back(node);
      ForEachConsumer(*node, [&](size_t to) { ++pending[to]; });
    }
    blocks_.resize(frames_.size());
    using Entry = std::pair<uint32_t, size_t>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<Entry>> ready;
    for (const Node* node = graph_.first(); node != nullptr; node = node->next()) {
      if (needed_[node->id()] && frame_of_[node->id()] != kNone && pending[node->id()] == 0) {
        ready.push({position[node->id()], node->id()});
      }
    }
    std::vector<const Node*> by_id(graph_.id_limit(), nullptr);
    for (const Node* node = graph_.first(); node != nullptr; node = node->next()) by_id[node->id()] = node;
    // A frame has position 0, so it runs as early as possible.
    const auto release = [&](size_t block) {
      if (--pending[block] == 0) ready.push({position[block], block});
    };
    size_t sorted = 0;
    while (!ready.empty()) {
      const size_t block = ready.top().second;
      ready.pop();
      if (block >= graph_.id_limit()) {
        const auto frame = static_cast<int>(block - graph_.id_limit());
        blocks_[frames_[frame].parent].push_back(block);
        for (const Node* exit : exits[frame]) ForEachConsumer(*exit, [&](size_t to) { release(to); });
        continue;
      }
      ++sorted;
      blocks_[frame_of_[block]].push_back(block);
      ForEachBlockAfter(*by_id[block], release);
    }
    if (sorted == num_needed_ && Complete()) return absl::OkStatus();
    return CycleError(pending);
  }

  // Returns whether every frame was placed in its parent.
  bool Complete() const {
    size_t placed = 0;
    for (const std::vector<size_t>& blocks : blocks_) {
      for (const size_t block : blocks) placed += block >= graph_.id_limit() ? 1 : 0;
    }
    return placed + 1 == frames_.size();
  }

  absl::Status CycleError(const std::vector<uint32_t>& pending) const {
    for (int frame = 1; frame < static_cast<int>(frames_.size()); ++frame) {
      if (pending[BlockOfFrame(frame)] == 0) continue;
      for (const Node* node = graph_.first(); node != nullptr; node = node->next()) {
        if (entered_[node->id()] == frame && pending[node->id()] > 0) {
          return absl::InvalidArgumentError(
              absl::StrCat(node->Describe(), ": enters frame '", frames_[frame].name,
                           "' with a value that waits for a cycle or for an Exit of the same frame"));
        }
      }
    }
    size_t left = 0;
    const Node* first = nullptr;
    for (const Node* node = graph_.first(); node != nullptr; node = node->next()) {
      if (!needed_[node->id()] || (frame_of_[node->id()] != kNone && pending[node->id()] == 0)) continue;
      ++left;
      if (first == nullptr) first = node;
    }
    if (first == nullptr) return absl::InternalError("the order lost nodes");
    return absl::InvalidArgumentError(absl::StrCat(
        left, " nodes are in a cycle that no NextIteration closes or behind ", "one, such as ", first->Describe()));
  }

  void Flatten() {
    std::vector<Node*> by_id(graph_.id_limit(), nullptr);
    for (Node* node = graph_.first(); node != nullptr; node = node->next()) by_id[node->id()] = node;
    std::vector<std::pair<int, size_t>> open = {{0, 0}};  // A frame, and the index of its next block.
    while (!open.empty()) {
      const int frame = open.back().first;
      if (open.back().second == blocks_[frame].size()) {
        frames_[frame].end = static_cast<int>(result_.order.size());
        open.pop_back();
        continue;
      }
      const size_t block = blocks_[frame][open.back().second++];
      if (block >= graph_.id_limit()) {
        const auto inner = static_cast<int>(block - graph_.id_limit());
        frames_[inner].begin = static_cast<int>(result_.order.size());
        open.push_back({inner, 0});
      } else {
        result_.order.push_back(by_id[block]);
        result_.frame_of.push_back(frame);
      }
    }
    result_.frames = std::move(frames_);
  }

  const Graph& graph_;
  const std::vector<bool>& needed_;
  absl::FunctionRef<bool(TensorRef)> waits_for_;
  size_t num_needed_ = 0;
  std::vector<int> frame_of_;  // By node id: the frame that the node runs in.
  std::vector<int> entered_;   // By node id: the frame that an Enter leads into.
  std::vector<Frame> frames_;
  absl::flat_hash_map<std::string, int> by_name_;
  std::vector<std::vector<size_t>> blocks_;  // By frame, in order.
  FrameOrder result_;
};

}  // namespace

FlowRole FlowRoleOf(Op op) {
  static const auto* const kRoles = new absl::flat_hash_map<Op, FlowRole>{
      {ops::kSwitch, FlowRole::kSwitch},
      {ops::kRefSwitch, FlowRole::kSwitch},
      {ops::k_SwitchN, FlowRole::kSwitch},
      {ops::kMerge, FlowRole::kMerge},
      {ops::kRefMerge, FlowRole::kMerge},
      {ops::kEnter, FlowRole::kEnter},
      {ops::kRefEnter, FlowRole::kEnter},
      {ops::kExit, FlowRole::kExit},
      {ops::kRefExit, FlowRole::kExit},
      {ops::kNextIteration, FlowRole::kNextIteration},
      {ops::kRefNextIteration, FlowRole::kNextIteration},
      {ops::kControlTrigger, FlowRole::kTrigger},
  };
  const auto found = kRoles->find(op);
  return found == kRoles->end() ? FlowRole::kNone : found->second;
}

int FrameOfOutputs(const std::vector<Frame>& frames, FlowRole role, int frame, int entered) {
  if (role == FlowRole::kEnter) return entered;
  return role == FlowRole::kExit && frame > 0 ? frames[frame].parent : frame;
}

absl::StatusOr<FrameOrder> OrderByFrames(const Graph& graph, const std::vector<bool>& needed,
                                         absl::FunctionRef<bool(TensorRef)> waits_for) {
  return FrameSorter(graph, needed, waits_for).Run();
}

}  // namespace permafrost
