// The columns of a CSV file, read block by block on several threads.
//
// A column is a dictionary of the texts that its fields have, and a code for each row: row r of a
// column has the text texts[codes[r]]. A column of numbers with more than kMostTexts different
// texts is the numbers themselves instead, and a list of the rows whose text is no plain number.
// Rows come in the order of the file, whatever the number of threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "xcount/tables/csv_records.hpp"
#include "xcount/tables/text_dictionary.hpp"

namespace xcount {

enum class ColumnRole : std::uint8_t { kIgnored, kNumbers, kTexts };

// What one part of a block adds to a column.
struct ColumnPiece {
  using Code = TextDictionary::Code;

  std::size_t n_known;           // texts that the column had before
  std::vector<Code> codes;       // below n_known, or n_known + the number in `others`
  TextDictionary others;         // texts that the column did not have
  std::vector<double> numbers;   // of a dense column, instead of codes
  std::vector<std::size_t> odd;  // the places of fields that are no plain number
  std::vector<Code> odd_texts;   // and their numbers in `others`
};

class ReadColumn {
 public:
  using Code = TextDictionary::Code;
  using Codes = std::variant<std::vector<std::uint8_t>, std::vector<std::uint16_t>,
                             std::vector<std::uint32_t>>;

  static constexpr std::size_t kMostTexts = 65536;

  ReadColumn(bool has_numbers, std::uint64_t seed) : has_numbers_(has_numbers), texts_(seed) {}

  // Whether there are numbers for rows, rather than codes.
  [[nodiscard]] bool is_dense() const { return is_dense_; }
  // Of a dense column, only those that are no plain numbers.
  [[nodiscard]] const TextDictionary& texts() const { return texts_; }
  // For each text its number; NaN if it is no plain number. Empty for a column of texts.
  [[nodiscard]] const std::vector<double>& numbers_of_texts() const { return numbers_; }
  [[nodiscard]] const std::vector<std::size_t>& odd_rows() const { return odd_rows_; }
  [[nodiscard]] const std::vector<Code>& odd_texts() const { return odd_texts_; }

  // The start of a piece, which fields are then added to, by any thread.
  [[nodiscard]] ColumnPiece piece() const;
  void read(std::string_view field, ColumnPiece& piece) const;
  // Adds a piece to the rows.
  void add(const ColumnPiece& piece);

  // Makes the column dense if it has too many texts; called when no piece is being read.
  void settle();
  // The codes in the smallest type that holds them; or the numbers of a dense column. The column
  // has none afterwards.
  Codes take_codes();
  std::vector<double> take_numbers();

 private:
  using Chunk = std::variant<std::vector<std::uint16_t>, std::vector<std::uint32_t>>;

  std::vector<Code> join(const TextDictionary& others);

  bool has_numbers_;
  bool is_dense_ = false;
  std::size_t n_rows_ = 0;
  TextDictionary texts_;
  std::vector<double> numbers_;
  std::vector<Chunk> codes_;                // chunk after chunk, so that nothing large is moved
  std::vector<std::vector<double>> dense_;  // the same for numbers
  std::vector<std::size_t> odd_rows_;
  std::vector<Code> odd_texts_;
};

class TableReader {
 public:
  // The first record that is not as it should be.
  struct Fault {
    CsvFault csv = CsvFault::kNone;  // none: the number of fields is wrong
    std::size_t row = 0;
    std::size_t n_fields = 0;
  };

  // One role for each field of a record.
  explicit TableReader(std::vector<ColumnRole> roles);

  // Reads the records of another block; what follows the last whole record waits for the next one.
  // Once there is a fault, nothing is read. `only_count` counts rows and adds them to no column.
  void feed(std::string_view block, bool is_last, unsigned n_threads, bool only_count);

  [[nodiscard]] std::size_t n_rows() const { return n_rows_; }
  [[nodiscard]] const std::optional<Fault>& fault() const { return fault_; }
  // How many more lines than rows end before the end of a row.
  [[nodiscard]] std::size_t extra_lines(std::size_t row) const;
  // The columns that are kept, in the order of their fields.
  [[nodiscard]] std::vector<ReadColumn>& columns() { return columns_; }

 private:
  // The records of one part of a block.
  struct Part {
    std::vector<ColumnPiece> pieces;
    std::size_t n_rows = 0;
    std::vector<std::pair<std::size_t, std::size_t>> extra_lines;  // (row, lines), both of the part
    std::optional<Fault> fault;
  };

  [[nodiscard]] std::vector<Part> parts_of(const std::vector<std::size_t>& cuts, unsigned n_threads,
                                           bool only_count) const;
  void read(std::string_view records, bool only_count, Part& part) const;
  void note_rows(const Part& part);

  std::vector<ColumnRole> roles_;
  std::vector<ReadColumn> columns_;
  std::vector<char> buffer_;  // what is not read yet, and padding
  std::size_t n_held_ = 0;
  std::size_t n_looked_at_ = 0;  // of a record whose end is not known yet
  std::size_t n_rows_ = 0;
  std::vector<std::pair<std::size_t, std::size_t>> extra_lines_;  // from a row on
  std::optional<Fault> fault_;
};

}  // namespace xcount
