// Columns do not depend on blocks and threads; dense ones have the numbers that codes would have.
#include "xcount/tables/table_reader.hpp"

#include <cmath>
#include <string>
#include <vector>

#include "check.hpp"
#include "xcount/tables/plain_number.hpp"

using namespace xcount;
using xcount::test::failures;

namespace {

constexpr ColumnRole kIgnored = ColumnRole::kIgnored;
constexpr ColumnRole kNumbers = ColumnRole::kNumbers;
constexpr ColumnRole kTexts = ColumnRole::kTexts;

void read(TableReader& reader, std::string_view data, std::size_t block, unsigned n_threads) {
  for (std::size_t at = 0; at < data.size(); at += block) {
    reader.feed(data.substr(at, block), false, n_threads, false);
  }
  reader.feed("", true, n_threads, false);
}

// The text of each row of a column that is not dense.
std::vector<std::string> texts_of(ReadColumn& column) {
  std::vector<std::string> found;
  const auto append = [&](const auto& codes) {
    for (const auto code : codes) found.emplace_back(column.texts().text(code));
  };
  std::visit(append, column.take_codes());
  return found;
}

void columns_are_those_of_the_text() {
  const std::string data = "1,x,a\n\n2,\"y\nz\",b\r\n1.0,,\"c\"";
  for (std::size_t block = 1; block <= data.size(); ++block) {
    for (unsigned n_threads = 1; n_threads <= 3; ++n_threads) {
      TableReader reader({kNumbers, kTexts, kIgnored});
      read(reader, data, block, n_threads);
      CHECK(!reader.fault() && reader.n_rows() == 3 && reader.columns().size() == 2);
      CHECK((texts_of(reader.columns()[0]) == std::vector<std::string>{"1", "2", "1.0"}));
      CHECK((texts_of(reader.columns()[1]) == std::vector<std::string>{"x", "y\nz", ""}));
      CHECK(reader.extra_lines(0) == 0 && reader.extra_lines(1) == 2 && reader.extra_lines(2) == 2);
    }
  }
}

void the_first_fault_is_told() {
  for (std::size_t block : {1, 3, 100}) {
    TableReader reader({kNumbers, kNumbers});
    read(reader, "1,2\n3,4\n5\n6,\"7\"8\n", block, 2);
    CHECK(reader.fault() && reader.fault()->row == 2 && reader.fault()->n_fields == 1);
    CHECK(reader.fault()->csv == CsvFault::kNone);
    TableReader other({kNumbers, kNumbers});
    read(other, "1,2\n6,\"7\"8\n1\n", block, 2);
    CHECK(other.fault() && other.fault()->row == 1);
    CHECK(other.fault()->csv == CsvFault::kAfterQuote);
  }
}

void many_numbers_make_a_column_dense() {
  constexpr std::size_t kRows = 100000;
  std::string data;
  std::vector<std::string> expected;
  for (std::size_t i = 0; i < kRows; ++i) {
    const std::string number = i % 7 == 0 ? "NA" : i % 1009 == 0 ? "?" : std::to_string(i) + ".5";
    expected.push_back(number);
    data += number + ',' + number + '\n';
  }
  TableReader reader({kNumbers, kTexts});
  read(reader, data, 100000, 2);
  ReadColumn& dense = reader.columns()[0];
  CHECK(dense.is_dense() && !reader.columns()[1].is_dense());
  CHECK(texts_of(reader.columns()[1]) == expected);
  const std::vector<double> numbers = dense.take_numbers();
  CHECK(numbers.size() == kRows && dense.texts().size() == 2);
  std::size_t n_odd = 0;
  for (std::size_t i = 0; i < kRows; ++i) {
    const std::optional<double> number = plain_number(expected[i]);
    CHECK(number ? numbers[i] == *number : std::isnan(numbers[i]));
    if (number) continue;
    CHECK(dense.odd_rows()[n_odd] == i &&
          dense.texts().text(dense.odd_texts()[n_odd]) == expected[i]);
    ++n_odd;
  }
  CHECK(dense.odd_rows().size() == n_odd);
}

void rows_can_be_counted_only() {
  TableReader reader({kNumbers});
  reader.feed("1\n2\n3\n", false, 2, false);
  reader.feed("4\n5", true, 2, true);
  CHECK(reader.n_rows() == 5);
  CHECK((texts_of(reader.columns()[0]) == std::vector<std::string>{"1", "2", "3"}));
}

}  // namespace

int main() {
  columns_are_those_of_the_text();
  the_first_fault_is_told();
  many_numbers_make_a_column_dense();
  rows_can_be_counted_only();
  return failures;
}
