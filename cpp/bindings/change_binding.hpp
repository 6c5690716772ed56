// Changes as Python hands them over.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "forest_binding.hpp"
#include "xcount/trees/change.hpp"

namespace xcount::python {

inline Direction direction_of(const std::string& name) {
  if (name == "any") return Direction::kAny;
  if (name == "up") return Direction::kUp;
  if (name == "down") return Direction::kDown;
  throw std::invalid_argument("a direction is any, up or down, not " + name);
}

// A change whose threshold has the width of forests that are not known yet.
using PyChange = Change<std::vector<std::uint64_t>>;

template <class Value>
Value value_of_limbs(const std::vector<std::uint64_t>& limbs) {
  if (limbs.size() != ValueTraits<Value>::kLimbs) {
    throw std::invalid_argument("a threshold has another width than the forests");
  }
  return ValueTraits<Value>::from_limbs(limbs);
}

template <class Value>
Change<Value> change_of(const PyChange& change) {
  const auto value = [](const std::vector<std::uint64_t>& limbs) {
    return limbs.empty() ? Value(0) : value_of_limbs<Value>(limbs);
  };
  Change<Value> own(change.form, change.direction, value(change.threshold));
  own.sure_below = value(change.sure_below);
  own.sure_above = value(change.sure_above);
  return own;
}

template <class Value>
std::vector<const Forest<Value>*> forests_of(const std::vector<const AnyForest*>& forests) {
  std::vector<const Forest<Value>*> outputs;
  for (const AnyForest* forest : forests) {
    const auto* output = std::get_if<Forest<Value>>(forest);
    if (output == nullptr) throw std::invalid_argument("forests have leaves of different widths");
    outputs.push_back(output);
  }
  return outputs;
}

}  // namespace xcount::python
