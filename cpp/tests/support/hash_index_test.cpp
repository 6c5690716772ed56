// The index against a list of pairs that is searched from end to end.
#include "xcount/support/hash_index.hpp"

#include <random>
#include <utility>
#include <vector>

#include "check.hpp"

using namespace xcount;
using xcount::test::failures;

namespace {

// Few hashes, so that many items share one, or its slot.
void items_are_found_as_in_a_list() {
  std::mt19937_64 random(1);
  HashIndex index;
  for (int round = 0; round < 4; ++round) {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> items;  // hash and key of each item
    const auto find = [&](std::uint64_t hash, std::uint64_t key) {
      return index.find(hash, [&](std::uint32_t i) { return items[i].second == key; });
    };
    for (int i = 0; i < 3'000; ++i) {
      const std::uint64_t key = random() % 1'000;
      const std::uint64_t hash = (key % 97) * 0x9E3779B97F4A7C15ULL;
      std::uint32_t expected = HashIndex::kNone;
      for (std::uint32_t j = 0; j < items.size(); ++j) {
        if (items[j].second == key) expected = j;
      }
      CHECK(find(hash, key) == expected);
      if (expected == HashIndex::kNone) {
        items.emplace_back(hash, key);
        index.insert(hash, static_cast<std::uint32_t>(items.size() - 1));
      }
    }
    round % 2 == 0 ? index.clear() : index.release();
    CHECK(find(items[0].first, items[0].second) == HashIndex::kNone);
    CHECK(index.used() == 0);
  }
}

}  // namespace

int main() {
  items_are_found_as_in_a_list();
  return failures;
}
