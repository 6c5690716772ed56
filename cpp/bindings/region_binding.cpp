#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include "change_binding.hpp"
#include "forest_binding.hpp"
#include "sequences.hpp"
#include "stopping_binding.hpp"
#include "xcount/sampling/region_sampler.hpp"

namespace xcount::python {

namespace {

using AnyRegionSampler =
    std::variant<RegionSampler<std::int64_t>, RegionSampler<Int128>, RegionSampler<Int2304>>;

AnyRegionSampler make_sampler(const std::vector<const AnyForest*>& forests,
                              const std::vector<Array<std::uint64_t>>& bases,
                              std::vector<Feature> sensitive, std::optional<std::int64_t> distance,
                              const PyChange& change, std::optional<std::uint64_t> budget,
                              const std::optional<ProbabilityLink>& link) {
  if (forests.empty()) throw std::invalid_argument("a sampler needs a forest");
  return std::visit(
      [&]<class Value>(const Forest<Value>&) -> AnyRegionSampler {
        RegionQuestion<Value> question;
        question.forests = forests_of<Value>(forests);
        for (const auto& limbs : bases) question.bases.push_back(value_of<Value>(limbs));
        question.sensitive = std::move(sensitive);
        question.distance = distance;
        question.change = change_of<Value>(change);
        question.link = link.value_or(ProbabilityLink{});
        return RegionSampler<Value>(question,
                                    budget.value_or(RegionSampler<Value>::kDefaultBudget));
      },
      *forests[0]);
}

template <class Value>
std::vector<Tolerance<Value>> tolerances_of(const std::optional<Limbs>& low,
                                            const std::optional<Limbs>& high) {
  std::vector<Tolerance<Value>> found;
  if (!low || !high) return found;
  constexpr std::size_t kLimbs = ValueTraits<Value>::kLimbs;
  if (low->shape(0) != high->shape(0) || low->shape(1) != kLimbs || high->shape(1) != kLimbs) {
    throw std::invalid_argument("the ends of tolerances have the width of the forests");
  }
  const auto at = [](const Limbs& ends, std::size_t i) {
    return ValueTraits<Value>::from_limbs({ends.data() + i * kLimbs, kLimbs});
  };
  for (std::size_t i = 0; i < low->shape(0); ++i) {
    found.push_back(Tolerance<Value>::exactly(at(*low, i), at(*high, i)));
  }
  return found;
}

// Sums as little-endian bytes.
nb::bytes sums_of(const AnyRegionSampler& self, const Array<std::int32_t>& regions) {
  return std::visit(
      [&](const auto& sampler) {
        const auto found = sampler.sums(span_of(regions));
        return nb::bytes(found.data(), found.size() * sizeof(found[0]));
      },
      self);
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
          [](AnyRegionSampler* self, const std::vector<const AnyForest*>& forests,
             const std::vector<Array<std::uint64_t>>& bases, std::vector<Feature> sensitive,
             std::optional<std::int64_t> distance, const PyChange& change,
             std::optional<std::uint64_t> budget, const std::optional<ProbabilityLink>& link) {
            new (self) AnyRegionSampler(
                make_sampler(forests, bases, std::move(sensitive), distance, change, budget, link));
          },
          nb::arg("forests"), nb::arg("bases"), nb::arg("sensitive"), nb::arg("distance").none(),
          nb::arg("change"), nb::arg("budget").none() = nb::none(),
          nb::arg("link").none() = nb::none())
      .def_prop_ro(
          "n_trees",
          [](const AnyRegionSampler& self) {
            return std::visit([](const auto& s) { return s.n_trees(); }, self);
          },
          "Number of trees that take part; none where none tells masks apart.")
      .def_prop_ro(
          "levels",
          [](const AnyRegionSampler& self) {
            return std::visit([](const auto& s) { return s.levels(); }, self);
          },
          "Outcomes are multiples of 1 / levels.")
      .def_prop_rw(
          "budget",
          [](const AnyRegionSampler& self) {
            return std::visit([](const auto& s) { return s.budget(); }, self);
          },
          [](AnyRegionSampler& self, std::uint64_t budget) {
            std::visit([&](auto& s) { s.set_budget(budget); }, self);
          },
          "Nodes that the search for one combination of cells may look at.")
      .def(
          "draw", &draw_regions,
          nb::sig(
              "def draw(self, seed: int, stream: int, first: int, n: int, "
              "n_threads: int, seconds: float = float('inf'), on_pause: object | None = None) -> "
              "tuple[numpy.typing.NDArray[typing.Any], ...]"),
          nb::arg("seed"), nb::arg("stream"), nb::arg("first"), nb::arg("n"), nb::arg("n_threads"),
          nb::arg("seconds") = std::numeric_limits<double>::infinity(),
          nb::arg("on_pause").none() = nb::none(),
          "Histogram of the outcomes of n batches, and the hits of their samples in order; of the\n"
          "first samples alone if that takes too long, and empty ones before the first. If "
          "searches were given up, also both with their masks\n"
          "counted as sensitive. on_pause is called a few times a second; what it raises, and\n"
          "Ctrl-C, end the drawing.")
      .def(
          "try_budget",
          [](const AnyRegionSampler& self, std::uint64_t budget, std::uint64_t seed,
             std::uint64_t stream, std::uint64_t n, unsigned n_threads, double seconds,
             const nb::object& on_pause) {
            return stoppable(seconds, on_pause, [&](Stop& stop) {
              return std::visit(
                  [&](const auto& s) {
                    const auto trial = s.try_budget(budget, seed, stream, n, n_threads, stop);
                    return std::tuple(trial.n_samples, trial.n_open, trial.n_nodes);
                  },
                  self);
            });
          },
          nb::arg("budget"), nb::arg("seed"), nb::arg("stream"), nb::arg("n"), nb::arg("n_threads"),
          nb::arg("seconds") = std::numeric_limits<double>::infinity(),
          nb::arg("on_pause").none() = nb::none(),
          "Of the first n samples of a stream, searched with this budget: how many are done in\n"
          "time, how many of their masks are left open, and how many nodes that took.")
      .def(
          "decide",
          [](const AnyRegionSampler& self, const Array<std::int32_t>& regions,
             const std::optional<Limbs>& low, const std::optional<Limbs>& high, double seconds,
             const nb::object& on_pause) {
            return to_numpy(stoppable(seconds, on_pause, [&](Stop& stop) {
              return std::visit(
                  [&]<class Value>(const RegionSampler<Value>& sampler) {
                    return sampler.decide(span_of(regions), stop, tolerances_of<Value>(low, high));
                  },
                  self);
            }));
          },
          nb::arg("regions"), nb::arg("low").none() = nb::none(),
          nb::arg("high").none() = nb::none(),
          nb::arg("seconds") = std::numeric_limits<double>::infinity(),
          nb::arg("on_pause").none() = nb::none(),
          "Answers for given regions: 0 open, 1 sensitive, 2 not; of the first ones alone if that\n"
          "takes too long. low, high: for each region the\n"
          "least and the largest sum that a neighbour may have, in limbs; else as the change says.")
      .def(
          "partner",
          [](const AnyRegionSampler& self, const Array<std::int32_t>& region,
             const std::optional<Limbs>& low, const std::optional<Limbs>& high, double seconds,
             const nb::object& on_pause) {
            return stoppable(seconds, on_pause, [&](Stop& stop) {
              return std::visit(
                  [&]<class Value>(const RegionSampler<Value>& sampler) {
                    return sampler.partner(span_of(region), stop, tolerances_of<Value>(low, high));
                  },
                  self);
            });
          },
          nb::arg("region"), nb::arg("low").none() = nb::none(),
          nb::arg("high").none() = nb::none(),
          nb::arg("seconds") = std::numeric_limits<double>::infinity(),
          nb::arg("on_pause").none() = nb::none(),
          "The cells of the nearest mask that differs from the region's own; none if none does.")
      .def("sums", &sums_of, nb::arg("regions"),
           "The sums of given regions, region after region, in little-endian bytes.");
}

}  // namespace xcount::python
