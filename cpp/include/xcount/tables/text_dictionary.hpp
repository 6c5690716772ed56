// Distinct texts, numbered in the order in which they came.
//
// find(text(code)) == code for every code below size(); a text is found in time that does not
// depend on its content: the hash has a seed of its own, so that no file can make texts collide.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace xcount {

// A text and what it is looked up by. Its bytes are followed by at least kPadding readable ones.
class HashedText {
 public:
  static constexpr std::size_t kPadding = 8;

  HashedText(std::string_view text, std::uint64_t seed)
      : text_(text), key_(is_short() ? word(text.data(), text.size()) : long_key(text, seed)) {
    hash_ = hash(key_, text.size(), seed);
  }
  static std::uint64_t hash(std::uint64_t key, std::size_t size, std::uint64_t seed) {
    return folded(key ^ seed, kOdd ^ size);
  }

  [[nodiscard]] std::string_view text() const { return text_; }
  [[nodiscard]] std::uint64_t hash() const { return hash_; }
  // The bytes of a short text: together with its size, they are the text. A hash of a long one.
  [[nodiscard]] std::uint64_t key() const { return key_; }
  [[nodiscard]] bool is_short() const { return text_.size() <= sizeof(key_); }

 private:
  static constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15U;

  static std::uint64_t folded(std::uint64_t a, std::uint64_t b) {
    __extension__ using Wide = unsigned __int128;
    const Wide product = static_cast<Wide>(a) * b;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64U);
  }
  // The first `n` bytes, n <= 8; the padding makes reading eight of them safe.
  static std::uint64_t word(const char* at, std::size_t n) {
    constexpr std::uint64_t kAll = ~std::uint64_t{0};
    std::uint64_t found = 0;
    std::memcpy(&found, at, sizeof(found));
    if (n == 0) return 0;
    const std::size_t n_others = 8 * (sizeof(found) - n);
    return found &
           (std::endian::native == std::endian::little ? kAll >> n_others : kAll << n_others);
  }
  static std::uint64_t long_key(std::string_view text, std::uint64_t seed) {
    std::uint64_t found = seed;
    const char* at = text.data();
    std::size_t left = text.size();
    for (; left > 8; left -= 8, at += 8) found = folded(found ^ word(at, 8), kOdd ^ seed);
    return folded(found ^ word(at, left), kOdd ^ seed);
  }

  std::string_view text_;
  std::uint64_t key_;
  std::uint64_t hash_;
};

class TextDictionary {
 public:
  using Code = std::uint32_t;
  static constexpr Code kNone = ~Code{0};

  explicit TextDictionary(std::uint64_t seed) : seed_(seed) {}

  // Another one, for texts that are hashed with the same seed.
  [[nodiscard]] TextDictionary empty_one() const { return TextDictionary(seed_); }
  [[nodiscard]] HashedText hashed(std::string_view text) const { return {text, seed_}; }
  // The number of a text, hashed with the same seed; kNone if it has none.
  [[nodiscard]] Code find(const HashedText& sought) const {
    if (slots_.empty()) return kNone;
    const std::size_t last = slots_.size() - 1;
    for (std::size_t i = sought.hash() & last;; i = (i + 1) & last) {
      const Slot& slot = slots_[i];
      if (slot.code == kNone) return kNone;
      if (slot.key != sought.key() || slot.size != sought.text().size()) continue;
      if (sought.is_short() || text(slot.code) == sought.text()) return slot.code;
    }
  }
  // The number of a text, which it gets now if it has none.
  Code number_of(const HashedText& given);

  // Followed by HashedText::kPadding readable bytes, until a new text gets a number.
  [[nodiscard]] std::string_view text(Code code) const {
    return {bytes_.data() + starts_[code], starts_[code + 1] - starts_[code]};
  }
  [[nodiscard]] std::size_t size() const { return starts_.size() - 1; }

 private:
  struct Slot {
    std::uint64_t key = 0;
    std::uint32_t size = 0;
    Code code = kNone;
  };

  void grow();
  void place(const Slot& slot);

  std::uint64_t seed_;
  std::vector<char> bytes_;
  std::vector<std::size_t> starts_ = {0};
  std::vector<Slot> slots_;  // a power of two of them, at most half of them taken
};

}  // namespace xcount
