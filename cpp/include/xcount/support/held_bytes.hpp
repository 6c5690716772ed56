// The memory of growing tables. A table that is nearly full will soon be moved into one of twice
// its size, and for that moment both exist: both count, so that limits hold then, too.
#pragma once

#include <cstddef>
#include <vector>

namespace xcount {

[[nodiscard]] inline std::size_t held_bytes(std::size_t size, std::size_t capacity,
                                            std::size_t item_bytes) {
  const bool nearly_full = size >= capacity - capacity / 8;
  return capacity * item_bytes * (nearly_full ? 3 : 1);
}

template <class T>
[[nodiscard]] std::size_t held_bytes(const std::vector<T>& items) {
  return held_bytes(items.size(), items.capacity(), sizeof(T));
}

// The bytes of the items in a table, without spare capacity.
template <class T>
[[nodiscard]] std::size_t used_bytes(const std::vector<T>& items) {
  return items.size() * sizeof(T);
}

// Empties a table and gives its memory back; `items = {}` would keep it.
template <class T>
void release(std::vector<T>& items) {
  std::vector<T>().swap(items);
}

}  // namespace xcount
