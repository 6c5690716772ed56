// The solutions of one subproblem as a decision diagram: to count, to sample, to list as boxes.
//
// Holds the diagram that the elimination recorded (diagram_recorder.hpp), its root and its count.
// Paths from the root to the whole space are disjoint boxes, so
//   count = sum over the paths of the product of their boxes' cells,
// and a path drawn by the shares of its edges, then a cell of its box, is a uniform solution.
// Proof: docs/exact.md, "Why this is right", "The sum over parts".
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "xcount/exact/subproblem.hpp"

namespace xcount {

// Cells [begin[i], end[i]) of features[i]; features that are not named may have any cell.
struct SolutionBox {
  std::vector<Cell> begin, end;
};

template <class Value>
class SolutionDiagram {
 public:
  // Solves the task and keeps its states. Throws GiveUp when a limit is reached.
  SolutionDiagram(const Forest<Value>& forest, const MaskSpace& masks, Value threshold,
                  const ExactTask& task, const EliminationLimits& limits);

  // The features that the task's trees test; all others are free.
  [[nodiscard]] const std::vector<Feature>& features() const { return features_; }
  [[nodiscard]] std::size_t n_nodes() const { return recorder_.nodes.size(); }
  // `count` of `total` combinations of the features' cells are solutions.
  [[nodiscard]] const std::vector<std::uint64_t>& count() const { return count_; }
  [[nodiscard]] const std::vector<std::uint64_t>& total() const { return total_; }

  // n solutions, uniform and independent: n x features().size() cells. There must be a solution.
  [[nodiscard]] std::vector<Cell> sample(std::size_t n, std::uint64_t seed) const;
  // Disjoint boxes that together hold just the solutions; at most `limit` of them.
  [[nodiscard]] std::vector<SolutionBox> boxes(std::size_t limit) const;

 private:
  [[nodiscard]] SolutionBox whole() const;
  void collect(SolutionId id, SolutionBox& box, std::size_t limit,
               std::vector<SolutionBox>& out) const;

  std::vector<Feature> features_;
  std::vector<Cell> n_cells_;
  std::vector<std::uint64_t> count_, total_;
  DiagramRecorder recorder_;
  SolutionId root_;
};

}  // namespace xcount
