// The memo against a list of everything it was told.
#include "xcount/exact/offset_memo.hpp"

#include <random>

#include "check.hpp"

using namespace xcount;
using xcount::test::failures;

namespace {

using Key = std::vector<std::uint32_t>;

struct Told {
  Key key;
  std::vector<std::int64_t> low, high;
  SolutionId solution;
};

bool holds(const Told& told, const std::vector<std::int64_t>& offsets) {
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    if (offsets[i] < told.low[i] || offsets[i] > told.high[i]) return false;
  }
  return true;
}

// Keys of one or two constraints; hashes that collide.
void answers_are_those_that_were_given() {
  std::mt19937 random(3);
  OffsetMemo<std::int64_t> memo;
  std::vector<Told> list;
  for (int i = 0; i < 3'000; ++i) {
    const auto k = static_cast<std::uint32_t>(random() % 40);
    const Key key = k % 2 == 0 ? Key{k} : Key{k, k + 1};
    const std::uint64_t hash = k % 7;
    std::vector<std::int64_t> offsets;
    for (std::size_t t = 0; t < key.size(); ++t) {
      offsets.push_back(static_cast<std::int64_t>(random() % 20) - 10);
    }
    std::uint32_t entry = memo.find(hash, key);
    const bool is_known =
        std::any_of(list.begin(), list.end(), [&](const Told& told) { return told.key == key; });
    CHECK((entry != memo.kNone) == is_known);
    if (entry == memo.kNone) entry = memo.add(hash, key);
    const auto answer =
        memo.recall(entry, offsets.size(), [&](std::size_t t) { return offsets[t]; });
    const auto told = std::find_if(list.rbegin(), list.rend(), [&](const Told& t) {
      return t.key == key && holds(t, offsets);
    });
    CHECK(answer.has_value() == (told != list.rend()));
    if (answer && told != list.rend()) {
      CHECK(answer->solution == told->solution);
      for (std::size_t t = 0; t < offsets.size(); ++t) {
        CHECK(answer->bounds[2 * t] == told->low[t] && answer->bounds[2 * t + 1] == told->high[t]);
      }
      continue;
    }
    Told next{key, offsets, offsets, static_cast<SolutionId>(i)};
    memo.remember(entry, next.solution);
    for (std::size_t t = 0; t < offsets.size(); ++t) {
      next.low[t] -= static_cast<std::int64_t>(random() % 2);
      next.high[t] += static_cast<std::int64_t>(random() % 3);
      memo.add_bounds(next.low[t], next.high[t]);
    }
    list.push_back(next);
  }
  CHECK(memo.size() == list.size() && memo.is_used());
  memo.clear();
  CHECK(memo.size() == 0 && memo.used() == 0 &&
        memo.find(list[0].key[0] % 7, list[0].key) == memo.kNone);
}

}  // namespace

int main() {
  answers_are_those_that_were_given();
  return failures;
}
