// Sixteen bits bound what gaps do, sides tell what flips do, and many doubts are a reason to stop.
#include "xcount/exact/narrow_tile.hpp"

#include <random>
#include <vector>

#include "check.hpp"
#include "random_world.hpp"

using namespace xcount;
using xcount::test::failures;
using xcount::test::World;

namespace {

// A row of 40 cells at distance 3, and the room for its changes.
struct Example {
  explicit Example(std::vector<Change<std::int64_t>> asked)
      : changes(std::move(asked)),
        forest(World({40}).build<std::int64_t>()),
        windows(forest, MaskSpace(forest, {0}, 3), {}) {
    job.question.changes = {changes.data(), changes.size()};
    job.sums.n_masks = windows.n_masks;
  }

  std::vector<Change<std::int64_t>> changes;
  Forest<std::int64_t> forest;
  MaskWindows windows;
  TileJob<std::int64_t> job;
};

void the_bounds_of_gaps_are_bounds() {
  std::mt19937_64 random(1);
  for (const std::int64_t magnitude : {30'000LL, 40'000LL, 1'000'000LL, 1LL << 40}) {
    for (const std::int64_t gap : {0LL, 1LL, 77LL, 65'535LL, 300'000LL, 1LL << 39}) {
      Example example({{ChangeForm::kGap, Direction::kAny, gap}});
      NarrowRoom<std::int64_t> room(example.job, example.windows);
      NarrowTile<std::int64_t>& tile = *room.tile();
      tile.magnitude = static_cast<std::uint64_t>(magnitude);
      CHECK(room.grows() == (magnitude >= 1 << 15));
      CHECK(!room.grows());
      CHECK((magnitude >> tile.shift) < 1 << 15);
      if (!room.is_usable()) {
        CHECK(gap + 1 < std::int64_t{1} << tile.shift);
        continue;
      }
      for (int i = 0; i < 2000; ++i) {
        const auto one =
            static_cast<std::int64_t>(random() % static_cast<unsigned>(1 << 30)) % (magnitude / 2);
        const auto other = one + gap + static_cast<std::int64_t>(random() % 5) - 2;
        const std::int64_t rise = (other >> tile.shift) - (one >> tile.shift);
        if (rise >= 1 << 16) continue;  // the magnitude says that there is none
        if (rise > tile.job.changes.data[0].surely) CHECK(other - one > gap);
        if (other - one > gap) CHECK(rise > tile.job.changes.data[0].possibly);
      }
    }
  }
}

void cuts_of_flips_are_numbered() {
  Change<std::int64_t> flip{ChangeForm::kFlip, Direction::kAny, 10};
  flip.sure_below = -4;
  flip.sure_above = 15;
  Example example({flip});
  NarrowRoom<std::int64_t> room(example.job, example.windows);
  const NarrowTile<std::int64_t>& tile = *room.tile();
  CHECK(tile.job.is_flip && tile.cuts.size == 3);
  CHECK(tile.cuts.data[0] == -4 && tile.cuts.data[1] == 10 && tile.cuts.data[2] == 15);
  CHECK(tile.job.changes.data[0].sure_below == 0 && tile.job.changes.data[0].low == 1);
  CHECK(tile.job.changes.data[0].high == 1 && tile.job.changes.data[0].sure_above == 2);
}

void mixed_changes_do_not_suit() {
  using Room = NarrowRoom<std::int64_t>;
  const Change<std::int64_t> gap{ChangeForm::kGap, Direction::kAny, 1};
  const Change<std::int64_t> flip{ChangeForm::kFlip, Direction::kAny, 1};
  const auto suits = [](std::vector<Change<std::int64_t>> changes, std::size_t n_columns) {
    return Room::suits(changes, n_columns);
  };
  CHECK(suits({gap, gap}, 4));
  CHECK(!suits({gap, flip}, 4));
  CHECK(!suits({gap}, 1));  // lanes would stand empty
}

void many_doubts_are_skipped_for_a_while() {
  Example example({{ChangeForm::kGap, Direction::kAny, 1}});
  NarrowRoom<std::int64_t> room(example.job, example.windows);
  CHECK(!room.skips());
  const auto skipped = [&] {
    std::size_t n = 0;
    while (room.skips()) ++n;
    return n;
  };
  room.finish(false);
  const std::size_t n_first = skipped();
  CHECK(n_first > 0);
  room.finish(false);
  CHECK(skipped() > n_first);
  room.finish(true);
  CHECK(skipped() == 0);
}

// Sums that lie on one side of the first mask's: around their middle, half the unit holds them. All
// others stay as they are.
void held_sums_have_a_center() {
  for (const bool is_held : {false, true}) {
    Example example({{ChangeForm::kGap, Direction::kAny, 1 << 20}});
    const std::vector<std::uint32_t> place(example.windows.n_masks);
    if (is_held) example.job.held.place = place.data();
    NarrowRoom<std::int64_t> room(example.job, example.windows);
    NarrowTile<std::int64_t>& tile = *room.tile();
    tile.magnitude = 30'000ULL << 10;
    CHECK(room.grows());
    CHECK(tile.shift == 10);
    for (std::size_t m = 0; m < example.windows.n_masks; ++m) {
      for (auto& q : tile.job.near.decided[m].lane)
        q = static_cast<std::uint16_t>(32'768 + 750 * m);
    }
    room.finish(true);
    CHECK(tile.center == (is_held ? 750LL * 39 / 2 << 10 : 0));
    CHECK(tile.shift == (is_held ? 9U : 10U));
  }
}

}  // namespace

int main() {
  the_bounds_of_gaps_are_bounds();
  cuts_of_flips_are_numbered();
  mixed_changes_do_not_suit();
  many_doubts_are_skipped_for_a_while();
  held_sums_have_a_center();
  return failures;
}
