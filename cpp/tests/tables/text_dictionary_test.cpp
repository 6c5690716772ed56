// Every text keeps the number that it got first, short or long, whatever its bytes.
#include "xcount/tables/text_dictionary.hpp"

#include <map>
#include <string>

#include "check.hpp"
#include "xcount/support/random.hpp"

using namespace xcount;
using xcount::test::failures;
using xcount::test::worlds;

namespace {

// Bytes with the padding that a lookup may read.
class Padded {
 public:
  explicit Padded(const std::string& text)
      : bytes_(text + std::string(8, '?')), size_(text.size()) {}
  [[nodiscard]] std::string_view view() const { return {bytes_.data(), size_}; }

 private:
  std::string bytes_;
  std::size_t size_;
};

void numbers_are_those_of_a_map() {
  Random random(1, 0, 0);
  TextDictionary texts(17);
  std::map<std::string, TextDictionary::Code> known;
  for (int i = 0; i < worlds(20000); ++i) {
    std::string text;
    for (std::uint64_t n = random.below(12); n > 0; --n) text += static_cast<char>(random.below(3));
    const Padded padded(text);
    const HashedText hashed = texts.hashed(padded.view());
    const auto place = known.find(text);
    CHECK(texts.find(hashed) == (place == known.end() ? TextDictionary::kNone : place->second));
    const auto code = static_cast<TextDictionary::Code>(known.size());
    CHECK(texts.number_of(hashed) == known.emplace(text, code).first->second);
  }
  CHECK(texts.size() == known.size());
  for (const auto& [text, code] : known) CHECK(texts.text(code) == text);
}

void zeros_at_the_end_count() {
  TextDictionary texts(5);
  const Padded one(std::string("a"));
  const Padded two(std::string("a\0", 2));
  const Padded none("");
  CHECK(texts.number_of(texts.hashed(one.view())) == 0);
  CHECK(texts.number_of(texts.hashed(two.view())) == 1);
  CHECK(texts.number_of(texts.hashed(none.view())) == 2);
  CHECK(texts.find(texts.hashed(one.view())) == 0);
}

}  // namespace

int main() {
  numbers_are_those_of_a_map();
  zeros_at_the_end_count();
  return failures;
}
