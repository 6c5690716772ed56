#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <cmath>

#include "forest_binding.hpp"
#include "stopping_binding.hpp"
#include "xcount/sampling/cover.hpp"

namespace xcount::python {

namespace {

using AnyCover = std::variant<Cover<std::int64_t>, Cover<Int128>, Cover<Int2304>>;
using PyCoverTask = std::pair<std::vector<std::pair<MaskIndex, MaskIndex>>, std::uint32_t>;

std::vector<CoverTask> to_tasks(const MaskSpace& masks, const std::vector<PyCoverTask>& tasks) {
  std::vector<CoverTask> result;
  for (const auto& [pairs, multiplicity] : tasks) {
    check_pairs(masks, pairs);
    result.push_back({pairs, multiplicity});
  }
  return result;
}

AnyCover make_cover(const AnyForest& forest, const MaskSpace& masks,
                    const Array<std::uint64_t>& threshold, const std::vector<CoverTask>& tasks) {
  const auto check = [] {
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  };
  return std::visit(
      [&]<class Value>(const Forest<Value>& f) -> AnyCover {
        return Cover<Value>(f, masks, value_of<Value>(threshold), tasks, check);
      },
      forest);
}

// A volume as mantissa * 2^exponent: its range is beyond that of a Python float.
std::pair<double, int> parts(Volume volume) {
  int exponent = 0;
  const Volume mantissa = std::frexp(volume, &exponent);
  return {static_cast<double>(mantissa), exponent};
}

template <class T>
using NumpyArray = nb::ndarray<nb::numpy, T, nb::ndim<1>>;

std::pair<NumpyArray<std::uint64_t>, NumpyArray<std::uint8_t>> draw_from_cover(
    const AnyCover& self, std::uint64_t seed, std::uint64_t stream, std::uint64_t first,
    std::uint64_t n, unsigned n_threads, double seconds, const nb::object& on_pause) {
  Outcomes outcomes = stoppable(seconds, on_pause, [&](Stop& stop) {
    return std::visit(
        [&](const auto& c) { return c.draw(seed, stream, first, n, n_threads, stop); }, self);
  });
  return {to_numpy(std::move(outcomes.histogram)), to_numpy(std::move(outcomes.hits))};
}

}  // namespace

void bind_cover(nb::module_& module) {
  nb::class_<AnyCover>(module, "Cover", "Best-first elimination, stopped early and sampled.")
      .def(
          "__init__",
          [](AnyCover* self, const AnyForest& forest, const MaskSpace& masks,
             const Array<std::uint64_t>& threshold, const std::vector<PyCoverTask>& tasks) {
            check_fits(forest, masks);
            new (self) AnyCover(make_cover(forest, masks, threshold, to_tasks(masks, tasks)));
          },
          nb::arg("forest"), nb::arg("masks"), nb::arg("threshold"), nb::arg("tasks"),
          nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>())
      .def(
          "refine",
          [](AnyCover& self, std::uint64_t work, double max_seconds, unsigned n_threads) {
            nb::gil_scoped_release release;
            std::visit([&](auto& c) { c.refine(work, max_seconds, n_threads); }, self);
          },
          nb::arg("work"), nb::arg("max_seconds"), nb::arg("n_threads"),
          "Expand states until that much work is done or the time is up.")
      .def(
          "freeze", [](AnyCover& self) { std::visit([](auto& c) { c.freeze(); }, self); },
          "Fix the frontier as what is drawn from.")
      .def("draw", &draw_from_cover, nb::arg("seed"), nb::arg("stream"), nb::arg("first"),
           nb::arg("n"), nb::arg("n_threads"),
           nb::arg("seconds") = std::numeric_limits<double>::infinity(),
           nb::arg("on_pause").none() = nb::none(),
           "Histogram of the outcomes of n batches, and the hits of their samples in order; empty\n"
           "ones if that takes too long. on_pause is called a few times a second; what it raises,\n"
           "and Ctrl-C, end the drawing.")
      .def_prop_ro(
          "solved",
          [](const AnyCover& self) {
            return parts(std::visit([](const auto& c) { return c.solved(); }, self));
          },
          "Volume that surely solves, as (mantissa, exponent of 2); 1 is one whole mask.")
      .def_prop_ro(
          "open",
          [](const AnyCover& self) {
            return parts(std::visit([](const auto& c) { return c.open(); }, self));
          },
          "Volume of the frontier, as (mantissa, exponent of 2).")
      .def_prop_ro("n_expanded",
                   [](const AnyCover& self) {
                     return std::visit([](const auto& c) { return c.n_expanded(); }, self);
                   })
      .def_prop_ro(
          "work",
          [](const AnyCover& self) {
            return std::visit([](const auto& c) { return c.work(); }, self);
          },
          "Residuals looked at so far.")
      .def_prop_ro("n_bytes",
                   [](const AnyCover& self) {
                     return std::visit([](const auto& c) { return c.bytes(); }, self);
                   })
      .def_prop_ro(
          "n_trees",
          [](const AnyCover& self) {
            return std::visit([](const auto& c) { return c.mean_residuals(); }, self);
          },
          "Residual trees that a sample evaluates, on average.")
      .def_prop_ro(
          "seconds_per_sample",
          [](const AnyCover& self) {
            return std::visit([](const auto& c) { return c.seconds_per_sample(); }, self);
          },
          "What a sample costs, roughly; the same on every machine.")
      .def_prop_ro("levels", [](const AnyCover&) { return 1; })
      .def_prop_ro_static(
          "batch", [](const nb::object&) { return Sampler<std::int64_t>::kBatch; },
          "Samples per batch.");
}

}  // namespace xcount::python
