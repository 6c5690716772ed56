#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "change_binding.hpp"
#include "forest_binding.hpp"
#include "stopping_binding.hpp"
#include "xcount/sampling/region_sampler.hpp"

namespace xcount::python {

namespace {

using AnyRegionSampler =
    std::variant<RegionSampler<std::int64_t>, RegionSampler<Int128>, RegionSampler<Int2304>>;

AnyRegionSampler make_sampler(const AnyForest& forest, std::vector<Feature> sensitive,
                              std::optional<std::int64_t> distance,
                              const Array<std::uint64_t>& threshold,
                              std::optional<std::uint64_t> budget, Direction direction) {
  return std::visit(
      [&]<class Value>(const Forest<Value>& f) -> AnyRegionSampler {
        return RegionSampler<Value>(f, std::move(sensitive), distance, value_of<Value>(threshold),
                                    budget.value_or(RegionSampler<Value>::kDefaultBudget),
                                    direction);
      },
      forest);
}

// Histogram and hits; with open masks also those that count them as sensitive.
nb::tuple draw_regions(const AnyRegionSampler& self, std::uint64_t seed, std::uint64_t stream,
                       std::uint64_t first, std::uint64_t n, unsigned n_threads, double seconds,
                       const nb::object& on_pause) {
  RegionOutcomes found = stoppable(seconds, on_pause, [&](Stop& stop) {
    return std::visit(
        [&](const auto& s) { return s.draw(seed, stream, first, n, n_threads, stop); }, self);
  });
  auto histogram = to_numpy(std::move(found.outcomes.histogram));
  auto hits = to_numpy(std::move(found.outcomes.hits));
  if (found.n_open == 0) return nb::make_tuple(std::move(histogram), std::move(hits));
  return nb::make_tuple(std::move(histogram), std::move(hits),
                        to_numpy(std::move(found.upper.histogram)),
                        to_numpy(std::move(found.upper.hits)));
}

}  // namespace

void bind_regions(nb::module_& module) {
  nb::class_<AnyRegionSampler>(module, "RegionSampler",
                               "Draws single regions and decides each among the masks near it.")
      .def(
          "__init__",
          [](AnyRegionSampler* self, const AnyForest& forest, std::vector<Feature> sensitive,
             std::optional<std::int64_t> distance, const Array<std::uint64_t>& threshold,
             std::optional<std::uint64_t> budget, const std::string& direction) {
            new (self) AnyRegionSampler(make_sampler(forest, std::move(sensitive), distance,
                                                     threshold, budget, direction_of(direction)));
          },
          nb::arg("forest"), nb::arg("sensitive"), nb::arg("distance").none(), nb::arg("threshold"),
          nb::arg("budget").none() = nb::none(), nb::arg("direction") = "any")
      .def_prop_ro(
          "n_trees",
          [](const AnyRegionSampler& self) {
            return std::visit([](const auto& s) { return s.n_trees(); }, self);
          },
          "Number of trees with a sensitive test.")
      .def_prop_ro(
          "levels",
          [](const AnyRegionSampler& self) {
            return std::visit([](const auto& s) { return s.levels(); }, self);
          },
          "Outcomes are multiples of 1 / levels.")
      .def("draw", &draw_regions,
           nb::sig(
               "def draw(self, seed: int, stream: int, first: int, n: int, "
               "n_threads: int, seconds: float = float('inf'), on_pause: object | None = None) -> "
               "tuple[numpy.typing.NDArray[typing.Any], ...]"),
           nb::arg("seed"), nb::arg("stream"), nb::arg("first"), nb::arg("n"), nb::arg("n_threads"),
           nb::arg("seconds") = std::numeric_limits<double>::infinity(),
           nb::arg("on_pause").none() = nb::none(),
           "Histogram of the outcomes of n batches, and the hits of their samples in order; empty\n"
           "ones if that takes too long. If searches were given up, also both with their masks\n"
           "counted as sensitive. on_pause is called a few times a second; what it raises, and\n"
           "Ctrl-C, end the drawing.")
      .def(
          "decide",
          [](const AnyRegionSampler& self, const Array<std::int32_t>& regions) {
            return to_numpy(
                std::visit([&](const auto& s) { return s.decide(span_of(regions)); }, self));
          },
          nb::arg("regions"), "Answers for given regions: 0 open, 1 sensitive, 2 not.");
}

}  // namespace xcount::python
