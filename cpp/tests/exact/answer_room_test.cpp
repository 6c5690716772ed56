// When answers may stay, when the memo grows, and when all is forgotten.
#include "xcount/exact/answer_room.hpp"

#include "check.hpp"
#include "residual_trees.hpp"

using namespace xcount;
using namespace xcount::test;

namespace {

constexpr std::size_t kPlenty = ~std::size_t{0};

struct Tables {
  Forest<std::int64_t> forest = axes_alone();
  ResidualStore<std::int64_t> store{forest};
  CountValues values;
  SmallStates<std::int64_t, CountValues> small{store, values, Gap<std::int64_t>(1)};
  AnswerRoom<std::int64_t, CountValues> room{small, values};

  Tables() { values.reset(forest, store.features()); }

  void fill(std::uint32_t n_answers) {
    for (std::uint32_t i = 0; i < n_answers; ++i) {
      const std::uint32_t key[] = {i};
      const std::uint32_t entry = room.memo().add(i, key);
      room.memo().remember(entry, kAllSolve);
      room.memo().add_bounds(0, 0);
    }
  }
  void use(std::uint32_t n_times) {
    for (std::uint32_t i = 0; i < n_times; ++i) {
      const auto zero = [](std::size_t) { return std::int64_t{0}; };
      CHECK(room.memo().recall(0, 1, zero).has_value());
    }
  }
};

void what_fits_stays() {
  Tables tables;
  tables.room.allow(kPlenty);
  tables.fill(1'000);
  CHECK(tables.room.make_room(0, kPlenty, false));
  CHECK(tables.room.memo().size() == 1'000 && tables.room.n_forgotten() == 0);
}

void a_full_memo_is_emptied_unless_it_is_used() {
  for (const bool is_used : {false, true}) {
    Tables tables;
    tables.room.allow(1'000);
    tables.fill(1'000);
    if (is_used) tables.use(500);
    CHECK(tables.room.make_room(0, kPlenty, false));
    CHECK(tables.room.memo().size() == (is_used ? 1'000 : 0));
    CHECK(tables.room.n_forgotten() == (is_used ? 0 : 1));
    CHECK(tables.values.size() == 2);
  }
}

// A diagram needs every answer: then the memo may only grow, as far as the memory goes.
void what_must_be_kept_is_kept_or_refused() {
  Tables tables;
  tables.room.allow(1'000);
  tables.fill(1'000);
  CHECK(tables.room.make_room(0, kPlenty, true));
  CHECK(!tables.room.make_room(0, 1'000, true));
  CHECK(tables.room.memo().size() == 1'000);
}

void forgetting_does_not_help_where_the_rest_is_too_large() {
  Tables tables;
  tables.room.allow(kPlenty);
  tables.fill(1'000);
  CHECK(!tables.room.make_room(600, 1'000, false));  // half of the memory is the memo's
  CHECK(tables.room.make_room(400, 1'000, false));
  CHECK(tables.room.n_forgotten() >= 1 && tables.room.bytes() <= 600);
  tables.room.clear();
  CHECK(tables.room.n_forgotten() == 0);
}

}  // namespace

int main() {
  what_fits_stays();
  a_full_memo_is_emptied_unless_it_is_used();
  what_must_be_kept_is_kept_or_refused();
  forgetting_does_not_help_where_the_rest_is_too_large();
  return failures;
}
