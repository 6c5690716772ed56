// Plain numbers are rounded as strtod rounds them, and nothing else is one.
#include "xcount/tables/plain_number.hpp"

#include <cstdlib>
#include <string>

#include "check.hpp"
#include "xcount/support/random.hpp"

using namespace xcount;
using xcount::test::failures;
using xcount::test::worlds;

namespace {

void usual_numbers() {
  CHECK(plain_number("0") == 0.0);
  CHECK(plain_number("42") == 42.0);
  CHECK(plain_number(" -3.25\t") == -3.25);
  CHECK(plain_number("+7") == 7.0);
  CHECK(plain_number(".5") == 0.5);
  CHECK(plain_number("5.") == 5.0);
  CHECK(plain_number("1e5") == 1e5);
  CHECK(plain_number("9007199254740993") == 9007199254740992.0);
  CHECK(plain_number("0.1") == 0.1);
  CHECK(plain_number("3.3000000000000003") == 3.3000000000000003);
}

void other_texts_are_none() {
  for (const char* text :
       {"",    " ",  ".",  "-",   "+",     "+-1",   "--1",          "1_2", "1,2", "0x10", "inf",
        "nan", "1e", "e5", "1 2", "1e999", "1.2.3", "\xef\xbc\x91", "1\n", "-.",  "1e5x"}) {
    CHECK(!plain_number(text));
  }
}

// Random digits, a point and an exponent.
std::string random_number(Random& random) {
  std::string text = random.below(2) == 0 ? "-" : "";
  const std::uint64_t n_digits = 1 + random.below(20);
  const std::uint64_t point = random.below(n_digits + 1);
  for (std::uint64_t i = 0; i < n_digits; ++i) {
    if (i == point) text += '.';
    text += static_cast<char>('0' + random.below(10));
  }
  if (random.below(3) == 0) text += "e" + std::to_string(static_cast<int>(random.below(40)) - 20);
  return text;
}

void random_numbers_are_rounded_to_the_nearest() {
  Random random(3, 0, 0);
  for (int i = 0; i < worlds(100000); ++i) {
    const std::string text = random_number(random);
    CHECK(plain_number(text) == std::strtod(text.c_str(), nullptr));
  }
}

}  // namespace

int main() {
  usual_numbers();
  other_texts_are_none();
  random_numbers_are_rounded_to_the_nearest();
  return failures;
}
