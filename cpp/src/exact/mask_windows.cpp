#include "xcount/exact/mask_windows.hpp"

#include <algorithm>
#include <bit>
#include <stdexcept>

#include "xcount/support/held_bytes.hpp"

namespace xcount {

namespace {

constexpr std::size_t kMaxListed = std::size_t{1} << 26;
constexpr std::size_t kShortWindow = 2;  // distances up to this are quicker without a table

}  // namespace

std::int64_t furthest_distance(const Topology& forest, std::span<const Feature> features) {
  std::int64_t total = 0;
  for (const Feature feature : features) total += forest.axis(feature).furthest();
  return total;
}

MaskWindows::MaskWindows(const Topology& forest, const MaskSpace& masks,
                         std::span<const CellOrder> orders) {
  number_masks(masks, orders);
  any = masks.limit() >= furthest_distance(forest, masks.sensitive());
  if (any) return;
  std::vector<Feature> used = masks.sensitive();
  std::erase_if(used, [&](Feature f) { return forest.axis(f).n_cells == 1; });
  if (used.size() > 1 || !forest.axis(used[0]).regular()) {
    list_neighbours(masks);
  } else {  // an axis without an order has furthest distance 1: it never comes here
    make_windows(static_cast<std::size_t>(masks.limit()), forest.axis(used[0]).missing_cell >= 0);
  }
}

void MaskWindows::number_masks(const MaskSpace& masks, std::span<const CellOrder> orders) {
  mask_at.assign(1, 0);
  for (const Feature feature : masks.sensitive()) {
    const std::vector<Cell>& cells = orders[static_cast<std::size_t>(feature)].cell;
    std::vector<MaskIndex> product;
    product.reserve(mask_at.size() * cells.size());
    for (const MaskIndex prefix : mask_at) {
      for (const Cell cell : cells) {
        product.push_back(prefix * static_cast<MaskIndex>(cells.size()) + cell);
      }
    }
    mask_at.swap(product);
  }
}

void MaskWindows::cover(std::size_t begin, std::size_t end) {
  for (std::size_t i = begin; i + width < end; i += width) {
    near.push_back(static_cast<std::uint32_t>(i));
  }
  near.push_back(static_cast<std::uint32_t>(end - width));
}

void MaskWindows::make_windows(std::size_t distance, bool has_missing) {
  n_ordered = n_masks() - (has_missing ? 1 : 0);
  // Windows at the ends of the axis have distance + 1 positions; the table's must fit in.
  if (distance > kShortWindow) width = std::bit_floor(std::min(distance + 1, n_ordered));
  first.push_back(0);
  for (std::size_t m = 0; m < n_masks(); ++m) {
    if (m < n_ordered) {
      cover(m - std::min(m, distance), std::min(m + distance + 1, n_ordered));
    } else {
      cover(0, n_ordered);
    }
    if (has_missing) near.push_back(static_cast<std::uint32_t>(n_ordered));
    first.push_back(static_cast<std::uint32_t>(near.size()));
  }
}

void MaskWindows::list_neighbours(const MaskSpace& masks) {
  std::vector<std::uint32_t> position(n_masks());
  for (std::size_t p = 0; p < n_masks(); ++p) {
    position[static_cast<std::size_t>(mask_at[p])] = static_cast<std::uint32_t>(p);
  }
  first.push_back(0);
  for (std::size_t p = 0; p < n_masks(); ++p) {
    near.push_back(static_cast<std::uint32_t>(p));
    for (const MaskIndex other : masks.neighbours(mask_at[p])) {
      near.push_back(position[static_cast<std::size_t>(other)]);
    }
    if (near.size() > kMaxListed) {
      throw std::length_error("corner sums: too many pairs of masks; use --method auto or sample");
    }
    first.push_back(static_cast<std::uint32_t>(near.size()));
  }
}

std::size_t MaskWindows::bytes() const {
  return held_bytes(first) + held_bytes(near) + held_bytes(mask_at);
}

}  // namespace xcount
