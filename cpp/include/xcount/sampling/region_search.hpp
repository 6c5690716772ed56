// Branch and bound over the masks near one: is there a mask with a sum beyond its tolerance?
//
// Boxes of masks are cut in two; a box is left alone where its bounds say that every sum of it is
// within the tolerance of all starts that are open. So a search that is not given up leaves an
// answer open iff no mask of the ball differs from it: docs/approximate.md, "What is sampled",
// "Single regions".
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "xcount/sampling/region_trees.hpp"
#include "xcount/sampling/tolerance.hpp"
#include "xcount/support/stopping.hpp"
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
  // Cuts off a box that meets the ball what is out of its reach: along every ordered axis, the
  // cells that are too far even from the nearest cells of the others.
  void trim(MaskBox& box) const;
  // Boxes that together hold the ball: per axis the cells in reach, the missing one on its own as
  // long as the boxes are not too many.
  [[nodiscard]] std::vector<MaskBox> boxes() const;
  // The mask of a box that is nearest to the centre, and how far that is.
  [[nodiscard]] std::vector<Cell> nearest(const MaskBox& box) const;
  [[nodiscard]] std::int64_t distance(std::span<const Cell> mask) const;

 private:
  [[nodiscard]] std::int64_t distance(std::size_t i, const CellRange& range) const;
};

enum class Answer : std::uint8_t { kOpen, kSensitive, kNot };

template <class Value>
class RegionSearch {
 public:
  // chance: the rule, where the sums are leads that make one number together.
  explicit RegionSearch(const RegionTrees<Value>& trees,
                        const ToleranceRule<Value>* chance = nullptr)
      : trees_(trees), chance_(chance) {}

  // The starts: a tolerance of each sum for every answer, tolerances[answer * n_sums + sum]; of
  // the one number that they make, where they do.
  struct Starts {
    std::span<const Tolerance<Value>> tolerances;
    std::span<Answer> answers;
  };

  // For each answer that is open: sets it to kSensitive if some mask of the ball and the box has a
  // sum that is surely beyond its tolerance. residues: one for each sum; they are used up. Returns
  // false if an answer that stays open is not known to be no, because a sum is in doubt or the
  // search was stopped, or given up after `budget` residue nodes, which are taken off the budget.
  bool run(std::span<Residue<Value>> residues, const MaskBox& box, const Ball& ball,
           const Starts& starts, std::uint64_t& budget, Stop& stop);

  // The box that made the last answer kSensitive: every mask of it differs from that start.
  [[nodiscard]] const MaskBox& found() const { return found_; }

 private:
  // A box, and the sums that may differ somewhere in it.
  struct Level {
    std::vector<Residue<Value>> residues;
    std::vector<std::size_t> sums;  // per residue
    std::size_t n_live = 0;         // the residues that count
    MaskBox box;
    Value least{}, most{};  // bounds of the number that all sums make
  };
  struct Split {
    std::size_t axis = 0;
    Cell at = 0;
  };

  void update_open();
  void update_chance(Level& level) const;
  // What is asked about: each sum that counts, or the number that all of them make.
  [[nodiscard]] std::size_t n_asked(const Level& level) const {
    return chance_ == nullptr ? level.n_live : 1;
  }
  [[nodiscard]] std::size_t asked(const Level& level, std::size_t i) const {
    return chance_ == nullptr ? level.sums[i] : 0;
  }
  [[nodiscard]] const Value& least(const Level& level, std::size_t i) const {
    return chance_ == nullptr ? level.residues[i].least : level.least;
  }
  [[nodiscard]] const Value& most(const Level& level, std::size_t i) const {
    return chance_ == nullptr ? level.residues[i].most : level.most;
  }
  // Whether bounds leave anything open; marks the answers that they decide, and keeps the sums
  // that may differ.
  bool is_open(Level& level);
  void mark_sure(const Level& level);
  [[nodiscard]] bool can_differ(const Level& level) const;
  [[nodiscard]] Value promise(const Level& level) const;
  bool explore(const Level& level, std::size_t depth);
  void narrow(const Level& from, Level& part);
  Level& level(std::size_t index);
  Split choose_split(const Level& level);

  bool keep_live(Level& level);

  const RegionTrees<Value>& trees_;
  const ToleranceRule<Value>* chance_;
  std::vector<std::unique_ptr<Level>> levels_;
  RootScores scores_;
  std::vector<std::pair<Cell, double>> cuts_;
  // Of the run: what is asked, and per sum the narrowest ends of the answers that are still open.
  const Ball* ball_ = nullptr;
  Starts starts_;
  std::vector<Tolerance<Value>> narrowest_;
  std::uint64_t* budget_ = nullptr;
  Stop* stop_ = nullptr;
  MaskBox found_;
  bool any_open_ = false;
  bool is_in_doubt_ = false;
};

}  // namespace xcount
