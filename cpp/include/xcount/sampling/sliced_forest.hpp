// The contributing trees of a query as a program on bit slices: one pass over a block of samples
// gives what all trees add along all masks.
//
// Rows hold V along the masks in difference form: a value on a run of cells is two entries,
// whatever the length of the run, and a prefix sum along every sensitive axis gives V:
//   sum over the masks n <= m (on every axis) of row[n] = V(x, m) - V(x, first mask).
// With base(n, B) the value of the subtree n at the first mask of a product B of cell sets, a
// sensitive test that sends the cells F of B another way than the first one adds
//   base(far child, F) - base(near child, B)   on F,
// and the tests below it add theirs; what is the same for all masks adds nothing. One lookup each.
//
// Sums of 32 bits are rounded to a unit 2^shift of the leaves: every leaf is off by at most half of
// it, so the difference of two masks by at most n_trees units (and not at all if shift is 0). What
// they leave in doubt, exact sums decide. Those are added in digits: with b = 30 -
// bit_width(n_trees) bits in a digit of a leaf, the sums of one digit at any two masks differ by
// less than 2^31. docs/approximate.md, "What is sampled", "Bit slices".
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "xcount/sampling/mask_scope.hpp"
#include "xcount/sampling/slices.hpp"
#include "xcount/trees/forest.hpp"
#include "xcount/trees/masks.hpp"

namespace xcount {

// The tests of one feature with the same place for missing cells: below or above all others.
struct Column {
  Feature feature = 0;
  bool missing_low = false;
  bool is_narrow = false;  // whether codes have eight bits
  std::vector<Code> code_of_cell;
  std::uint32_t first_cut = 0, last_cut = 0;  // [first, last) of `cuts`
  std::uint32_t first_set = 0, last_set = 0;  // [first, last) of `sets`
};

template <class Value>
class SlicedForest {
 public:
  SlicedForest(const Forest<Value>& forest, const MaskSpace& masks, const MaskScope& scope);

  // Room for one block of samples; one per thread.
  struct Workspace {
    std::vector<Code> codes;  // [column * kBlock + sample]
    std::vector<Slice> slots;
  };
  [[nodiscard]] Workspace workspace() const;

  // Sets the slices of all tests from the codes.
  void test(Workspace& work) const;
  // Sets rows to what the trees add, rounded, in difference form. The range begins and ends at a
  // multiple of kGroup.
  void sum(const BlockRange& range, Workspace& work, std::span<std::int32_t> rows) const;
  // The same exactly, for any range, in difference form or (as_values) along the masks. It is
  // faster with room for the digits of all rows, for ranges as above.
  void sum_exactly(const BlockRange& range, bool as_values, Workspace& work,
                   std::span<std::int32_t> digits, std::span<Value> rows) const;

  [[nodiscard]] const std::vector<Column>& columns() const { return columns_; }
  [[nodiscard]] const std::vector<std::uint32_t>& extents() const { return extents_; }
  [[nodiscard]] std::size_t n_masks() const { return n_masks_; }
  [[nodiscard]] std::size_t n_trees() const { return n_trees_; }
  // Of exact sums; more than kMaxDigits are not worth their room.
  [[nodiscard]] std::size_t n_digits() const { return exact_.n_digits; }
  static constexpr std::size_t kMaxDigits = 8;
  // The unit of rounded sums is 2^shift of the leaves.
  [[nodiscard]] int shift() const { return shift_; }

 private:
  template <class>
  friend class SliceCompiler;

  struct SetSlot {
    std::uint32_t slot = 0;
    std::vector<std::uint8_t> goes_right;  // per code
  };

  void sum_lookups(const BlockRange& range, Workspace& work, std::span<Value> rows) const;
  void join_digits(std::span<const std::int32_t> digits, std::span<Value> rows) const;

  std::vector<Column> columns_;
  std::vector<CutSlot> cuts_;
  std::vector<SetSlot> sets_;
  SliceProgram program_;
  SliceTables rounded_, exact_;
  std::vector<std::uint32_t> extents_;  // cells per sensitive axis
  std::size_t n_masks_ = 1;
  std::size_t n_trees_ = 0;
  std::size_t n_slots_ = 2;
  int shift_ = 0;
};

}  // namespace xcount
