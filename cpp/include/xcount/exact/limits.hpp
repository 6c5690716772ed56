// How much work and memory one subproblem may take, and which part of it is asked for.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace xcount {

// A state with at most this many combinations of leaves is enumerated. More hardly gains on the
// benchmark's hard subproblems (docs/decisions/exact-counter.md) and loses where the memo does
// well.
inline constexpr std::uint64_t kMaxPaths = 16384;
// How much dearer a split, with its look-ups in a large memo, is than a step of an enumeration.
inline constexpr std::uint64_t kStepsPerSplit = 40;
// The same for a node of a difference tree that is built.
inline constexpr std::uint64_t kStepsPerWalk = 2;

// Where a memo starts, with the values of its solutions. A larger one is slower unless it is used.
inline constexpr std::size_t kFirstMemoBytes = std::size_t{2} << 20;

enum class GiveUp { kSteps, kMemory, kCancelled };

struct EliminationLimits {
  // Nodes visited; a split counts as kStepsPerSplit of them, one of a state with
  // more residuals as one for each.
  std::uint64_t max_steps = ~std::uint64_t{0};
  std::size_t max_bytes = ~std::size_t{0};
  const std::atomic<bool>* cancel = nullptr;
  // The answer is the same whatever these are:
  std::uint64_t max_paths = kMaxPaths;       // of a state that is enumerated
  std::size_t memo_bytes = kFirstMemoBytes;  // of a memo before it is emptied

  [[nodiscard]] bool is_cancelled() const {
    return cancel != nullptr && cancel->load(std::memory_order_relaxed);
  }
};

// How deep the recursion is, in bytes of the stack.
class StackDepth {
 public:
  void start() { base_ = position(); }
  [[nodiscard]] bool is_too_deep() const {
    const std::uintptr_t here = position();
    return (here < base_ ? base_ - here : here - base_) > kMaxBytes;
  }

 private:
  static constexpr std::size_t kMaxBytes = std::size_t{3} << 20;  // of the usual 8 MiB

  [[gnu::always_inline]] static std::uintptr_t position() {
    return reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  }

  std::uintptr_t base_ = 0;
};

// One of 2^n_bits disjoint parts of a state: bit d of the index says which halves of the split at
// depth d belong to it. What is decided before belongs to the part whose other bits are 0.
struct Part {
  std::uint32_t index = 0;
  std::uint32_t n_bits = 0;

  [[nodiscard]] bool has_half(std::size_t depth, std::size_t half) const {
    return depth >= n_bits || (index >> depth & 1) == (half & 1);
  }
  [[nodiscard]] bool has_end(std::size_t depth) const {
    return depth >= n_bits || index >> depth == 0;
  }
};
inline constexpr std::uint32_t kMaxPartBits = 16;

}  // namespace xcount
