// A forest whose value type was chosen at run time, and how Python hands it over.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <memory>
#include <stdexcept>
#include <utility>
#include <variant>
#include <vector>

#include "xcount/trees/forest.hpp"
#include "xcount/trees/masks.hpp"

namespace nb = nanobind;

namespace xcount::python {

template <class T>
using Array = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Limbs = nb::ndarray<const std::uint64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

template <class T>
std::span<const T> span_of(const Array<T>& array) {
  return {array.data(), array.size()};
}

using AnyForest = std::variant<Forest<std::int64_t>, Forest<Int128>, Forest<Int2304>>;

template <class Value>
Value value_of(const Array<std::uint64_t>& limbs) {
  if (limbs.size() != ValueTraits<Value>::kLimbs) {
    throw std::invalid_argument("a value has the wrong number of limbs");
  }
  return ValueTraits<Value>::from_limbs(span_of(limbs));
}

inline const Topology& topology_of(const AnyForest& forest) {
  return std::visit([](const auto& f) -> const Topology& { return f; }, forest);
}

inline void check_mask(const MaskSpace& masks, MaskIndex mask) {
  if (mask < 0 || mask >= masks.size()) throw std::invalid_argument("a mask is out of range");
}

inline void check_pairs(const MaskSpace& masks,
                        const std::vector<std::pair<MaskIndex, MaskIndex>>& pairs) {
  for (const auto& [a, b] : pairs) {
    check_mask(masks, a);
    check_mask(masks, b);
  }
}

// Masks must be those of the forest that they are used with.
inline void check_fits(const AnyForest& forest, const MaskSpace& masks) {
  const Topology& topology = topology_of(forest);
  MaskIndex size = 1;
  for (const Feature feature : masks.sensitive()) {
    if (static_cast<std::size_t>(feature) >= topology.axes.size()) size = 0;
    if (size != 0) size *= topology.axis(feature).n_cells;
  }
  if (size != masks.size()) throw std::invalid_argument("the masks are another forest's");
}

// Copies what a native function returns into a NumPy array that owns it.
template <class T>
nb::ndarray<nb::numpy, T, nb::ndim<1>> to_numpy(std::vector<T> data) {
  auto owner = std::make_unique<std::vector<T>>(std::move(data));
  T* begin = owner->data();
  const std::size_t size = owner->size();
  nb::capsule capsule(owner.release(),
                      [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return nb::ndarray<nb::numpy, T, nb::ndim<1>>(begin, {size}, capsule);
}

// The Python int of little-endian limbs.
inline nb::object big_integer(const std::vector<std::uint64_t>& limbs) {
  const nb::bytes data(limbs.data(), limbs.size() * sizeof(std::uint64_t));
  return nb::module_::import_("builtins").attr("int").attr("from_bytes")(data, "little");
}

void bind_forest(nb::module_& module);
void bind_brute(nb::module_& module);
void bind_exact(nb::module_& module);
void bind_solution_diagram(nb::module_& module);
void bind_sampling(nb::module_& module);
void bind_regions(nb::module_& module);
void bind_cover(nb::module_& module);
void bind_diagrams(nb::module_& module);
void bind_corner_sums(nb::module_& module);
void bind_population(nb::module_& module);
void bind_tables(nb::module_& module);
void bind_worst(nb::module_& module);
void bind_pair_cover(nb::module_& module);

// Runs an operation while other threads of Python go on.
template <class Operation>
auto without_lock(Operation operation) {
  nb::gil_scoped_release release;
  return operation();
}

}  // namespace xcount::python
