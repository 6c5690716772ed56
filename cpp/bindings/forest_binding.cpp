#include "forest_binding.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>

#include "sequences.hpp"

namespace xcount::python {

namespace {

AnyForest make_forest(const ForestArrays& arrays, std::size_t width) {
  switch (width) {
    case ValueTraits<std::int64_t>::kLimbs:
      return Forest<std::int64_t>(arrays);
    case ValueTraits<Int128>::kLimbs:
      return Forest<Int128>(arrays);
    case ValueTraits<Int2304>::kLimbs:
      return Forest<Int2304>(arrays);
    default:
      throw std::invalid_argument("forest: unsupported width of leaf values");
  }
}

}  // namespace

void bind_forest(nb::module_& module) {
  nb::class_<AnyForest>(module, "Forest", "The trees of one output, laid on the grid.")
      .def(
          "__init__",
          [](AnyForest* self, const Array<std::int32_t>& n_cells,
             const Array<std::int32_t>& missing_cell, const Array<std::uint8_t>& ordered,
             const Array<std::int32_t>& roots, const Array<std::int32_t>& feature,
             const Array<std::int32_t>& cut, const Array<std::uint8_t>& missing_left,
             const Array<std::int32_t>& left, const Array<std::int32_t>& right, const Limbs& limbs,
             const Array<std::uint8_t>& membership,
             const std::optional<Array<std::int32_t>>& positions) {
            const ForestArrays arrays{
                span_of(n_cells),
                span_of(missing_cell),
                span_of(ordered),
                span_of(roots),
                span_of(feature),
                span_of(cut),
                span_of(missing_left),
                span_of(left),
                span_of(right),
                {limbs.data(), limbs.size()},
                span_of(membership),
                positions ? span_of(*positions) : std::span<const std::int32_t>{}};
            new (self) AnyForest(make_forest(arrays, limbs.shape(1)));
          },
          nb::arg("n_cells"), nb::arg("missing_cell"), nb::arg("ordered"), nb::arg("roots"),
          nb::arg("feature"), nb::arg("cut"), nb::arg("missing_left"), nb::arg("left"),
          nb::arg("right"), nb::arg("limbs"), nb::arg("membership"),
          nb::arg("positions") = nb::none())
      .def_prop_ro(
          "n_limbs",
          [](const AnyForest& self) {
            return std::visit(
                []<class Value>(const Forest<Value>&) { return ValueTraits<Value>::kLimbs; }, self);
          },
          "Width of the leaf values in 64-bit limbs.")
      .def(
          "join",
          [](AnyForest& self, Feature feature, std::vector<Axis> coordinates,
             std::vector<std::vector<Cell>> cells) {
            std::visit([&](auto& f) { f.join(feature, std::move(coordinates), std::move(cells)); },
                       self);
          },
          nb::arg("feature"), nb::arg("coordinates"), nb::arg("cells"),
          "Make an axis a joint one, before anything else is made of the forest.");

  nb::class_<Axis>(module, "Axis", "An axis of cells, a coordinate of a joint one.")
      .def(
          "__init__",
          [](Axis* self, Cell n_cells, Cell missing_cell, bool ordered,
             std::vector<Cell> positions) {
            if (n_cells < 1 ||
                (!positions.empty() && positions.size() != static_cast<std::size_t>(n_cells))) {
              throw std::invalid_argument("an axis needs cells, and a position for each or none");
            }
            new (self) Axis{n_cells, missing_cell, ordered, true, std::move(positions)};
          },
          nb::arg("n_cells"), nb::arg("missing_cell"), nb::arg("ordered"), nb::arg("positions"));

  nb::class_<MaskSpace>(module, "MaskSpace", "One cell per sensitive feature, and distances.")
      .def(
          "__init__",
          [](MaskSpace* self, const AnyForest& forest, std::vector<Feature> sensitive,
             std::optional<std::int64_t> distance) {
            new (self) MaskSpace(topology_of(forest), std::move(sensitive), distance);
          },
          nb::arg("forest"), nb::arg("sensitive"), nb::arg("distance").none())
      .def("__len__", &MaskSpace::size)
      .def(
          "cells",
          [](const MaskSpace& self, MaskIndex mask) {
            check_mask(self, mask);
            return self.cells(mask);
          },
          nb::arg("mask"))
      .def(
          "distance",
          [](const MaskSpace& self, MaskIndex a, MaskIndex b) {
            check_pairs(self, {{a, b}});
            return self.distance(a, b);
          },
          nb::arg("a"), nb::arg("b"))
      .def(
          "neighbours",
          [](const MaskSpace& self, MaskIndex mask) {
            check_mask(self, mask);
            return self.neighbours(mask);
          },
          nb::arg("mask"));
}

}  // namespace xcount::python
