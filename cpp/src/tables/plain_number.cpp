#include "xcount/tables/plain_number.hpp"

#include <array>
#include <charconv>
#include <cstdint>
#include <system_error>
#include <version>

namespace xcount {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpaces = " \t";
  const std::size_t first = text.find_first_not_of(kSpaces);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpaces) - first + 1);
}

// A number of at most 19 digits with few behind the point: one division rounds it, because both
// operands are exact. Other numbers are none here.
std::optional<double> short_number(std::string_view digits) {
  constexpr std::array<double, 16> kTens = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                            1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
  constexpr std::uint64_t kMostExact = std::uint64_t{1} << 53U;
  if (digits.size() > 16) return std::nullopt;
  std::uint64_t whole = 0;
  std::size_t n_behind = 0;
  bool has_point = false;
  for (const char c : digits) {
    if (is_digit(c)) {
      whole = whole * 10 + static_cast<std::uint64_t>(c - '0');
      n_behind += has_point ? 1 : 0;
    } else if (c == '.' && !has_point) {
      has_point = true;
    } else {
      return std::nullopt;
    }
  }
  if (whole > kMostExact || digits.size() == (has_point ? 1U : 0U)) return std::nullopt;
  return static_cast<double>(whole) / kTens[n_behind];
}

}  // namespace

std::optional<double> plain_number(std::string_view text) {
  std::string_view digits = trimmed(text);
  const bool is_negative = digits.starts_with('-');
  if (is_negative || digits.starts_with('+')) digits.remove_prefix(1);
  if (digits.empty() || !(is_digit(digits[0]) || digits[0] == '.')) return std::nullopt;
  std::optional<double> found = short_number(digits);
#if defined(__cpp_lib_to_chars) && __cpp_lib_to_chars >= 201611L
  if (!found) {
    double number = 0;
    const char* const end = digits.data() + digits.size();
    const auto [at, error] = std::from_chars(digits.data(), end, number);
    if (error != std::errc() || at != end) return std::nullopt;
    found = number;
  }
#endif
  if (found && is_negative) found = -*found;
  return found;
}

}  // namespace xcount
