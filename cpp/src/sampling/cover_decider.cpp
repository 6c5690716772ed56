#include "xcount/sampling/cover_decider.hpp"

#include <algorithm>

namespace xcount {

namespace {

MaskQuestion question_of(const std::vector<std::pair<MaskIndex, MaskIndex>>& pairs) {
  MaskQuestion question;
  question.pairs = pairs;
  question.all_pairs = false;
  return question;
}

}  // namespace

template <class Value>
CoverDecider<Value>::CoverDecider(const Forest<Value>& forest, const MaskSpace& masks,
                                  const Value& threshold,
                                  const std::vector<std::pair<MaskIndex, MaskIndex>>& pairs,
                                  Combine combine)
    : scope_(forest, masks, question_of(pairs)),
      profiles_(forest, masks, scope_),
      gap_(threshold),
      combine_(combine),
      places_(forest.axes.size(), kNowhere) {
  for (const auto& [a, b] : pairs) {
    pairs_.emplace_back(scope_.index(masks, a), scope_.index(masks, b));
  }
  for (std::uint32_t c = 0; c < profiles_.columns().size(); ++c) {
    const Feature feature = profiles_.columns()[c].feature;
    std::uint32_t& place = places_[static_cast<std::size_t>(feature)];
    if (place == kNowhere) {
      place = static_cast<std::uint32_t>(columns_of_.size());
      columns_of_.emplace_back();
      n_cells_.push_back(static_cast<std::uint32_t>(forest.axis(feature).n_cells));
    }
    columns_of_[place].push_back(c);
  }
}

template <class Value>
typename CoverDecider<Value>::Workspace CoverDecider<Value>::workspace(std::size_t block) const {
  return {profiles_.workspace(block),
          std::vector<Code>(std::max<std::size_t>(1, profiles_.columns().size() * block)),
          std::vector<Value>(block * profiles_.n_masks())};
}

template <class Value>
void CoverDecider<Value>::draw(Random& random, std::size_t block, std::size_t count,
                               Workspace& work) const {
  for (std::uint32_t place = 0; place < n_cells_.size(); ++place) {
    for (std::size_t i = 0; i < count; ++i) {
      set(place, static_cast<Cell>(random.below(n_cells_[place])), block, i, work);
    }
  }
}

template <class Value>
bool CoverDecider<Value>::is_hit(std::span<const Value> row) const {
  const auto differs = [&](const auto& pair) {
    return gap_.is_exceeded(row[pair.first] - row[pair.second]);
  };
  return combine_ == Combine::kAny ? std::ranges::any_of(pairs_, differs)
                                   : std::ranges::all_of(pairs_, differs);
}

template class CoverDecider<std::int64_t>;
template class CoverDecider<Int128>;
template class CoverDecider<Int2304>;

}  // namespace xcount
