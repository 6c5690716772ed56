// The solutions of a BDD: how many there are, exactly, and which one is the r-th.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "xcount/diagrams/bdd.hpp"

namespace xcount {

// A snapshot of a BDD over chosen variables with the number of solutions below every node. It keeps
// no reference to the table it came from, so it can never see a node that was reused for another.
//
// Numbers are unsigned, in 64-bit limbs, least significant first. Solutions are ranked 0 ..
// count-1; drawing a rank uniformly draws a solution uniformly, and different ranks are different
// solutions.
class Solutions {
 public:
  // levels: the variables that are counted, ascending; all variables that f tests are among them.
  Solutions(Diagrams& table, const Ref& f, std::span<const Level> levels);

  [[nodiscard]] std::span<const std::uint64_t> count() const { return count_; }
  [[nodiscard]] std::size_t n_variables() const { return n_variables_; }
  [[nodiscard]] std::size_t n_nodes() const { return nodes_.size(); }

  // Writes the solution of that rank, one bit per counted variable; rank has count().size() limbs.
  void unrank(std::span<const std::uint64_t> rank, std::span<std::uint8_t> bits) const;
  [[nodiscard]] bool contains(std::span<const std::uint8_t> bits) const;

 private:
  using Limbs = std::vector<std::uint64_t>;
  struct Node {
    std::uint32_t position;   // which counted variable it tests; n_variables_ for a terminal
    std::uint32_t low, high;  // indices of nodes; a terminal's `low` is its truth
    std::uint64_t limbs_at;   // where its count begins in limbs_
    std::uint32_t n_limbs;    // without leading zeros
  };

  [[nodiscard]] std::span<const std::uint64_t> limbs(std::uint32_t node) const {
    return {limbs_.data() + nodes_[node].limbs_at, nodes_[node].n_limbs};
  }
  // The number of completions of `node` when the variables before it, from `position`, are free.
  [[nodiscard]] Limbs completions(std::uint32_t node, std::uint32_t position) const;
  void store(Node node, const Limbs& count);

  std::size_t n_variables_;
  std::uint32_t root_ = 0;
  std::vector<Node> nodes_;
  Limbs limbs_;
  Limbs count_;
};

}  // namespace xcount
