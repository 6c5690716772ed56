// Small states, enumerated: all combinations of leaves of a few residual trees, tree by tree.
//
// A state with few combinations is cheaper to walk than to split and to remember. The walk narrows
// a box of cells at each test, and stops where the bounds of what is left decide.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "xcount/residuals.hpp"
#include "xcount/solution_values.hpp"

namespace xcount {

enum class Combine { kAny, kAll };

template <class Value, class Values>
class PathWalk {
 public:
  // A constraint |offset + sum of residuals| > threshold; the answer holds for low..high.
  struct Term {
    Value start{}, offset{}, low{}, high{};
    bool settled = false;
  };

  PathWalk(ResidualStore<Value>& store, Values& values, Value threshold)
      : store_(store), values_(values), threshold_(threshold) {}

  // Starts a state with these residuals, in what is left of the axes; false if it cannot be walked.
  bool open(std::span<const ResidualId> ids, std::span<const Stretch> narrowed);
  void add_term(const Value& offset, std::span<const ResidualId> ids);
  SolutionId run(Combine combine);

  [[nodiscard]] const std::vector<Term>& terms() const { return terms_; }
  [[nodiscard]] std::uint64_t n_steps() const { return n_steps_; }  // of the last run

 private:
  using Volume = typename Values::Volume;
  struct Item {
    ResidualId root;
    std::uint32_t term;
    Value rest_min, rest_max;  // of the term's residuals after this one
  };

  [[nodiscard]] bool find_mentioned(std::span<const ResidualId> ids);
  void order_items();
  void walk(std::size_t i, ResidualId id, Volume volume);
  void walk_next(std::size_t i, Volume volume);
  void settle(std::size_t i, bool inside, Volume volume);

  ResidualStore<Value>& store_;
  Values& values_;
  Value threshold_;
  Combine combine_ = Combine::kAny;
  std::vector<Item> items_;
  std::vector<Term> terms_;
  std::vector<Stretch> box_;              // by feature; valid for the mentioned ones
  std::vector<std::uint32_t> mentioned_;  // features that the state depends on
  std::vector<std::uint8_t> seen_;
  std::vector<ResidualId> open_;
  std::vector<Value> rest_min_, rest_max_;
  Volume total_{};
  std::uint64_t n_steps_ = 0;
};

}  // namespace xcount
