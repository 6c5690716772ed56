#include "xcount/exact/solution_diagram.hpp"

#include <algorithm>
#include <stdexcept>

#include "xcount/support/assert.hpp"
#include "xcount/support/random.hpp"

namespace xcount {

template <class Value>
SolutionDiagram<Value>::SolutionDiagram(const Forest<Value>& forest, const MaskSpace& masks,
                                        Value threshold, const ExactTask& task,
                                        const EliminationLimits& limits) {
  SubproblemSolver<Value, CountValues> solver(forest, masks, threshold, CountValues{});
  root_ = solver.solve(task, limits, &recorder_);
  features_ = solver.store().features();
  for (const Feature feature : features_) n_cells_.push_back(forest.axis(feature).n_cells);
  count_ = solver.values().number(root_);
  total_ = solver.values().number(kAllSolve);
}

template <class Value>
SolutionBox SolutionDiagram<Value>::whole() const {
  return {std::vector<Cell>(n_cells_.size(), 0), n_cells_};
}

template <class Value>
std::vector<Cell> SolutionDiagram<Value>::sample(std::size_t n, std::uint64_t seed) const {
  if (std::all_of(count_.begin(), count_.end(), [](std::uint64_t limb) { return limb == 0; })) {
    throw std::invalid_argument("diagram: there is no solution to sample");
  }
  Random random(seed, 0, 0);
  std::vector<Cell> out;
  out.reserve(n * n_cells_.size());
  for (std::size_t i = 0; i < n; ++i) {
    SolutionBox box = whole();
    for (SolutionId id = root_; id != kAllSolve;) {
      const DiagramRecorder::Node& node = recorder_.nodes[id - 2];
      XCOUNT_ASSERT(node.feature < n_cells_.size());
      const auto* edges = recorder_.edges.data() + node.first_edge;
      double mass = 0.0;
      for (std::uint32_t e = 0; e < node.n_edges; ++e) mass += edges[e].share;
      double left = static_cast<double>(random.next() >> 11) * 0x1p-53 * mass;
      std::uint32_t chosen = node.n_edges;
      for (std::uint32_t e = 0; e < node.n_edges; ++e) {
        if (edges[e].share == 0.0) continue;
        chosen = e;
        if (left < edges[e].share) break;
        left -= edges[e].share;
      }
      if (chosen == node.n_edges) throw std::logic_error("diagram: a node without solutions");
      box.begin[node.feature] = chosen == 0 ? node.begin : edges[chosen - 1].end;
      box.end[node.feature] = edges[chosen].end;
      id = edges[chosen].child;
      XCOUNT_ASSERT(box.begin[node.feature] < box.end[node.feature]);
      XCOUNT_ASSERT(id != kNoneSolve);
    }
    for (std::size_t f = 0; f < n_cells_.size(); ++f) {
      const auto width = static_cast<std::uint32_t>(box.end[f] - box.begin[f]);
      out.push_back(box.begin[f] + static_cast<Cell>(random.below(width)));
    }
  }
  return out;
}

template <class Value>
std::vector<SolutionBox> SolutionDiagram<Value>::boxes(std::size_t limit) const {
  std::vector<SolutionBox> out;
  SolutionBox box = whole();
  collect(root_, box, limit, out);
  return out;
}

template <class Value>
void SolutionDiagram<Value>::collect(SolutionId id, SolutionBox& box, std::size_t limit,
                                     std::vector<SolutionBox>& out) const {
  if (id == kNoneSolve || out.size() >= limit) return;
  if (id == kAllSolve) {
    out.push_back(box);
    return;
  }
  const DiagramRecorder::Node& node = recorder_.nodes[id - 2];
  const Cell begin = box.begin[node.feature];
  const Cell end = box.end[node.feature];
  Cell start = node.begin;
  for (std::uint32_t e = 0; e < node.n_edges; ++e) {
    const DiagramRecorder::Edge& edge = recorder_.edges[node.first_edge + e];
    XCOUNT_ASSERT(start < edge.end && edge.share >= 0.0);
    box.begin[node.feature] = start;
    box.end[node.feature] = edge.end;
    if (edge.share > 0.0) collect(edge.child, box, limit, out);
    start = edge.end;
  }
  box.begin[node.feature] = begin;
  box.end[node.feature] = end;
}

template class SolutionDiagram<std::int64_t>;
template class SolutionDiagram<Int128>;
template class SolutionDiagram<Int2304>;

}  // namespace xcount
