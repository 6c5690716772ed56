#include "xcount/tables/text_dictionary.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace xcount {

TextDictionary::Code TextDictionary::number_of(const HashedText& given) {
  const Code known = find(given);
  if (known != kNone) return known;
  if (size() >= kNone - 1 || given.text().size() >= kNone) {
    throw std::length_error("a column has too many different texts, or too long ones");
  }
  if (2 * (size() + 1) > slots_.size()) grow();
  const auto code = static_cast<Code>(size());
  const std::size_t start = starts_.back();
  bytes_.resize(start + given.text().size() + HashedText::kPadding);
  std::copy(given.text().begin(), given.text().end(),
            bytes_.begin() + static_cast<std::ptrdiff_t>(start));
  starts_.push_back(start + given.text().size());
  place({given.key(), static_cast<std::uint32_t>(given.text().size()), code});
  return code;
}

void TextDictionary::grow() {
  constexpr std::size_t kFirst = 64;
  const std::vector<Slot> old = std::exchange(slots_, {});
  slots_.resize(old.empty() ? kFirst : 2 * old.size());
  for (const Slot& slot : old) {
    if (slot.code != kNone) place(slot);
  }
}

void TextDictionary::place(const Slot& slot) {
  const std::size_t last = slots_.size() - 1;
  std::size_t i = HashedText::hash(slot.key, slot.size, seed_) & last;
  while (slots_[i].code != kNone) i = (i + 1) & last;
  slots_[i] = slot;
}

}  // namespace xcount
