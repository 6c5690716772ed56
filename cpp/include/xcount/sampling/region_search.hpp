// Branch and bound over the masks near one: is there a mask whose value differs by more than the
// threshold, in the gap's direction?
//
// Boxes of masks are cut in two; a box is left alone where its bounds say that no mask of it
// differs from an open value by more than the threshold. So a search that is not given up leaves an
// answer open iff no mask of the ball differs from it: docs/approximate.md, "What is sampled",
// "Single regions".
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "xcount/sampling/region_trees.hpp"
#include "xcount/trees/gap.hpp"
#include "xcount/trees/root_scores.hpp"

namespace xcount {

// The masks within a distance of a centre.
struct Ball {
  static constexpr std::int64_t kEverywhere = std::numeric_limits<std::int64_t>::max();

  std::span<const Axis> axes;    // of the sensitive features
  std::span<const Cell> centre;  // one cell per axis
  std::int64_t radius = kEverywhere;

  // Whether some mask of the box is within the radius.
  [[nodiscard]] bool meets(const MaskBox& box) const;
  // Boxes that together hold the ball: per axis the cells in reach, the missing one on its own as
  // long as the boxes are not too many.
  [[nodiscard]] std::vector<MaskBox> boxes() const;

 private:
  [[nodiscard]] std::int64_t distance(std::size_t i, const CellRange& range) const;
};

enum class Answer : std::uint8_t { kOpen, kSensitive, kNot };

template <class Value>
class RegionSearch {
 public:
  RegionSearch(const RegionTrees<Value>& trees, const Gap<Value>& gap) : trees_(trees), gap_(gap) {}

  // For each of the values whose answer is open: sets it to kSensitive if some mask of the ball and
  // the box differs by more than the threshold. Returns false if the search was given up after
  // `budget` residue nodes, which are taken off the budget.
  bool run(const Residue<Value>& residue, const MaskBox& box, const Ball& ball,
           std::span<const Value> values, std::span<Answer> answers, std::uint64_t& budget);

 private:
  struct Level {
    Residue<Value> residue;
    MaskBox box;
  };
  struct Split {
    std::size_t axis = 0;
    Cell at = 0;
  };

  void update_open();
  void compare_with_each_other();
  // Whether bounds leave anything open; marks the values that they decide.
  bool is_open(const Residue<Value>& residue);
  [[nodiscard]] bool can_differ(const Residue<Value>& residue) const;
  [[nodiscard]] Value promise(const Residue<Value>& residue) const;
  bool explore(const Residue<Value>& residue, const MaskBox& box, std::size_t depth);
  Level& level(std::size_t index);
  Split choose_split(const Residue<Value>& residue, const MaskBox& box);

  const RegionTrees<Value>& trees_;
  Gap<Value> gap_;
  std::vector<std::unique_ptr<Level>> levels_;
  RootScores scores_;
  std::vector<std::pair<Cell, double>> cuts_;
  // Of the run: what is asked, and the extremes of the values that are still open.
  const Ball* ball_ = nullptr;
  std::span<const Value> values_;
  std::span<Answer> answers_;
  std::uint64_t* budget_ = nullptr;
  bool any_open_ = false;
  Value lowest_{}, highest_{};
};

}  // namespace xcount
