// The answers of states: for each key, boxes of offsets (an interval for each of the state's
// constraints) and the solution that holds in all of the box:
//   low[i] <= offset[i] <= high[i] for all constraints i   =>   the state's solution is `solution`.
// Proof: docs/exact.md, "Why this is right", "The remembered box".
//
// Most answers are never asked for again, and of those that are, most were given lately. So a full
// memo is emptied, which costs little, and only one that is used much may grow: a large one is
// slower than a small one, because it does not fit into the processor's caches.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "xcount/exact/solution_values.hpp"
#include "xcount/support/assert.hpp"
#include "xcount/support/hash_index.hpp"
#include "xcount/support/held_bytes.hpp"

namespace xcount {

template <class Value>
class OffsetMemo {
 public:
  static constexpr std::uint32_t kNone = HashIndex::kNone;

  // The number of the key, or kNone.
  [[nodiscard]] std::uint32_t find(std::uint64_t hash, std::span<const std::uint32_t> key) const {
    return table_.find(hash, [&](std::uint32_t i) {
      const Entry& entry = entries_[i];
      return entry.key_size == key.size() &&
             std::equal(key.begin(), key.end(),
                        keys_.begin() + static_cast<std::ptrdiff_t>(entry.key_begin));
    });
  }

  std::uint32_t add(std::uint64_t hash, std::span<const std::uint32_t> key) {
    XCOUNT_ASSERT(find(hash, key) == kNone);
    const auto number = static_cast<std::uint32_t>(entries_.size());
    entries_.push_back({keys_.size(), static_cast<std::uint32_t>(key.size()), kNone});
    keys_.insert(keys_.end(), key.begin(), key.end());
    table_.insert(hash, number);
    return number;
  }

  // bounds: low and high of each constraint's offset; valid until the next answer.
  struct Answer {
    SolutionId solution;
    std::span<const Value> bounds;
  };

  // The answer for constraints with the offsets offset(0), ..., offset(n - 1).
  template <class Offset>
  [[nodiscard]] std::optional<Answer> recall(std::uint32_t number, std::size_t n, Offset offset) {
    XCOUNT_ASSERT(number < entries_.size());
    for (std::uint32_t b = entries_[number].first_box; b != kNone; b = boxes_[b].next) {
      XCOUNT_ASSERT(boxes_[b].bounds + 2 * n <= bounds_.size());
      const std::span<const Value> bounds{bounds_.data() + boxes_[b].bounds, 2 * n};
      bool holds = true;
      for (std::size_t i = 0; holds && i < n; ++i) {
        holds = bounds[2 * i] <= offset(i) && offset(i) <= bounds[2 * i + 1];
      }
      if (!holds) continue;
      ++n_recalled_;
      return Answer{boxes_[b].solution, bounds};
    }
    return std::nullopt;
  }

  // Adds an answer, whose bounds (low, high of each constraint) are then added in order.
  void remember(std::uint32_t number, SolutionId solution) {
    XCOUNT_ASSERT(number < entries_.size());
    boxes_.push_back({entries_[number].first_box, solution, bounds_.size()});
    entries_[number].first_box = static_cast<std::uint32_t>(boxes_.size() - 1);
  }
  void add_bounds(const Value& low, const Value& high) {
    XCOUNT_ASSERT(!boxes_.empty() && boxes_.back().bounds <= bounds_.size());
    XCOUNT_ASSERT(low <= high);
    bounds_.push_back(low);
    bounds_.push_back(high);
  }

  // Whether it is worth its memory.
  [[nodiscard]] bool is_used() const { return n_recalled_ >= boxes_.size() / 4; }
  [[nodiscard]] std::size_t size() const { return boxes_.size(); }
  [[nodiscard]] std::size_t bytes() const {
    return held_bytes(keys_) + held_bytes(entries_) + table_.bytes() + held_bytes(boxes_) +
           held_bytes(bounds_);
  }
  [[nodiscard]] std::size_t used() const {
    return used_bytes(keys_) + used_bytes(entries_) + table_.used() + used_bytes(boxes_) +
           used_bytes(bounds_);
  }
  // Keeps the memory for what comes next.
  void clear() {
    keys_.clear();
    entries_.clear();
    table_.clear();
    boxes_.clear();
    bounds_.clear();
    n_recalled_ = 0;
  }

 private:
  struct Entry {
    std::uint64_t key_begin;
    std::uint32_t key_size;
    std::uint32_t first_box;
  };
  struct Box {
    std::uint32_t next;
    SolutionId solution;
    std::uint64_t bounds;  // in bounds_
  };

  std::vector<std::uint32_t> keys_;
  std::vector<Entry> entries_;
  HashIndex table_;
  std::vector<Box> boxes_;
  std::vector<Value> bounds_;
  std::uint64_t n_recalled_ = 0;
};

}  // namespace xcount
