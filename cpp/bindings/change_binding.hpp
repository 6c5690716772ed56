// How Python names the direction of a change.
#pragma once

#include <stdexcept>
#include <string>

#include "xcount/trees/change.hpp"

namespace xcount::python {

inline Direction direction_of(const std::string& name) {
  if (name == "any") return Direction::kAny;
  if (name == "up") return Direction::kUp;
  if (name == "down") return Direction::kDown;
  throw std::invalid_argument("a direction is any, up or down, not " + name);
}

}  // namespace xcount::python
