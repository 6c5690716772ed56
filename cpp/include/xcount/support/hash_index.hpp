// An open-addressing index over items that live elsewhere: hash -> item number.
//
// Holds slots, at most half of them taken (2 * size <= slots), so that every search meets an empty
// one and ends. Items are found from their hash on, without a gap: none is ever removed but all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "xcount/support/assert.hpp"
#include "xcount/support/held_bytes.hpp"

namespace xcount {

// Mixes two words into one hash (the finaliser of SplitMix64).
inline std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  std::uint64_t x = a * 0x9E3779B97F4A7C15ULL + b;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

class HashIndex {
 public:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  // Returns the item with this hash for which `same(item)` holds, or kNone.
  template <class Same>
  [[nodiscard]] std::uint32_t find(std::uint64_t hash, Same same) const {
    if (slots_.empty()) return kNone;
    const auto tag = static_cast<std::uint32_t>(hash >> 32);
    for (std::size_t i = hash & mask_;; i = (i + 1) & mask_) {
      const Slot& slot = slots_[i];
      if (slot.item == kNone) return kNone;
      if (slot.tag == tag && same(slot.item)) return slot.item;
    }
  }

  void insert(std::uint64_t hash, std::uint32_t item) {
    XCOUNT_ASSERT(item != kNone);
    if (2 * (size_ + 1) > slots_.size()) grow();
    place({static_cast<std::uint32_t>(hash >> 32), item, hash});
    ++size_;
  }

  // Forgets all items; keeps the memory unless it is far more than was used.
  void clear() {
    if (slots_.size() > kSmall && slots_.size() > 8 * size_) {
      release();
    } else {
      slots_.assign(slots_.size(), Slot{});
    }
    size_ = 0;
  }
  // Forgets all items and gives the memory back.
  void release() {
    xcount::release(slots_);
    mask_ = 0;
    size_ = 0;
  }

  [[nodiscard]] std::size_t bytes() const {
    return held_bytes(2 * size_, slots_.size(), sizeof(Slot));
  }
  [[nodiscard]] std::size_t used() const { return 2 * size_ * sizeof(Slot); }

 private:
  struct Slot {
    std::uint32_t tag = 0;
    std::uint32_t item = kNone;
    std::uint64_t hash = 0;
  };
  static constexpr std::size_t kSmall = 1024;

  void place(const Slot& slot) {
    std::size_t i = slot.hash & mask_;
    XCOUNT_ASSERT(2 * size_ <= slots_.size());
    while (slots_[i].item != kNone) i = (i + 1) & mask_;
    slots_[i] = slot;
  }

  void grow() {
    std::vector<Slot> old = std::move(slots_);
    slots_.assign(old.empty() ? 64 : 2 * old.size(), Slot{});
    mask_ = slots_.size() - 1;
    for (const Slot& slot : old) {
      if (slot.item != kNone) place(slot);
    }
  }

  std::vector<Slot> slots_;
  std::size_t mask_ = 0;
  std::size_t size_ = 0;
};

}  // namespace xcount
