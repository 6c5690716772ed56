#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <variant>

#include "change_binding.hpp"
#include "forest_binding.hpp"
#include "stopping_binding.hpp"
#include "xcount/sampling/overlapping_boxes.hpp"
#include "xcount/worst/pair_cover.hpp"

namespace xcount::python {

namespace {

using AnyPairCover =
    std::variant<std::unique_ptr<PairCover<std::int64_t>>, std::unique_ptr<PairCover<Int128>>,
                 std::unique_ptr<PairCover<Int2304>>>;

AnyPairCover make_cover(const AnyForest& forest, const std::vector<Feature>& sensitive,
                        std::optional<std::int64_t> distance, const Array<std::uint64_t>& threshold,
                        Direction direction) {
  const Topology& topology = topology_of(forest);
  for (const Feature feature : sensitive) {
    if (feature < 0 || static_cast<std::size_t>(feature) >= topology.axes.size()) {
      throw std::invalid_argument("pair cover: a sensitive feature is out of range");
    }
  }
  return std::visit(
      [&]<class Value>(const Forest<Value>& f) -> AnyPairCover {
        return std::make_unique<PairCover<Value>>(f, sensitive, distance,
                                                  value_of<Value>(threshold), direction);
      },
      forest);
}

OverlappingBoxes boxes_of(const AnyPairCover& cover) {
  return std::visit(
      [](const auto& own) {
        auto found = own->projection();
        std::vector<OverlappingBoxes::Axis> axes;
        for (const auto& axis : found.axes) axes.push_back({axis.feature, axis.n_cells});
        return OverlappingBoxes(std::move(axes), std::move(found.runs), std::move(found.n_masks));
      },
      cover);
}

template <class Get>
auto visited(const AnyPairCover& cover, const Get& get) {
  return std::visit([&](const auto& own) { return get(*own); }, cover);
}

}  // namespace

void bind_pair_cover(nb::module_& module) {
  nb::class_<AnyPairCover>(module, "PairCover",
                           "Boxes of pairs that hold all whose change is more than a threshold.")
      .def(
          "__init__",
          [](AnyPairCover* self, const AnyForest& forest, const std::vector<Feature>& sensitive,
             std::optional<std::int64_t> distance, const Array<std::uint64_t>& threshold,
             const std::string& direction) {
            AnyPairCover cover;
            {
              const Direction counted = direction_of(direction);
              const nb::gil_scoped_release release;
              cover = make_cover(forest, sensitive, distance, threshold, counted);
            }
            new (self) AnyPairCover(std::move(cover));
          },
          nb::arg("forest"), nb::arg("sensitive"), nb::arg("distance").none(), nb::arg("threshold"),
          nb::arg("direction"), nb::keep_alive<1, 2>())
      .def(
          "refine",
          [](AnyPairCover& self, std::uint64_t work, unsigned n_threads, std::size_t max_bytes,
             double seconds, const nb::object& on_pause) {
            stoppable(seconds, on_pause, [&](Stop& stop) {
              std::visit([&](auto& own) { own->refine(work, n_threads, max_bytes, stop); }, self);
              return true;
            });
          },
          nb::arg("work"), nb::arg("n_threads"), nb::arg("max_bytes"),
          nb::arg("seconds") = std::numeric_limits<double>::infinity(),
          nb::arg("on_pause").none() = nb::none(),
          "Split boxes until so much work is done in all, a limit is reached, or none is open.")
      .def("boxes", &boxes_of, "The boxes as combinations of cells and numbers of masks.")
      .def_prop_ro("n_open",
                   [](const AnyPairCover& self) {
                     return visited(self, [](const auto& own) { return own.n_open(); });
                   })
      .def_prop_ro(
          "is_full",
          [](const AnyPairCover& self) {
            return visited(self, [](const auto& own) { return own.is_full(); });
          },
          "Whether the last refinement ended because there was no more room.")
      .def_prop_ro(
          "work",
          [](const AnyPairCover& self) {
            return visited(self, [](const auto& own) { return own.work(); });
          },
          "Leaves looked at so far.")
      .def_prop_ro("n_bytes", [](const AnyPairCover& self) {
        return visited(self, [](const auto& own) { return own.bytes(); });
      });
}

}  // namespace xcount::python
