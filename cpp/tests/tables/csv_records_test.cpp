// Records end where they do for Python's csv module, wherever the data is cut.
#include "xcount/tables/csv_records.hpp"

#include <string>
#include <vector>

#include "check.hpp"
#include "xcount/support/random.hpp"

using namespace xcount;
using xcount::test::failures;
using xcount::test::worlds;

namespace {

using Record = std::vector<std::string>;

// All records, with the fault as the last one if there is one.
std::vector<Record> records_of(std::string_view data) {
  std::string padded(data);
  padded.append(CsvScanner::kPadding, '\n');
  CsvScanner scanner({padded.data(), data.size()});
  std::vector<Record> found;
  while (scanner.next_record()) {
    Record record;
    std::string_view text;
    bool goes_on = true;
    while (goes_on) {
      goes_on = scanner.next_field(text);
      if (scanner.fault() != CsvFault::kNone) return {{"fault"}};
      record.emplace_back(text);
    }
    found.push_back(record);
  }
  return found;
}

void fields_are_those_of_the_text() {
  CHECK((records_of("a,b\n1,2\n") == std::vector<Record>{{"a", "b"}, {"1", "2"}}));
  CHECK((records_of("a,\r\n,b\r\n\r\n") == std::vector<Record>{{"a", ""}, {"", "b"}}));
  CHECK((records_of("a\rb") == std::vector<Record>{{"a"}, {"b"}}));
  CHECK((records_of("\"a,\"\"b\"\"\n\",c") == std::vector<Record>{{"a,\"b\"\n", "c"}}));
  CHECK((records_of("a\"b\"c,\"\"\n") == std::vector<Record>{{"a\"b\"c", ""}}));
  CHECK((records_of("a,") == std::vector<Record>{{"a", ""}}));
  CHECK(records_of("\n\r\n\r").empty());
  CHECK((records_of("\"a\"b\n") == std::vector<Record>{{"fault"}}));
  CHECK((records_of("\"a\n") == std::vector<Record>{{"fault"}}));
  const std::string most(CsvScanner::kMostCharacters, 'x');
  CHECK(records_of(most) == std::vector<Record>{{most}});
  CHECK((records_of(most + "x") == std::vector<Record>{{"fault"}}));
}

// Data of the characters that matter, without faults.
std::string random_data(Random& random) {
  std::string data;
  for (std::uint64_t n = random.below(12); n > 0; --n) {
    const char* const fields[] = {"",        "a",          "b\"c",     "\"\"",
                                  "\"x,y\"", "\"q\"\"r\"", "\"l\nm\"", "\"\r\""};
    const char* const ends[] = {",", ",", "\n", "\r\n", "\r"};
    data += fields[random.below(8)];
    data += ends[random.below(5)];
  }
  return data;
}

void cuts_lie_between_records() {
  Random random(9, 0, 0);
  for (int i = 0; i < worlds(20000); ++i) {
    const std::string data = random_data(random);
    const std::vector<Record> expected = records_of(data);
    const std::size_t n_parts = 1 + random.below(4);
    const std::vector<std::size_t> cuts = record_cuts(data, n_parts, true);
    CHECK(cuts.size() <= n_parts + 1 && cuts.front() == 0 && cuts.back() == data.size());
    std::vector<Record> found;
    for (std::size_t c = 0; c + 1 < cuts.size(); ++c) {
      CHECK(cuts[c] <= cuts[c + 1]);
      for (Record& record : records_of(data.substr(cuts[c], cuts[c + 1] - cuts[c]))) {
        found.push_back(std::move(record));
      }
    }
    CHECK(found == expected);
    // The start of the data: what is whole there stays so, whatever follows.
    const std::string start = data.substr(0, random.below(data.size() + 1));
    const std::size_t whole = record_cuts(start, n_parts, false).back();
    std::vector<Record> both = records_of(data.substr(0, whole));
    for (Record& record : records_of(data.substr(whole))) both.push_back(std::move(record));
    CHECK(both == expected);
  }
}

void the_head_is_the_first_record() {
  const CsvHead head = csv_head("\n\"a\nb\",c\n1,2\n", false);
  CHECK((head.fields == Record{"a\nb", "c"}));
  CHECK(head.end == 9 && head.n_lines == 3);
  CHECK(csv_head("a,b", false).fields.empty());
  CHECK((csv_head("a,b", true).fields == Record{"a", "b"}));
  CHECK(csv_head("\n\n", true).fields.empty());
  CHECK(csv_head("\"a", true).fault == CsvFault::kOpenQuote);
}

}  // namespace

int main() {
  fields_are_those_of_the_text();
  cuts_lie_between_records();
  the_head_is_the_first_record();
  return failures;
}
