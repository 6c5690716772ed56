// Records of CSV text: where they end, and their fields, as Python's csv module reads them with
// strict=True.
//
// A record ends at \n, \r or \r\n outside quotes; blank lines are no records. A field that begins
// with a quote ends at the next single one, and two quotes in it are one; elsewhere a quote is a
// character like others. Every function reads only data[0 .. size), and the padding that it asks
// for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace xcount {

// Places at which the data may be cut into n_parts of about equal size: 0 = cuts[0] <= cuts[1] <=
// ..., each after a whole record. The data behind the last cut is the start of a record whose end
// is not known yet; if the data is the last there is, none is left.
[[nodiscard]] std::vector<std::size_t> record_cuts(std::string_view data, std::size_t n_parts,
                                                   bool is_last);

enum class CsvFault : std::uint8_t {
  kNone,
  kAfterQuote,  // something other than a comma or a line end follows a closing quote
  kOpenQuote,   // the data ends inside quotes
  kLongField,   // more characters than Python's csv module allows
};

// Walks over whole records. The data is followed by kPadding readable bytes, the first a \n.
class CsvScanner {
 public:
  static constexpr std::size_t kPadding = 16;
  static constexpr std::size_t kMostCharacters = 131072;

  explicit CsvScanner(std::string_view data) : at_(data.data()), end_(data.data() + data.size()) {}

  // Goes to the first field of the next record; false if there is none.
  bool next_record();
  // Reads a field of the record; returns whether another one follows. At a fault, none does.
  bool next_field(std::string_view& text);

  [[nodiscard]] CsvFault fault() const { return fault_; }
  // The lines that blank lines and line ends inside quotes have added since the last call.
  [[nodiscard]] std::size_t take_extra_lines();
  [[nodiscard]] const char* position() const { return at_; }

 private:
  bool quoted_field(std::string_view& text);
  bool ended(std::string_view text);  // at a comma or a line end
  void skip_line_end();

  const char* at_;
  const char* end_;
  std::string unquoted_;  // of the last field that had two quotes in a row
  std::size_t n_extra_lines_ = 0;
  CsvFault fault_ = CsvFault::kNone;
};

// The first record of a file.
struct CsvHead {
  std::vector<std::string> fields;
  std::size_t end = 0;      // where the next record starts
  std::size_t n_lines = 0;  // up to there
  CsvFault fault = CsvFault::kNone;
};

// The first record, if it is whole; else one that ends at 0.
[[nodiscard]] CsvHead csv_head(std::string_view data, bool is_last);

}  // namespace xcount
