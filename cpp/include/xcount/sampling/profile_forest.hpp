// The contributing trees of a query, compiled for samples: one pass over a tree gives what it adds
// along all masks at once.
//
// A tree is cut at its sensitive tests into *pieces*. A piece tests non-sensitive cells only, so a
// sample takes one path through it; the path ends at a terminal, which adds to the sample's row and
// sends the sample into the pieces below the sensitive tests. A row holds V along the masks in
// difference form: a value on a run of cells is two entries, whatever the length of the run, and a
// prefix sum along every sensitive axis gives V:
//   sum over the masks n <= m (on every axis) of row[n] = V(x, m) - V(x, first mask).
// Trees, subtrees and leaves that are the same for all masks add nothing. docs/approximate.md,
// "What is sampled", "Plain samples".
#pragma once

#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "xcount/sampling/mask_decider.hpp"
#include "xcount/trees/forest.hpp"
#include "xcount/trees/masks.hpp"

namespace xcount {

using Code = std::uint16_t;         // a cell as the tests of one column see it
using SampleIndex = std::uint16_t;  // a sample within a block

// A column of codes: one feature, with missing cells below or above all others.
struct Column {
  Feature feature = 0;
  bool missing_low = false;
  std::vector<Code> code_of_cell;
};

// One step of a walk: on to next + (code >= cut). A terminal points at itself and has kNoCut.
struct WalkNode {
  std::uint16_t column = 0;
  std::uint16_t cut = 0;
  std::uint32_t next = 0;
};
inline constexpr std::uint16_t kNoCut = 0xFFFF;
inline constexpr std::uint16_t kSetCut = 0xFFFE;  // look the code up in the node's set instead

struct Piece {
  std::uint32_t root = 0;
  std::uint32_t depth = 0;
  std::uint32_t first_child = 0, last_child = 0;  // pieces [first, last) of `children`
  bool has_sets = false;
};

template <class Value>
struct Emission {
  std::uint32_t mask = 0;
  Value value{};
};

struct Terminal {
  std::uint32_t first_emission = 0, last_emission = 0;  // [first, last)
  std::uint32_t first_piece = 0, last_piece = 0;        // [first, last) of `terminal_pieces`
};

// Adds modulo 2^bits: entries in difference form may wrap, the sums they stand for never do.
template <class Value>
inline void wrapping_add(Value& to, const Value& value) {
  if constexpr (std::is_same_v<Value, std::int64_t>) {
    to = static_cast<std::int64_t>(static_cast<std::uint64_t>(to) +
                                   static_cast<std::uint64_t>(value));
  } else if constexpr (std::is_same_v<Value, Int128>) {
    to = static_cast<Int128>(static_cast<UInt128>(to) + static_cast<UInt128>(value));
  } else {
    to += value;
  }
}

template <class Value>
class ProfileForest {
 public:
  ProfileForest(const Forest<Value>& forest, const MaskSpace& masks, const MaskScope& scope);

  // Room for the walks of one block of samples; one per thread.
  struct Workspace {
    std::vector<SampleIndex> everyone;
    std::vector<std::vector<SampleIndex>> queues;  // per piece
    std::vector<std::uint32_t> at;
  };
  [[nodiscard]] Workspace workspace(std::size_t block) const;

  // Adds V(x, m) - V(x, first mask) to rows[sample * n_masks + m] for `count` samples;
  // codes[column * block + sample] are their codes. The row is left in difference form if only
  // its jumps are wanted.
  void evaluate(std::span<const Code> codes, std::size_t block, std::size_t count, Workspace& work,
                std::span<Value> rows, bool as_jumps = false) const;

  [[nodiscard]] const std::vector<Column>& columns() const { return columns_; }
  [[nodiscard]] std::size_t n_masks() const { return n_masks_; }
  [[nodiscard]] std::size_t n_trees() const { return roots_.size(); }

 private:
  template <class>
  friend class ProfileCompiler;

  void run(std::uint32_t piece, std::span<const SampleIndex> samples, std::span<const Code> codes,
           std::size_t block, Workspace& work, std::span<Value> rows) const;
  template <bool kSets>
  void walk(const Piece& piece, std::span<const SampleIndex> samples, const Code* codes,
            std::size_t block, std::uint32_t* at) const;
  void integrate(std::span<Value> row) const;

  std::vector<Column> columns_;
  std::vector<WalkNode> nodes_;
  std::vector<std::int32_t> terminal_of_;  // per node; -1 where nothing happens
  std::vector<std::uint32_t> set_of_;      // per node with kSetCut: start in sets_
  std::vector<std::uint8_t> sets_;         // per code, whether it goes left
  std::vector<Piece> pieces_;
  std::vector<std::uint32_t> children_;
  std::vector<Terminal> terminals_;
  std::vector<std::uint32_t> terminal_pieces_;
  std::vector<Emission<Value>> emissions_;
  std::vector<std::uint32_t> roots_;    // one piece per contributing tree
  std::vector<std::uint32_t> extents_;  // cells per sensitive axis
  std::size_t n_masks_ = 1;
};

}  // namespace xcount
