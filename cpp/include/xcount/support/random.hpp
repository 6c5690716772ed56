// Randomness that does not depend on the number of threads: one generator per batch of samples,
// keyed by (seed, stream, batch): docs/approximate.md, "Same seed, same answer".
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace xcount {

// SplitMix64 (Steele, Lea, Flood 2014): only used to spread keys over generator states.
inline std::uint64_t split_mix(std::uint64_t& state) {
  std::uint64_t z = (state += 0x9E3779B97F4A7C15ULL);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31);
}

// xoshiro256++ 1.0 (Blackman, Vigna 2019).
class Random {
 public:
  Random(std::uint64_t seed, std::uint64_t stream, std::uint64_t batch) {
    std::uint64_t key = seed;
    std::uint64_t mixed = split_mix(key) ^ (stream * 0xD1342543DE82EF95ULL);
    mixed = split_mix(mixed) ^ (batch * 0xA0761D6478BD642FULL);
    for (std::uint64_t& word : state_) word = split_mix(mixed);
  }

  std::uint64_t next() {
    const std::uint64_t result = std::rotl(state_[0] + state_[3], 23) + state_[0];
    const std::uint64_t t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }

  // Uniform on 0 <= r < n, without bias: Lemire's method ("Fast random integer generation in an
  // interval", 2019).
  std::uint32_t below(std::uint32_t n) {
    std::uint64_t product = std::uint64_t{half()} * n;
    if (static_cast<std::uint32_t>(product) < n) {
      const std::uint32_t rejected = (0U - n) % n;
      while (static_cast<std::uint32_t>(product) < rejected) product = std::uint64_t{half()} * n;
    }
    return static_cast<std::uint32_t>(product >> 32);
  }

 private:
  std::uint32_t half() {
    if (has_spare_) {
      has_spare_ = false;
      return static_cast<std::uint32_t>(spare_);
    }
    const std::uint64_t word = next();
    spare_ = word;
    has_spare_ = true;
    return static_cast<std::uint32_t>(word >> 32);
  }

  std::array<std::uint64_t, 4> state_{};
  std::uint64_t spare_ = 0;
  bool has_spare_ = false;
};

}  // namespace xcount
