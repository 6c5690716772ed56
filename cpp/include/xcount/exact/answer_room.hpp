// How much memory the answers of solved states may take, and how they are forgotten.
//
// Holds the memo, and knows what belongs to it: the values of solutions, and the distributions of
// groups. Invariant after make_room(needed, ...) returned true:
//   bytes() + needed <= max_bytes   and   needed <= max_bytes / 2   and   used() <= allowed,
// where `needed` is what no forgetting makes less. Forgetting changes no answer, only how often
// states are solved: the states that are being solved hold sums of their own, not solutions
// (docs/exact.md, "What it costs, and its limits").
#pragma once

#include <cstddef>
#include <cstdint>

#include "xcount/exact/offset_memo.hpp"
#include "xcount/exact/small_states.hpp"
#include "xcount/support/assert.hpp"

namespace xcount {

template <class Value, class Values>
class AnswerRoom {
 public:
  AnswerRoom(SmallStates<Value, Values>& small, Values& values) : small_(small), values_(values) {}

  [[nodiscard]] OffsetMemo<Value>& memo() { return memo_; }
  // Forgets everything, and starts to count.
  void clear() {
    memo_.clear();
    small_.clear();
    n_forgotten_ = 0;
  }
  // Forgets everything, and gives the memory back.
  void release() {
    values_.forget();
    give_back();
  }
  // What the memo may hold, with what belongs to it, before it is emptied or let grow.
  void allow(std::size_t bytes) { allowed_ = bytes; }

  // Makes room if there is none: lets a memo grow that is used, or empties it, unless all must be
  // kept. False if that does not help.
  [[nodiscard]] bool make_room(std::size_t needed, std::size_t max_bytes, bool keep_all) {
    const bool fits_now = fits(needed, max_bytes);
    if (fits_now && used() <= allowed_) return true;
    if (fits_now && (memo_.is_used() || keep_all)) {
      allowed_ = 2 * used();
      return true;
    }
    if (keep_all) return false;
    forget(needed, max_bytes);
    return fits(needed, max_bytes);
  }

  [[nodiscard]] std::uint64_t n_forgotten() const { return n_forgotten_; }  // how often
  [[nodiscard]] std::size_t bytes() const { return memo_.bytes() + small_.bytes(); }

 private:
  static constexpr std::size_t kMaxItems = std::size_t{1} << 31;  // ids are 32 bits wide

  // What the memo and what belongs to it hold: the same whatever was solved before.
  [[nodiscard]] std::size_t used() const { return memo_.used() + small_.used() + values_.used(); }
  // The tables within the memory, and at least half of it left to the memo.
  [[nodiscard]] bool fits(std::size_t needed, std::size_t max_bytes) const {
    return bytes() + values_.bytes() + needed <= max_bytes && needed <= max_bytes / 2 &&
           values_.size() <= kMaxItems && memo_.size() <= kMaxItems;
  }

  void forget(std::size_t needed, std::size_t max_bytes) {
    memo_.clear();
    small_.clear();
    values_.forget();
    ++n_forgotten_;
    XCOUNT_ASSERT(memo_.size() == 0 && values_.size() == 2);
    if (!fits(needed, max_bytes)) give_back();
  }
  void give_back() {
    memo_ = OffsetMemo<Value>();
    small_.release();
    values_.shrink();
  }

  SmallStates<Value, Values>& small_;
  Values& values_;
  OffsetMemo<Value> memo_;
  std::size_t allowed_ = 0;
  std::uint64_t n_forgotten_ = 0;
};

}  // namespace xcount
