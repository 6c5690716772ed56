#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <cstring>
#include <tuple>
#include <utility>

#include "change_binding.hpp"
#include "forest_binding.hpp"
#include "stopping_binding.hpp"
#include "xcount/sampling/sampler.hpp"

namespace xcount::python {

namespace {

using AnySampler = std::variant<Sampler<std::int64_t>, Sampler<Int128>, Sampler<Int2304>>;

using Pairs = nb::ndarray<const std::int64_t, nb::shape<-1, 2>, nb::c_contig, nb::device::cpu>;

MaskQuestion make_question(const MaskSpace& masks, const Array<std::int64_t>& unresolved,
                           const std::optional<Pairs>& pairs) {
  MaskQuestion question;
  question.unresolved.assign(unresolved.data(), unresolved.data() + unresolved.size());
  if (!pairs) return question;
  question.all_pairs = false;
  for (std::size_t i = 0; i < pairs->shape(0); ++i) {
    const MaskIndex a = (*pairs)(i, 0);
    const MaskIndex b = (*pairs)(i, 1);
    if (a < 0 || b < 0 || a >= masks.size() || b >= masks.size()) {
      throw std::invalid_argument("sampling: a pair names no mask");
    }
    question.pairs.emplace_back(a, b);
  }
  return question;
}

AnySampler make_sampler(const AnyForest& forest, const MaskSpace& masks,
                        const Array<std::uint64_t>& threshold, const MaskQuestion& question,
                        Direction direction) {
  return std::visit(
      [&]<class Value>(const Forest<Value>& f) -> AnySampler {
        return Sampler<Value>(f, masks, value_of<Value>(threshold), question, direction);
      },
      forest);
}

template <class T>
using NumpyArray = nb::ndarray<nb::numpy, T, nb::ndim<1>>;

std::pair<NumpyArray<std::uint64_t>, NumpyArray<std::uint8_t>> draw_masks(
    const AnySampler& self, std::uint64_t seed, std::uint64_t stream, std::uint64_t first,
    std::uint64_t n, unsigned n_threads, double seconds, const nb::object& on_pause,
    const OverlappingBoxes* boxes) {
  Outcomes outcomes = stoppable(seconds, on_pause, [&](Stop& stop) {
    return std::visit(
        [&](const auto& s) { return s.draw(seed, stream, first, n, n_threads, stop, boxes); },
        self);
  });
  return {to_numpy(std::move(outcomes.histogram)), to_numpy(std::move(outcomes.hits))};
}

// value * 2^exponent, rounded.
template <class Value>
double rounded(const Value& value, int exponent) {
  const bool negative = value < Value(0);
  const double size = ValueTraits<Value>::scaled(negative ? Value(-value) : value, exponent);
  return negative ? -size : size;
}

// Numbers times 2 ** exponent and rounded to floats, and in limbs.
using Numbers = std::pair<NumpyArray<double>, NumpyArray<std::uint64_t>>;

template <class Value>
Numbers to_numbers(const std::vector<Value>& values, int exponent) {
  std::vector<double> floats(values.size());
  std::vector<std::uint64_t> limbs(values.size() * ValueTraits<Value>::kLimbs);
  std::memcpy(limbs.data(), values.data(), limbs.size() * sizeof(limbs[0]));
  for (std::size_t i = 0; i < values.size(); ++i) floats[i] = rounded(values[i], exponent);
  return {to_numpy(std::move(floats)), to_numpy(std::move(limbs))};
}

Numbers differences(const AnySampler& self, const Array<std::int32_t>& regions, int exponent) {
  return std::visit(
      [&](const auto& sampler) {
        return to_numbers(without_lock([&] { return sampler.differences(span_of(regions)); }),
                          exponent);
      },
      self);
}

std::tuple<Numbers, Numbers, NumpyArray<std::uint64_t>> swings(const AnySampler& self,
                                                               const Array<std::int32_t>& regions,
                                                               const Array<std::int64_t>& masks,
                                                               int exponent) {
  return std::visit(
      [&](const auto& sampler) {
        auto found = without_lock([&] { return sampler.swings(span_of(regions), span_of(masks)); });
        return std::make_tuple(to_numbers(found.up, exponent), to_numbers(found.down, exponent),
                               to_numpy(std::move(found.highest)));
      },
      self);
}

}  // namespace

void bind_sampling(nb::module_& module) {
  nb::class_<OverlappingBoxes>(module, "OverlappingBoxes", "Boxes of cells to draw from.")
      .def_prop_ro("n_boxes", &OverlappingBoxes::size)
      .def_prop_ro("n_bytes", &OverlappingBoxes::bytes)
      .def_prop_ro(
          "total", [](const OverlappingBoxes& self) { return static_cast<double>(self.total()); },
          "The sum over the boxes of their share of all combinations, times their masks.");

  nb::class_<AnySampler>(module, "Sampler", "Draws regions and decides all masks of each at once.")
      .def(
          "__init__",
          [](AnySampler* self, const AnyForest& forest, const MaskSpace& masks,
             const Array<std::uint64_t>& threshold, const Array<std::int64_t>& unresolved,
             const std::optional<Pairs>& pairs, const std::string& direction) {
            check_fits(forest, masks);
            const MaskQuestion question = make_question(masks, unresolved, pairs);
            new (self) AnySampler(
                make_sampler(forest, masks, threshold, question, direction_of(direction)));
          },
          nb::arg("forest"), nb::arg("masks"), nb::arg("threshold"), nb::arg("unresolved"),
          nb::arg("pairs").none() = nb::none(), nb::arg("direction") = "any")
      .def_prop_ro(
          "n_trees",
          [](const AnySampler& self) {
            return std::visit([](const auto& s) { return s.n_trees(); }, self);
          },
          "Number of trees with a sensitive test.")
      .def_prop_ro(
          "n_masks",
          [](const AnySampler& self) {
            return std::visit([](const auto& s) { return s.n_masks(); }, self);
          },
          "Number of masks that a sample evaluates.")
      .def_prop_ro(
          "levels",
          [](const AnySampler& self) {
            return std::visit([](const auto& s) { return s.levels(); }, self);
          },
          "Outcomes are multiples of 1 / levels.")
      .def_prop_ro_static(
          "batch", [](const nb::object&) { return Sampler<std::int64_t>::kBatch; },
          "Samples per batch.")
      .def("draw", &draw_masks, nb::arg("seed"), nb::arg("stream"), nb::arg("first"), nb::arg("n"),
           nb::arg("n_threads"), nb::arg("seconds") = std::numeric_limits<double>::infinity(),
           nb::arg("on_pause").none() = nb::none(), nb::arg("boxes").none() = nb::none(),
           "Histogram of the outcomes of n batches, and the hits of their samples in order; empty\n"
           "ones if that takes too long. on_pause is called a few times a second; what it raises,\n"
           "and Ctrl-C, end the drawing. With boxes, combinations are drawn from these, and\n"
           "outcomes are divided by the boxes' masks around them.")
      .def_prop_ro_static(
          "box_levels", [](const nb::object&) { return Sampler<std::int64_t>::kBoxLevels; },
          "Outcomes of draws from boxes are multiples of 1 / box_levels.")
      .def(
          "decide",
          [](const AnySampler& self, const Array<std::int32_t>& regions) {
            return to_numpy(without_lock([&] {
              return std::visit([&](const auto& s) { return s.decide(span_of(regions)); }, self);
            }));
          },
          nb::arg("regions"), "Flags of the sensitive masks at given regions, row after row.")
      .def("swings", &swings, nb::arg("regions"), nb::arg("masks"), nb::arg("exponent") = 0,
           "How far given regions with these masks can rise and fall, to any other mask: times\n"
           "2 ** exponent and rounded to floats, and in limbs; and for each mask, how many of\n"
           "their rows it has the highest sum of.")
      .def("differences", &differences, nb::arg("regions"), nb::arg("exponent") = 0,
           "W(b) - W(a) of the sampler's pairs (a, b) at given regions, row after row: times\n"
           "2 ** exponent and rounded to floats, and in limbs.");
}

}  // namespace xcount::python
