#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>

#include "forest_binding.hpp"
#include "sequences.hpp"
#include "stopping_binding.hpp"
#include "xcount/sampling/cover.hpp"

namespace xcount::python {

namespace {

using AnyCover = std::variant<Cover<std::int64_t>, Cover<Int128>, Cover<Int2304>>;
// Pairs, whether all of them must differ, and how often it counts.
using PyCoverTask = std::tuple<std::vector<std::pair<MaskIndex, MaskIndex>>, bool, std::uint32_t>;

std::vector<CoverTask> to_tasks(const MaskSpace& masks, const std::vector<PyCoverTask>& tasks) {
  std::vector<CoverTask> result;
  for (const auto& [pairs, all, multiplicity] : tasks) {
    check_pairs(masks, pairs);
    result.push_back({pairs, multiplicity, all ? Combine::kAll : Combine::kAny});
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

// The counts of each task as (solved, open, total): Python ints.
template <class Value>
nb::list known_counts(const Cover<Value>& cover) {
  nb::list list;
  for (std::size_t i = 0; i < cover.n_tasks(); ++i) {
    const TaskCover<Value>& task = cover.task(i);
    list.append(nb::make_tuple(big_integer(task.solved()), big_integer(task.open()),
                               big_integer(task.total())));
  }
  return list;
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
  nb::class_<AnyCover>(module, "Cover", "The exact counter's search, stopped early and sampled.")
      .def(
          "__init__",
          [](AnyCover* self, const AnyForest& forest, const MaskSpace& masks,
             const Array<std::uint64_t>& threshold, const std::vector<PyCoverTask>& tasks) {
            check_fits(forest, masks);
            new (self) AnyCover(make_cover(forest, masks, threshold, to_tasks(masks, tasks)));
          },
          nb::arg("forest"), nb::arg("masks"), nb::arg("threshold"), nb::arg("tasks"),
          nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>(),
          "Tasks are (pairs of masks, whether all of them must differ rather than any, how often\n"
          "it counts).")
      .def(
          "refine",
          [](AnyCover& self, std::uint64_t work, std::size_t max_bytes, unsigned n_threads,
             std::uint64_t max_paths) {
            nb::gil_scoped_release release;
            std::visit([&](auto& c) { c.refine(work, max_bytes, n_threads, max_paths); }, self);
          },
          nb::arg("work"), nb::arg("max_bytes"), nb::arg("n_threads"),
          nb::arg("max_paths") = kMaxPaths,
          "Split states until that much work is done, or so much memory is held.")
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
      .def(
          "counts",
          [](const AnyCover& self) {
            return std::visit([](const auto& c) { return known_counts(c); }, self);
          },
          nb::sig("def counts(self) -> list[tuple[int, int, int]]"),
          "For each task: combinations of cells that surely solve it, that are open, and all.")
      .def_prop_ro(
          "n_open",
          [](const AnyCover& self) {
            return std::visit([](const auto& c) { return c.n_open(); }, self);
          },
          "States that are open.")
      .def_prop_ro(
          "is_full",
          [](const AnyCover& self) {
            return std::visit([](const auto& c) { return c.is_full(); }, self);
          },
          "Whether the last refinement ended because there was no more memory.")
      .def_prop_ro(
          "work",
          [](const AnyCover& self) {
            return std::visit([](const auto& c) { return c.work(); }, self);
          },
          "Steps so far.")
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
