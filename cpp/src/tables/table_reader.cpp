#include "xcount/tables/table_reader.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <stdexcept>

#include "xcount/support/parallel.hpp"
#include "xcount/tables/plain_number.hpp"

namespace xcount {
namespace {

constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();

// The values of all chunks in one vector; each chunk is freed as soon as it is copied.
template <class To, class Chunks, class Each>
std::vector<To> joined(Chunks& chunks, std::size_t n_rows, Each append) {
  std::vector<To> found;
  found.reserve(n_rows);
  for (auto& chunk : chunks) {
    append(chunk, found);
    chunk = {};
  }
  chunks.clear();
  return found;
}

}  // namespace

ColumnPiece ReadColumn::piece() const {
  return {.n_known = texts_.size(),
          .codes = {},
          .others = texts_.empty_one(),
          .numbers = {},
          .odd = {},
          .odd_texts = {}};
}

void ReadColumn::read(std::string_view field, ColumnPiece& piece) const {
  if (is_dense_) {
    const std::optional<double> number = plain_number(field);
    if (!number) {
      piece.odd.push_back(piece.numbers.size());
      piece.odd_texts.push_back(piece.others.number_of(texts_.hashed(field)));
    }
    piece.numbers.push_back(number.value_or(kNoNumber));
    return;
  }
  const HashedText text = texts_.hashed(field);
  Code code = texts_.find(text);
  if (code == TextDictionary::kNone) {
    code = static_cast<Code>(piece.n_known + piece.others.number_of(text));
  }
  piece.codes.push_back(code);
}

void ReadColumn::add(const ColumnPiece& piece) {
  if (is_dense_ && !piece.codes.empty()) throw std::logic_error("a piece came before it was dense");
  const std::vector<Code> own = join(piece.others);
  if (is_dense_) {
    for (std::size_t i = 0; i < piece.odd.size(); ++i) {
      odd_rows_.push_back(n_rows_ + piece.odd[i]);
      odd_texts_.push_back(own[piece.odd_texts[i]]);
    }
    dense_.push_back(piece.numbers);
    n_rows_ += piece.numbers.size();
    return;
  }
  const auto kept = [&](auto& codes) {
    using To = typename std::decay_t<decltype(codes)>::value_type;
    codes.reserve(piece.codes.size());
    for (const Code code : piece.codes) {
      codes.push_back(static_cast<To>(code < piece.n_known ? code : own[code - piece.n_known]));
    }
  };
  if (texts_.size() <= kMostTexts) {
    codes_.emplace_back(std::vector<std::uint16_t>());
  } else {
    codes_.emplace_back(std::vector<std::uint32_t>());
  }
  std::visit(kept, codes_.back());
  n_rows_ += piece.codes.size();
}

// The numbers that texts have, or now get, in the column.
std::vector<ReadColumn::Code> ReadColumn::join(const TextDictionary& others) {
  std::vector<Code> found;
  found.reserve(others.size());
  for (std::size_t i = 0; i < others.size(); ++i) {
    const std::string_view text = others.text(static_cast<Code>(i));
    found.push_back(texts_.number_of(texts_.hashed(text)));
    if (has_numbers_ && numbers_.size() < texts_.size()) {
      numbers_.push_back(plain_number(text).value_or(kNoNumber));
    }
  }
  return found;
}

void ReadColumn::settle() {
  if (is_dense_ || !has_numbers_ || texts_.size() <= kMostTexts) return;
  TextDictionary odd = texts_.empty_one();
  std::vector<Code> odd_of(texts_.size(), TextDictionary::kNone);
  for (std::size_t i = 0; i < texts_.size(); ++i) {
    if (!std::isnan(numbers_[i])) continue;
    odd_of[i] = odd.number_of(texts_.hashed(texts_.text(static_cast<Code>(i))));
  }
  std::size_t row = 0;
  for (Chunk& chunk : codes_) {
    std::vector<double>& numbers = dense_.emplace_back();
    const auto convert = [&](const auto& codes) {
      numbers.reserve(codes.size());
      for (const auto code : codes) {
        numbers.push_back(numbers_[code]);
        if (odd_of[code] != TextDictionary::kNone) {
          odd_rows_.push_back(row);
          odd_texts_.push_back(odd_of[code]);
        }
        ++row;
      }
    };
    std::visit(convert, chunk);
    chunk = {};
  }
  codes_.clear();
  texts_ = std::move(odd);
  numbers_.assign(texts_.size(), kNoNumber);
  is_dense_ = true;
}

ReadColumn::Codes ReadColumn::take_codes() {
  const auto all = [&](auto none) {
    using To = decltype(none);
    return joined<To>(codes_, n_rows_, [](const Chunk& chunk, std::vector<To>& found) {
      const auto append = [&](const auto& codes) {
        for (const auto code : codes) found.push_back(static_cast<To>(code));
      };
      std::visit(append, chunk);
    });
  };
  if (texts_.size() <= 1U << 8U) return all(std::uint8_t{});
  if (texts_.size() <= 1U << 16U) return all(std::uint16_t{});
  return all(std::uint32_t{});
}

std::vector<double> ReadColumn::take_numbers() {
  const auto append = [](const std::vector<double>& chunk, std::vector<double>& found) {
    found.insert(found.end(), chunk.begin(), chunk.end());
  };
  return joined<double>(dense_, n_rows_, append);
}

TableReader::TableReader(std::vector<ColumnRole> roles) : roles_(std::move(roles)) {
  std::random_device device;
  const std::uint64_t seed = (static_cast<std::uint64_t>(device()) << 32U) | device();
  for (const ColumnRole role : roles_) {
    if (role != ColumnRole::kIgnored) columns_.emplace_back(role == ColumnRole::kNumbers, seed);
  }
}

void TableReader::feed(std::string_view block, bool is_last, unsigned n_threads, bool only_count) {
  if (fault_) return;
  buffer_.resize(n_held_);
  buffer_.reserve(n_held_ + block.size() + CsvScanner::kPadding);
  buffer_.insert(buffer_.end(), block.begin(), block.end());
  n_held_ = buffer_.size();
  buffer_.resize(n_held_ + CsvScanner::kPadding, '\n');
  // A record without an end is looked at again only when it has doubled: its length, once, in all.
  if (!is_last && n_held_ < 2 * n_looked_at_) return;
  const std::vector<std::size_t> cuts = record_cuts({buffer_.data(), n_held_}, n_threads, is_last);
  const std::vector<Part> parts = parts_of(cuts, n_threads, only_count);
  for (const Part& part : parts) {
    if (!fault_) note_rows(part);
  }
  if (!fault_ && !only_count) {
    parallel(columns_.size(), n_threads, [&](std::size_t i) {
      for (const Part& part : parts) columns_[i].add(part.pieces[i]);
      columns_[i].settle();
    });
  }
  n_held_ -= cuts.back();
  std::memmove(buffer_.data(), buffer_.data() + cuts.back(), n_held_);
  n_looked_at_ = cuts.back() == 0 ? n_held_ : 0;
}

std::vector<TableReader::Part> TableReader::parts_of(const std::vector<std::size_t>& cuts,
                                                     unsigned n_threads, bool only_count) const {
  std::vector<Part> parts(cuts.size() - 1);
  parallel(parts.size(), n_threads, [&](std::size_t i) {
    read({buffer_.data() + cuts[i], cuts[i + 1] - cuts[i]}, only_count, parts[i]);
  });
  return parts;
}

void TableReader::read(std::string_view records, bool only_count, Part& part) const {
  if (!only_count) {
    for (const ReadColumn& column : columns_) part.pieces.push_back(column.piece());
  }
  CsvScanner scanner(records);
  std::string_view text;
  while (scanner.next_record()) {
    std::size_t n_fields = 0;
    std::size_t column = 0;
    bool goes_on = true;
    while (goes_on) {
      goes_on = scanner.next_field(text);
      if (scanner.fault() != CsvFault::kNone) break;
      const bool is_asked = n_fields < roles_.size() && roles_[n_fields] != ColumnRole::kIgnored;
      if (is_asked && !only_count) columns_[column].read(text, part.pieces[column]);
      column += is_asked ? 1 : 0;
      ++n_fields;
    }
    if (const std::size_t n_lines = scanner.take_extra_lines()) {
      part.extra_lines.emplace_back(part.n_rows, n_lines);
    }
    if (scanner.fault() != CsvFault::kNone || n_fields != roles_.size()) {
      part.fault = Fault{scanner.fault(), part.n_rows, n_fields};
      return;
    }
    ++part.n_rows;
  }
  if (const std::size_t n_lines = scanner.take_extra_lines()) {  // blank ones at the end
    part.extra_lines.emplace_back(part.n_rows, n_lines);
  }
}

void TableReader::note_rows(const Part& part) {
  for (const auto& [row, n_lines] : part.extra_lines) {
    const std::size_t before = extra_lines_.empty() ? 0 : extra_lines_.back().second;
    if (!extra_lines_.empty() && extra_lines_.back().first == n_rows_ + row) {
      extra_lines_.back().second += n_lines;
    } else {
      extra_lines_.emplace_back(n_rows_ + row, before + n_lines);
    }
  }
  fault_ = part.fault;
  if (fault_) fault_->row += n_rows_;
  n_rows_ += part.n_rows;
}

std::size_t TableReader::extra_lines(std::size_t row) const {
  const auto after =
      std::upper_bound(extra_lines_.begin(), extra_lines_.end(), row,
                       [](std::size_t sought, const auto& entry) { return sought < entry.first; });
  return after == extra_lines_.begin() ? 0 : std::prev(after)->second;
}

}  // namespace xcount
