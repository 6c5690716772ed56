// Records solved states as a decision diagram, for callers that need more than their count.
//
// Holds a node for each solution but the two constants: nodes[id - 2] is solution `id`, and its
// edges are disjoint parts of one feature's axis, each with the solution of that part. So
//   solutions(id) = union over its edges e of (cells of e) x solutions(child of e)
// and the edges' shares add up to the node's: docs/exact.md, "Why this is right", "The sum over
// parts".
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "xcount/exact/solution_values.hpp"
#include "xcount/trees/residuals.hpp"

namespace xcount {

struct DiagramRecorder {
  struct Edge {
    Cell end;  // the part ends before this cell and starts where the previous one ends
    SolutionId child;
    double share;  // of the whole space: what this part contributes to its node
  };
  struct Node {
    LocalFeature feature;
    Cell begin;  // where the first part starts
    std::uint32_t first_edge, n_edges;
  };
  std::vector<Node> nodes;  // nodes[id - 2] belongs to solution id
  std::vector<Edge> edges;

  // Adds the node of the next solution.
  void add(const Stretch& stretch, std::span<const Edge> parts) {
    nodes.push_back({stretch.feature, stretch.begin, static_cast<std::uint32_t>(edges.size()),
                     static_cast<std::uint32_t>(parts.size())});
    edges.insert(edges.end(), parts.begin(), parts.end());
  }
  [[nodiscard]] std::size_t bytes() const {
    return nodes.capacity() * sizeof(Node) + edges.capacity() * sizeof(Edge);
  }
};

}  // namespace xcount
