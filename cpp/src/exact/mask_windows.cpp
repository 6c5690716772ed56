#include "xcount/exact/mask_windows.hpp"

#include <algorithm>
#include <bit>
#include <numeric>
#include <stdexcept>

#include "xcount/support/assert.hpp"
#include "xcount/support/held_bytes.hpp"

namespace xcount {

namespace {

constexpr std::size_t kMaxRows = std::size_t{1} << 26;
constexpr std::size_t kShortWindow = 2;    // radii up to this are quicker without a table
constexpr std::size_t kListedRows = 4096;  // of all masks, up to which single steps are listed

std::vector<MaskAxis> axes_of(const Topology& forest, const MaskSpace& masks) {
  std::vector<MaskAxis> axes;
  std::size_t stride = 1;
  const std::vector<Feature> features = features_by_position(masks);
  for (std::size_t i = features.size(); i-- > 0;) {
    const Axis& axis = forest.axis(features[i]);
    const auto n = static_cast<std::size_t>(axis.n_cells);
    if (n == 1) continue;
    const std::size_t n_loose = axis.missing_cell >= 0 ? 1 : 0;
    axes.push_back({n, axis.ordered ? n - n_loose : 0, stride, 0});
    stride *= n;
  }
  return axes;
}

// Cells one step away, at most, on all axes together.
std::size_t n_steps(const std::vector<MaskAxis>& axes) {
  std::size_t n = 0;
  for (const MaskAxis& axis : axes) n += 2 + axis.n_cells - axis.n_ordered;
  return n;
}

}  // namespace

std::size_t MaskAxis::reach() const { return std::max<std::size_t>(n_ordered, 2) - 1; }

MaskWindows::MaskWindows(const Topology& forest, const MaskSpace& masks,
                         std::span<const CellOrder> orders) {
  std::vector<MaskAxis> axes = axes_of(forest, masks);
  std::uint64_t furthest = 0;
  for (const MaskAxis& axis : axes) n_masks *= axis.n_cells;
  for (const Feature feature : masks.sensitive()) {
    const Axis& axis = forest.axis(feature);
    furthest += static_cast<std::uint64_t>(axis.furthest());
    regular_ = regular_ && axis.regular();
  }
  const auto distance = static_cast<std::uint64_t>(masks.limit());
  any = distance >= furthest;
  axes_ = axes;
  distance_ = static_cast<std::size_t>(std::min(distance, furthest));
  if (any) return;
  if (!regular_) {
    list_neighbours(masks, orders);
  } else if (distance == 1 && axes.size() > 1 && n_masks * n_steps(axes) <= kListedRows) {
    list_steps(axes);
  } else {
    choose_line(axes, distance);
    list_rows(distance);
    choose_growth(std::move(axes), distance);
  }
}

// All masks as one line without an order: tables of balls would take longer than the few rows.
void MaskWindows::list_steps(const std::vector<MaskAxis>& axes) {
  line = {n_masks, 0, 1, 0};
  first.push_back(0);
  for (std::size_t m = 0; m < n_masks; ++m) {
    for (const MaskAxis& axis : axes) {
      const std::size_t cell = m / axis.stride % axis.n_cells;
      for (std::size_t other = 0; other < axis.n_cells; ++other) {
        const bool is_loose = std::max(cell, other) >= axis.n_ordered;
        const std::size_t steps = cell < other ? other - cell : cell - other;
        if (steps == 1 || (is_loose && steps > 0)) add_row(0, m + (other - cell) * axis.stride);
      }
    }
    first.push_back(static_cast<std::uint32_t>(near.size()));
  }
}

// The same where distances are not those of cells in a row.
void MaskWindows::list_neighbours(const MaskSpace& masks, std::span<const CellOrder> orders) {
  line = {n_masks, 0, 1, 0};
  const std::vector<MaskIndex> mask_at = masks_by_position(masks, orders);
  std::vector<std::size_t> position(n_masks);
  for (std::size_t p = 0; p < n_masks; ++p) position[static_cast<std::size_t>(mask_at[p])] = p;
  first.push_back(0);
  for (std::size_t p = 0; p < n_masks; ++p) {
    add_row(0, p);
    for (const MaskIndex other : masks.neighbours(mask_at[p])) {
      add_row(0, position[static_cast<std::size_t>(other)]);
    }
    first.push_back(static_cast<std::uint32_t>(near.size()));
  }
}

// The longest axis is the line, where windows save most. Axes whose cells have no order are best
// done together, not cell by cell: without any other, the line is a single cell.
void MaskWindows::choose_line(std::vector<MaskAxis> axes, std::size_t distance) {
  const auto longest = std::max_element(
      axes.begin(), axes.end(), [](const auto& a, const auto& b) { return a.reach() < b.reach(); });
  if (longest->reach() > 1) {
    line = *longest;
    axes.erase(longest);
  }
  std::size_t reached = 0;
  for (MaskAxis& axis : axes) {
    reached += axis.reach();
    axis.n_levels = n_levels = std::min(distance, reached);
  }
  ball_axes = std::move(axes);
}

void MaskWindows::add_row(std::size_t level, std::size_t cell) {
  if (near.size() == kMaxRows) {
    throw std::length_error("corner sums: too many pairs of masks; use --method auto or sample");
  }
  near.push_back({static_cast<std::uint32_t>(level), static_cast<std::uint32_t>(cell)});
}

void MaskWindows::cover(std::size_t begin, std::size_t end) {
  XCOUNT_ASSERT(begin + width <= end && end <= line.n_ordered);
  for (std::size_t i = begin; i + width < end; i += width) add_row(n_levels, i);
  add_row(n_levels, end - width);
}

void MaskWindows::list_rows(std::size_t distance) {
  const std::size_t n = line.n_ordered;
  const std::size_t radius = distance - n_levels;  // that leaves all levels of the balls
  // Windows at the ends of the line have radius + 1 cells; the table's must fit in.
  if (radius > kShortWindow) width = std::bit_floor(std::min(radius + 1, n));
  XCOUNT_ASSERT(std::has_single_bit(width) && n_levels <= distance);
  const std::size_t below = std::min(distance - 1, n_levels);  // what a step to a loose cell leaves
  first.push_back(0);
  for (std::size_t c = 0; c < line.n_cells; ++c) {
    if (c < n) {
      cover(c - std::min(c, radius), std::min(c + radius + 1, n));
      for (std::size_t level = 0; level < n_levels; ++level) {
        const std::size_t steps = distance - level;
        if (c >= steps) add_row(level, c - steps);
        if (c + steps < n) add_row(level, c + steps);
      }
    } else {
      add_row(n_levels, c);
      if (below == n_levels) cover(0, n);
      for (std::size_t i = 0; below < n_levels && i < n; ++i) add_row(below, i);
    }
    for (std::size_t i = n; i < line.n_cells; ++i) {
      if (i != c) add_row(below, i);
    }
    first.push_back(static_cast<std::uint32_t>(near.size()));
  }
}

// A shift of b may follow a radius a >= (n - 1)(b - 1) + 1 on n axes: see the document.
void MaskWindows::choose_growth(std::vector<MaskAxis> axes, std::size_t distance) {
  const bool ordered = std::all_of(axes.begin(), axes.end(),
                                   [](const MaskAxis& a) { return a.n_ordered == a.n_cells; });
  if (!ordered || axes.size() < 2 || axes.size() > kMaxGrownAxes) return;
  std::vector<std::size_t> steps{1};
  for (std::size_t radius = 1; radius < distance; radius += steps.back()) {
    steps.push_back(std::min(distance - radius, (radius - 1) / (axes.size() - 1) + 1));
  }
  const double by_levels = rows_per_mask();
  grown = std::move(axes);
  growth = std::move(steps);
  if (rows_per_mask() > by_levels || growth.size() > kMaxShifts) {
    growth.clear();
    return;
  }
  XCOUNT_ASSERT(std::accumulate(growth.begin(), growth.end(), std::size_t{0}) == distance);
  for (std::size_t i = 1; i < growth.size(); ++i) {
    n_planes.push_back(std::min(grown.back().n_cells, 2 * growth[i] + 1));
  }
  ball_axes.clear();
  first.clear();
  near.clear();
  n_levels = 0;
}

std::size_t MaskWindows::table_size() const {
  if (any) return 0;
  if (growth.empty()) return (n_levels + (width > 1 ? 1 : 0)) * n_masks;
  return std::accumulate(n_planes.begin(), n_planes.end(), std::size_t{0}) * grown.back().stride;
}

double MaskWindows::rows_per_mask() const {
  if (any) return 1.0;
  if (!growth.empty()) return 1.0 + 2.0 * static_cast<double>(grown.size() * growth.size());
  double rows = static_cast<double>(near.size()) / static_cast<double>(line.n_cells);
  for (const MaskAxis& axis : ball_axes) rows += 3.0 * static_cast<double>(axis.n_levels);
  return rows + 2.0 * static_cast<double>(std::bit_width(width) - 1);
}

double MaskWindows::n_near() const {
  if (!regular_) return static_cast<double>(near.size()) / static_cast<double>(n_masks);
  double n = 1.0;
  double ball = 1.0;  // without ends: 2^n d^n / n! about, and never more than all masks
  double i = 0.0;
  for (const MaskAxis& axis : axes_) {
    const auto n_loose = static_cast<double>(axis.n_cells - axis.n_ordered);
    n *= static_cast<double>(axis.n_cells);
    ball *= (1.0 + 2.0 * static_cast<double>(distance_) + n_loose) / ++i;
  }
  return std::min(n, std::max(ball, 1.0));
}

std::size_t MaskWindows::bytes() const { return held_bytes(first) + held_bytes(near); }

std::vector<Feature> features_by_position(const MaskSpace& masks) {
  std::vector<Feature> features = masks.sensitive();
  std::size_t longest = 0;
  for (std::size_t i = 1; i < features.size(); ++i) {
    if (masks.n_cells(i) > masks.n_cells(longest)) longest = i;
  }
  const auto begin = features.begin();
  const auto found = begin + static_cast<std::ptrdiff_t>(longest);
  if (found != features.end()) std::rotate(begin, found, found + 1);
  return features;
}

std::vector<MaskIndex> masks_by_position(const MaskSpace& masks,
                                         std::span<const CellOrder> orders) {
  std::vector<MaskIndex> stride(orders.size());  // of the numbers of masks, per feature
  MaskIndex n = 1;
  for (std::size_t i = masks.sensitive().size(); i-- > 0;) {
    stride[static_cast<std::size_t>(masks.sensitive()[i])] = n;
    n *= masks.n_cells(i);
  }
  std::vector<MaskIndex> mask_at{0};
  for (const Feature feature : features_by_position(masks)) {
    const auto f = static_cast<std::size_t>(feature);
    std::vector<MaskIndex> product;
    product.reserve(mask_at.size() * orders[f].cell.size());
    for (const MaskIndex prefix : mask_at) {
      for (const Cell cell : orders[f].cell) product.push_back(prefix + stride[f] * cell);
    }
    mask_at.swap(product);
  }
  return mask_at;
}

}  // namespace xcount
