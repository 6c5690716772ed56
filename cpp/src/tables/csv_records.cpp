#include "xcount/tables/csv_records.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace xcount {
namespace {

constexpr std::size_t kNowhere = std::string_view::npos;

bool ends_line(char c) { return c == '\n' || c == '\r'; }

// The bytes of a word that are equal to c; the lowest of them is exact.
std::uint64_t equal_bytes(std::uint64_t word, char c) {
  constexpr std::uint64_t kOnes = 0x0101010101010101U;
  const std::uint64_t other = word ^ (kOnes * static_cast<unsigned char>(c));
  return (other - kOnes) & ~other & (kOnes << 7U);
}

// The next comma or line end, of which there is one; eight bytes at a time.
const char* field_end(const char* at) {
  if constexpr (std::endian::native == std::endian::little) {
    for (;; at += sizeof(std::uint64_t)) {
      std::uint64_t word = 0;
      std::memcpy(&word, at, sizeof(word));
      const std::uint64_t ends =
          equal_bytes(word, ',') | equal_bytes(word, '\n') | equal_bytes(word, '\r');
      if (ends != 0) return at + std::countr_zero(ends) / 8;
    }
  }
  while (*at != ',' && !ends_line(*at)) ++at;
  return at;
}

// The next quote that is not one of two in a row.
std::size_t closing_quote(std::string_view data, std::size_t at) {
  while ((at = data.find('"', at)) != kNowhere) {
    if (at + 1 == data.size() || data[at + 1] != '"') return at;
    at += 2;
  }
  return kNowhere;
}

// Collects cuts: for each part the first line end behind its share of the data.
class Cuts {
 public:
  Cuts(std::string_view data, std::size_t n_parts, bool is_last)
      : data_(data), n_parts_(std::max<std::size_t>(1, n_parts)), is_last_(is_last) {}

  // Looks at data that is outside quotes.
  void look_at(std::size_t start, std::size_t end) {
    while (cuts_.size() < n_parts_) {
      const std::size_t share = data_.size() / n_parts_ * cuts_.size();
      const std::size_t at = found('\n', std::max({start, share, cuts_.back()}), end);
      if (at == kNowhere) break;
      cuts_.push_back(at + 1);
    }
    for (std::size_t i = end; i > std::max(start, last_); --i) {
      // Whether a \n follows a \r is not known at the end of the data.
      if (data_[i - 1] == '\n' || (data_[i - 1] == '\r' && (i < data_.size() || is_last_))) {
        last_ = i;
        break;
      }
    }
  }
  std::vector<std::size_t> cuts() && {
    cuts_.push_back(is_last_ ? data_.size() : last_);
    return std::move(cuts_);
  }

  [[nodiscard]] std::size_t found(char sought, std::size_t start, std::size_t end) const {
    if (start >= end) return kNowhere;
    const void* at = std::memchr(data_.data() + start, sought, end - start);
    if (at == nullptr) return kNowhere;
    return static_cast<std::size_t>(static_cast<const char*>(at) - data_.data());
  }

 private:
  std::string_view data_;
  std::size_t n_parts_;
  bool is_last_;
  std::vector<std::size_t> cuts_ = {0};
  std::size_t last_ = 0;
};

}  // namespace

std::vector<std::size_t> record_cuts(std::string_view data, std::size_t n_parts, bool is_last) {
  Cuts cuts(data, n_parts, is_last);
  std::size_t start = 0;  // of what is outside quotes
  std::size_t at = 0;
  while ((at = cuts.found('"', at, data.size())) != kNowhere) {
    const bool opens = at == 0 || data[at - 1] == ',' || ends_line(data[at - 1]);
    if (!opens) {
      ++at;
      continue;
    }
    cuts.look_at(start, at);
    at = closing_quote(data, at + 1);
    // A quote that ends the data may be the first of two.
    if (at == kNowhere || (at + 1 == data.size() && !is_last)) return std::move(cuts).cuts();
    start = ++at;
  }
  cuts.look_at(start, data.size());
  return std::move(cuts).cuts();
}

bool CsvScanner::next_record() {
  while (at_ < end_ && ends_line(*at_)) {
    skip_line_end();
    ++n_extra_lines_;
  }
  return at_ < end_;
}

bool CsvScanner::next_field(std::string_view& text) {
  if (at_ < end_ && *at_ == '"') return quoted_field(text);
  const char* const start = at_;
  at_ = field_end(at_);
  text = {start, static_cast<std::size_t>(at_ - start)};
  return ended(text);
}

bool CsvScanner::quoted_field(std::string_view& text) {
  const char* start = ++at_;
  unquoted_.clear();
  for (;;) {
    const void* quote = std::memchr(at_, '"', static_cast<std::size_t>(end_ - at_));
    if (quote == nullptr) {
      fault_ = CsvFault::kOpenQuote;
      return false;
    }
    at_ = static_cast<const char*>(quote) + 1;
    if (at_ == end_ || *at_ != '"') break;
    unquoted_.append(start, at_);  // with the first of the two
    start = ++at_;
  }
  const char* const end = at_ - 1;
  if (unquoted_.empty()) {
    text = {start, static_cast<std::size_t>(end - start)};
  } else {
    unquoted_.append(start, end);
    const std::size_t size = unquoted_.size();
    unquoted_.append(kPadding, '\0');
    text = {unquoted_.data(), size};
  }
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_pair = text[i] == '\r' && i + 1 < text.size() && text[i + 1] == '\n';
    n_extra_lines_ += ends_line(text[i]) && !is_pair ? 1 : 0;
  }
  return ended(text);
}

bool CsvScanner::ended(std::string_view text) {
  if (text.size() > kMostCharacters) {
    // Every character has one byte that continues no other.
    const auto starts = [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; };
    const auto n_characters = std::count_if(text.begin(), text.end(), starts);
    if (static_cast<std::size_t>(n_characters) > kMostCharacters) {
      fault_ = CsvFault::kLongField;
      return false;
    }
  }
  if (at_ < end_ && *at_ == ',') {
    ++at_;
    return true;
  }
  if (at_ < end_ && !ends_line(*at_)) {
    fault_ = CsvFault::kAfterQuote;
    return false;
  }
  skip_line_end();
  return false;
}

void CsvScanner::skip_line_end() {
  if (at_ == end_) return;  // the last line has none
  const bool is_pair = *at_ == '\r' && at_ + 1 < end_ && at_[1] == '\n';
  at_ += is_pair ? 2 : 1;
}

std::size_t CsvScanner::take_extra_lines() { return std::exchange(n_extra_lines_, 0); }

CsvHead csv_head(std::string_view data, bool is_last) {
  const std::size_t whole = record_cuts(data, 1, is_last).back();
  std::string padded(data.substr(0, whole));
  padded.append(CsvScanner::kPadding, '\n');
  CsvScanner scanner({padded.data(), whole});
  CsvHead head;
  if (!scanner.next_record()) return head;
  std::string_view text;
  bool goes_on = true;
  while (goes_on) {
    goes_on = scanner.next_field(text);
    if (scanner.fault() == CsvFault::kNone) head.fields.emplace_back(text);
  }
  head.fault = scanner.fault();
  head.end = static_cast<std::size_t>(scanner.position() - padded.data());
  head.n_lines = scanner.take_extra_lines() + 1;
  return head;
}

}  // namespace xcount
