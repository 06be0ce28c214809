// A best-first search over halves of the edits.
#include "transforms/rewrites/noise_budget.h"

#include <algorithm>
#include <utility>

#include "graph/base/status.h"

namespace permafrost {
namespace {

// Correlated noise exceeds the sum of its parts. So the first choice keeps the sum below this share of the budget; the
// share is reduced if a measurement of the choice exceeds the budget.
constexpr double kFirstShare = 0.9;
constexpr double kNextShare = 0.7;
// Below this share of the budget the sum is not informative, and all edits are omitted.
constexpr double kLeastShare = 0.02;

struct Group {
  size_t begin, end;
  double noise;
};

class Search {
 public:
  Search(size_t count, const NoiseMeasurement& measure, int max_measurements)
      : measure_(measure), max_measurements_(max_measurements) {
    choice_.applied.assign(count, true);
  }

  absl::StatusOr<NoiseChoice> Run() {
    const size_t count = choice_.applied.size();
    if (count == 0) return choice_;
    PF_ASSIGN_OR_RETURN(choice_.noise, Measure(choice_.applied));
    if (choice_.noise <= 1) return choice_;
    PF_ASSIGN_OR_RETURN(base_, Measure(std::vector<bool>(count, false)));
    if (!(base_ <= 1)) {
      choice_.is_within = false;
      return choice_;
    }
    groups_.push_back({0, count, choice_.noise - base_});
    for (double share = kFirstShare; share >= kLeastShare; share *= kNextShare) {
      PF_RETURN_IF_ERROR(Reduce(share));
      PF_ASSIGN_OR_RETURN(choice_.noise, Measure(choice_.applied));
      if (choice_.noise <= 1) return choice_;
    }
    choice_.applied.assign(count, false);
    choice_.noise = base_;
    return choice_;
  }

 private:
  absl::StatusOr<double> Measure(const std::vector<bool>& applied) {
    ++choice_.num_measurements;
    return measure_(applied);
  }

  absl::StatusOr<Group> MeasureGroup(size_t begin, size_t end) {
    std::vector<bool> applied(choice_.applied.size(), false);
    std::fill(applied.begin() + static_cast<std::ptrdiff_t>(begin), applied.begin() + static_cast<std::ptrdiff_t>(end),
              true);
    PF_ASSIGN_OR_RETURN(const double noise, Measure(applied));
    return Group{begin, end, std::max(0.0, noise - base_)};
  }

  // Omits edits until the noise of the remaining groups sums up to at most this share of the budget.
  absl::Status Reduce(double share) {
    while (!groups_.empty()) {
      double sum = base_;
      size_t loudest = 0;
      for (size_t i = 0; i < groups_.size(); ++i) {
        sum += groups_[i].noise;
        if (groups_[i].noise > groups_[loudest].noise) loudest = i;
      }
      if (sum <= share) return absl::OkStatus();
      const Group group = groups_[loudest];
      groups_.erase(groups_.begin() + static_cast<std::ptrdiff_t>(loudest));
      if (group.end - group.begin == 1 || choice_.num_measurements >= max_measurements_) {
        for (size_t i = group.begin; i < group.end; ++i) choice_.applied[i] = false;
        continue;
      }
      const size_t middle = group.begin + (group.end - group.begin) / 2;
      PF_ASSIGN_OR_RETURN(const Group first, MeasureGroup(group.begin, middle));
      PF_ASSIGN_OR_RETURN(const Group second, MeasureGroup(middle, group.end));
      groups_.push_back(first);
      groups_.push_back(second);
    }
    return absl::OkStatus();
  }

  const NoiseMeasurement& measure_;
  const int max_measurements_;
  double base_ = 0;  // Noise without any edit.
  std::vector<Group> groups_;
  NoiseChoice choice_;
};

}  // namespace

absl::StatusOr<NoiseChoice> ChooseWithinNoise(size_t count, const NoiseMeasurement& measure, int max_measurements) {
  return Search(count, measure, max_measurements).Run();
}

}  // namespace permafrost
