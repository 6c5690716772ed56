// Wide integers agree with the built-in ones where those suffice, and carry where they do not.
#include "xcount/support/value.hpp"

#include <vector>

#include "check.hpp"

using namespace xcount;
using xcount::test::failures;

namespace {

using Wide = Int2304;

void small_values_behave_like_built_in_integers() {
  const std::vector<std::int64_t> values{0, 1, -1, 2, -7, 1'000'000, INT64_MAX / 4, INT64_MIN / 4};
  for (const std::int64_t a : values) {
    CHECK(-Wide(a) == Wide(-a));
    CHECK(Wide(a).negative() == (a < 0));
    for (const std::int64_t b : values) {
      CHECK(Wide(a) + Wide(b) == Wide(a + b));
      CHECK(Wide(a) - Wide(b) == Wide(a - b));
      CHECK((Wide(a) < Wide(b)) == (a < b));
      CHECK((Wide(a) <= Wide(b)) == (a <= b));
      CHECK((Wide(a) > Wide(b)) == (a > b));
      CHECK((Wide(a) == Wide(b)) == (a == b));
    }
  }
}

void sums_carry_into_the_next_limb() {
  Wide power(1);  // 2^i by doubling
  for (int i = 0; i < 36 * 64 - 2; ++i) {
    const Wide doubled = power + power;
    CHECK(power < doubled);
    CHECK(-doubled < -power);
    CHECK(doubled - power == power);
    power = doubled;
  }
  CHECK(power.limbs[35] == std::uint64_t{1} << 62);
}

template <class Value>
void infinity_is_beyond_sums_and_can_be_added_once() {
  const Value infinity = ValueTraits<Value>::infinity();
  CHECK(infinity > Value(INT64_MAX / 4));
  CHECK(infinity + Value(1) > infinity);
  CHECK(infinity - infinity == Value(0));
}

void limbs_are_read_back() {
  const std::vector<std::uint64_t> minus_two{~std::uint64_t{1}, ~std::uint64_t{0}};
  CHECK(ValueTraits<Int128>::from_limbs(minus_two) == -2);
  CHECK(ValueTraits<std::int64_t>::from_limbs(std::span(minus_two).first(1)) == -2);
  std::vector<std::uint64_t> wide(36, ~std::uint64_t{0});
  wide[0] = ~std::uint64_t{1};
  CHECK(ValueTraits<Wide>::from_limbs(wide) == Wide(-2));
}

}  // namespace

int main() {
  small_values_behave_like_built_in_integers();
  sums_carry_into_the_next_limb();
  infinity_is_beyond_sums_and_can_be_added_once<std::int64_t>();
  infinity_is_beyond_sums_and_can_be_added_once<Int128>();
  infinity_is_beyond_sums_and_can_be_added_once<Int2304>();
  limbs_are_read_back();
  return failures;
}
