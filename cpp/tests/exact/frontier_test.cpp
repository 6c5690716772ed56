// States go in and come out as they are; what is forgotten leaves the others alone.
#include "xcount/exact/frontier.hpp"

#include <algorithm>

#include "check.hpp"

using namespace xcount;
using namespace xcount::test;

namespace {

constexpr ResidualId kSeparator = OpenState<std::int64_t>::kSeparator;

// State i has i + 1 constraints and i stretches.
void add_state(Frontier<std::int64_t>& frontier, std::uint32_t i) {
  for (std::uint32_t t = 0; t <= i; ++t) {
    const std::vector<ResidualId> ids{t, t + i};
    frontier.add_constraint(10 * i + t, ids);
  }
  for (std::uint32_t f = 0; f < i; ++f) {
    const std::vector<Stretch> stretches{{f, 1, static_cast<Cell>(2 + i)}};
    frontier.add_stretches(stretches);
  }
  frontier.close(static_cast<Share>(1) / (i + 1));
}

void check_state(const OpenState<std::int64_t>& state, std::uint32_t i) {
  CHECK(state.offsets.size() == i + 1 && state.ids.size() == 3 * (i + 1) && state.box.size() == i);
  CHECK(state.offsets.back() == 11 * static_cast<std::int64_t>(i));
  CHECK(state.ids[0] == 0 && state.ids[1] == i && state.ids[2] == kSeparator);
  CHECK(i == 0 || state.box.back() == (Stretch{i - 1, 1, static_cast<Cell>(2 + i)}));
  CHECK(state.volume == static_cast<Share>(1) / (i + 1));
}

void states_come_out_as_they_went_in() {
  Frontier<std::int64_t> frontier;
  Frontier<std::int64_t> copied;
  for (std::uint32_t i = 0; i < 5; ++i) add_state(frontier, i);
  for (std::uint32_t i = 0; i < 5; ++i) copied.add(frontier[i]);
  for (const auto* each : {&frontier, &copied}) {
    CHECK(each->size() == 5);
    for (std::uint32_t i = 0; i < 5; ++i) check_state((*each)[i], i);
  }
}

void a_state_that_was_not_closed_is_forgotten() {
  Frontier<std::int64_t> frontier;
  for (std::uint32_t i = 0; i < 3; ++i) add_state(frontier, i);
  frontier.add_constraint(7, {});
  frontier.truncate(2);
  add_state(frontier, 2);
  for (std::uint32_t i = 0; i < 3; ++i) check_state(frontier[i], i);
  frontier.truncate(0);
  add_state(frontier, 0);
  check_state(frontier[0], 0);
  frontier.release();
  CHECK(frontier.size() == 0 && frontier.bytes() == 0);
}

}  // namespace

int main() {
  states_come_out_as_they_went_in();
  a_state_that_was_not_closed_is_forgotten();
  return failures;
}
