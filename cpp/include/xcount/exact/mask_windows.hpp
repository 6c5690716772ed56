// Which masks' sums decide each mask: neighbours as rows of a few tables of extremes.
// Proved in docs/corner-sums.md, "Neighbours by windows".
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "xcount/exact/cell_order.hpp"
#include "xcount/trees/masks.hpp"

namespace xcount {

// A sensitive axis with more than one cell. Cells [0, n_ordered) stand in a row, a step from one to
// the next; each of the others (a missing cell, categories) is one step from every cell.
struct MaskAxis {
  std::size_t n_cells = 1;
  std::size_t n_ordered = 1;
  std::size_t stride = 1;  // of mask positions
  std::size_t n_levels = 0;

  // No two cells are further apart.
  [[nodiscard]] std::size_t reach() const;
};

inline constexpr std::size_t kMaxGrownAxes = 8;  // more axes find their balls by levels
inline constexpr std::size_t kMaxShifts = 64;    // as do balls that would take more

// A cell of the line that a mask lies on, and the level of the table that is read there.
struct NearRow {
  std::uint32_t level, cell;
};

// The sensitive features in the order of positions, the fastest last: the longest axis is the
// slowest, so that few masks lie between its next cells; the others stay as they are.
[[nodiscard]] std::vector<Feature> features_by_position(const MaskSpace& masks);

// Masks by position: mixed radix over the sensitive axes with more than one cell, in the order of
// features_by_position.
// Unless `any` (every mask is near every other), one axis is the `line`, the others are
// `ball_axes`. With d the distance,
//   ball[r](m) = extremes of V over the masks that differ from m only on ball axes, by at most r
// for levels 0 <= r <= n_levels <= d (ball[0] = V), found axis by axis: MaskAxis::n_levels is the
// highest level that the ball axes up to this one reach. The extremes around the mask m at cell c
// of its line are those of the rows near[first[c]] .. near[first[c + 1] - 1], where row (r, i) is
//   the extreme of ball[r] at the cells i .. i + width - 1 of the line
//                                           if r = n_levels and i < line.n_ordered
//   ball[r] at the cell i of the line       otherwise.
// The width is a power of two.
//
// If all axes are ordered, balls may also grow by shifts, whichever reads fewer rows. With
// `grown` the axes and ball[a](m) = extremes of V over the masks within a of m, each b of `growth`
// makes
//   ball[a + b](m) = extreme of ball[a] at the masks b cells beside m, either way, on every axis,
// where a shift beyond the end of an axis stops there; the first one, from ball[0] = V, has m, too.
// Balls are made plane by plane of the slowest axis, all shifts in turn: of what a shift makes, the
// next one needs only the last `n_planes` planes, and they stay in the cache.
class MaskWindows {
 public:
  MaskWindows(const Topology& forest, const MaskSpace& masks, std::span<const CellOrder> orders);

  bool any = false;
  std::size_t n_masks = 1;
  std::vector<MaskAxis> ball_axes;
  std::size_t n_levels = 0;
  MaskAxis line;
  std::size_t width = 1;
  std::vector<std::uint32_t> first;
  std::vector<NearRow> near;
  std::vector<MaskAxis> grown;        // from the fastest to the slowest
  std::vector<std::size_t> growth;    // none where balls are found by levels
  std::vector<std::size_t> n_planes;  // that are held of each shift's balls but the last one's

  // Whether the condition holds for some mask near m, m itself perhaps among them.
  template <class Condition>
  [[nodiscard]] bool any_near(std::size_t m, const Condition& condition) const {
    if (!regular_) {
      for (std::uint32_t i = first[m]; i < first[m + 1]; ++i) {
        if (condition(std::size_t{near[i].cell})) return true;
      }
      return false;
    }
    return any_near(0, m, distance_, condition);
  }
  // About how many masks that asks.
  [[nodiscard]] double n_near() const;

  [[nodiscard]] std::size_t bytes() const;
  // Masks between the next cells of the slowest axis.
  [[nodiscard]] std::size_t plane_size() const { return axes_.empty() ? 1 : axes_.back().stride; }
  // Highest extremes (as many as lowest ones) that are held while a column is decided.
  [[nodiscard]] std::size_t table_size() const;
  // Rows that are read for each mask, in all tables.
  [[nodiscard]] double rows_per_mask() const;

 private:
  // The same for masks that differ from m on the axes from the given one on.
  template <class Condition>
  [[nodiscard]] bool any_near(std::size_t axis, std::size_t m, std::size_t steps,
                              const Condition& condition) const {
    if (axis == axes_.size()) return condition(m);
    const MaskAxis& own = axes_[axis];
    const std::size_t cell = m / own.stride % own.n_cells;
    const std::size_t base = m - cell * own.stride;
    const auto goes = [&](std::size_t other, std::size_t taken) {
      return any_near(axis + 1, base + other * own.stride, steps - taken, condition);
    };
    const bool is_loose = cell >= own.n_ordered;
    const std::size_t begin = is_loose ? 0 : cell - std::min(cell, steps);
    const std::size_t end = is_loose ? 0 : std::min(cell + steps + 1, own.n_ordered);
    for (std::size_t other = begin; other < end; ++other) {
      if (goes(other, cell < other ? other - cell : cell - other)) return true;
    }
    if (is_loose && goes(cell, 0)) return true;
    for (std::size_t other = is_loose ? 0 : own.n_ordered; steps > 0 && other < own.n_cells;
         ++other) {
      if (other != cell && goes(other, 1)) return true;
    }
    return false;
  }

  void list_steps(const std::vector<MaskAxis>& axes);
  void list_neighbours(const MaskSpace& masks, std::span<const CellOrder> orders);
  void choose_line(std::vector<MaskAxis> axes, std::size_t distance);
  void list_rows(std::size_t distance);
  // Takes shifts, if they read fewer rows than what is listed.
  void choose_growth(std::vector<MaskAxis> axes, std::size_t distance);
  void add_row(std::size_t level, std::size_t cell);
  void cover(std::size_t begin, std::size_t end);  // adds rows for the cells [begin, end)

  bool regular_ = true;
  std::vector<MaskAxis> axes_;
  std::size_t distance_ = 0;
};

// The number of the mask at each position.
[[nodiscard]] std::vector<MaskIndex> masks_by_position(const MaskSpace& masks,
                                                       std::span<const CellOrder> orders);

}  // namespace xcount
