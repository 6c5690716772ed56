// Tiles of sums of more than 64 bits: plain loops over one region at a time.
//
// They are rare (most are decided by 64 bits: corner_filter.hpp), so they share nothing with the
// vector kernels but the search for the extremes around a mask. It runs on ranks: with
//   rank(m) = the number of masks whose value is less than that of m,
// value(m) <= value(m') iff rank(m) <= rank(m'), so the extreme ranks belong to extreme values.
// Proved in docs/corner-sums.md, "Ranks".
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "xcount/exact/corner_tile.hpp"

namespace xcount {

class RankTables;

template <class T>
class WideTile {
 public:
  WideTile(const MaskWindows& windows, VectorUnit most);
  ~WideTile();
  WideTile(const WideTile&) = delete;
  WideTile& operator=(const WideTile&) = delete;

  // Counts the masks that change, as the kernels do; weighs them if the job has weights.
  void count(const TileJob<T>& job);

  [[nodiscard]] static std::size_t bytes_for(const MaskWindows& windows);

 private:
  void sum_column(const TileJob<T>& job, std::size_t output, std::size_t column) const;
  void set_decided(const TileJob<T>& job) const;
  void decide(const TileJob<T>& job, std::size_t column);

  std::unique_ptr<RankTables> ranks_;  // null if every mask is near every other
};

}  // namespace xcount
