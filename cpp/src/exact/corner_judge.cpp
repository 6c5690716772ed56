#include "xcount/exact/corner_judge.hpp"

#include <algorithm>
#include <cmath>
#include <type_traits>

namespace xcount {

namespace {

// The value of an integer of a narrower type.
template <class Value, class T>
Value widened(const T& value) {
  if constexpr (std::is_same_v<T, Int128> && std::is_same_v<Value, Int2304>) {
    Int2304 wide(static_cast<std::int64_t>(value >> 64));
    std::copy_backward(wide.limbs.begin(), wide.limbs.end() - 1, wide.limbs.end());
    wide.limbs[0] = static_cast<std::uint64_t>(value);
    return wide;
  } else {
    return static_cast<Value>(value);
  }
}

// Asks the question's judge about every neighbour, until one changes.
template <class T, class Value>
class ExactJudge final : public TileJudge<T> {
 public:
  ExactJudge(const CornerQuestion<Value>& question, const CornerGround& ground, const Value& low)
      : judge_(question.judge),
        low_(low),
        any_(ground.windows.any),
        masks_(*question.masks),
        mask_at_(masks_by_position(*question.masks, ground.orders)) {
    for (const Change<Value>& change : question.changes) directions_.push_back(change.direction);
    only_sure_ = question.changes[0].form == ChangeForm::kSureLargest;
  }

  [[nodiscard]] bool changes(const TileColumn<T>& column, std::size_t change, std::size_t mask,
                             std::size_t lane) const override {
    const std::vector<Value> own = sums(column, mask, lane);
    if (only_sure_) return judge_(change, own, own);
    for (std::size_t other = 0; other < column.n_masks; ++other) {
      if (other == mask || !is_near(mask, other)) continue;
      const std::vector<Value> there = sums(column, other, lane);
      if (there != own && differs(change, own, there)) return true;
    }
    return false;
  }

 private:
  [[nodiscard]] bool is_near(std::size_t a, std::size_t b) const {
    return any_ || masks_.distance(mask_at_[a], mask_at_[b]) <= masks_.limit();
  }

  [[nodiscard]] bool differs(std::size_t change, const std::vector<Value>& own,
                             const std::vector<Value>& there) const {
    const Direction direction = directions_[change];
    return (direction != Direction::kDown && judge_(change, own, there)) ||
           (direction != Direction::kUp && judge_(change, there, own));
  }

  [[nodiscard]] std::vector<Value> sums(const TileColumn<T>& column, std::size_t mask,
                                        std::size_t lane) const {
    std::vector<Value> result;
    for (std::size_t k = 0; k < column.n_outputs; ++k) {
      const auto value = static_cast<T>(column.sums[k * column.n_masks + mask].lane[lane]);
      result.push_back(widened<Value>(value) + low_);
    }
    return result;
  }

  ProbabilityJudge<Value> judge_;
  Value low_;
  bool any_;  // every mask is near every other
  MaskSpace masks_;
  std::vector<MaskIndex> mask_at_;
  std::vector<Direction> directions_;
  bool only_sure_ = false;
};

}  // namespace

template <class T, class Value>
void set_judge(const CornerQuestion<Value>& question, const CornerGround& ground,
               const SumRange<Value>& range, CornerPlan<T>& plan) {
  plan.judge = std::make_unique<ExactJudge<T, Value>>(question, ground, range.low);
  plan.link = question.link;
  plan.zero = static_cast<T>(truncated<T>(Value(-range.low)));
  plan.span = T(kProbabilityOne) + T(1);
  if constexpr (!std::is_same_v<T, Int2304>) {
    plan.link.unit = std::ldexp(plan.link.unit, plan.link.exponent);
    plan.link.exponent = 0;
  }
}

#define XCOUNT_INSTANTIATE(T, Value)                                         \
  template void set_judge(const CornerQuestion<Value>&, const CornerGround&, \
                          const SumRange<Value>&, CornerPlan<T>&);

XCOUNT_INSTANTIATE(std::int64_t, std::int64_t)
XCOUNT_INSTANTIATE(std::int64_t, Int128)
XCOUNT_INSTANTIATE(std::int64_t, Int2304)
XCOUNT_INSTANTIATE(Int128, Int128)
XCOUNT_INSTANTIATE(Int128, Int2304)
XCOUNT_INSTANTIATE(Int2304, Int2304)

#undef XCOUNT_INSTANTIATE

}  // namespace xcount
