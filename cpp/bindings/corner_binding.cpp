#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>

#include <limits>
#include <memory>
#include <string>
#include <tuple>

#include "change_binding.hpp"
#include "forest_binding.hpp"
#include "sequences.hpp"
#include "stopping_binding.hpp"
#include "xcount/exact/corner_sums.hpp"

namespace xcount::python {

namespace {

using PyWeights = std::vector<Array<double>>;

template <class T>
using Matrix = nb::ndarray<nb::numpy, T, nb::ndim<2>>;

using Limbs1 = Array<std::uint64_t>;

PyChange make_gap(const Limbs1& threshold, const std::string& direction) {
  return {ChangeForm::kGap, direction_of(direction),
          std::vector(threshold.data(), threshold.data() + threshold.size())};
}

PyChange make_probability(const Limbs1& threshold, const std::string& direction) {
  PyChange change = make_gap(threshold, direction);
  change.form = ChangeForm::kProbability;
  return change;
}

PyChange make_flip(const Limbs1& cutoff, const std::string& direction,
                   const std::optional<Limbs1>& below, const std::optional<Limbs1>& above) {
  PyChange change = make_gap(cutoff, direction);
  change.form = ChangeForm::kFlip;
  if (below) change.sure_below.assign(below->data(), below->data() + below->size());
  if (above) change.sure_above.assign(above->data(), above->data() + above->size());
  return change;
}

PyChange make_sure_largest(const Limbs1& probability, const Limbs1& above) {
  PyChange change = make_gap(probability, "any");
  change.form = ChangeForm::kSureLargest;
  change.sure_above.assign(above.data(), above.data() + above.size());
  return change;
}

std::vector<std::vector<double>> copied(const std::optional<PyWeights>& weights) {
  std::vector<std::vector<double>> result;
  if (!weights) return result;
  for (const Array<double>& w : *weights) result.emplace_back(w.data(), w.data() + w.size());
  return result;
}

// A Python function of (change, sums before, sums after); sums are little-endian bytes.
template <class Value>
ProbabilityJudge<Value> judge_of(const nb::object& callable) {
  if (callable.is_none()) return {};
  const nb::gil_scoped_acquire holding;  // the corners are listed without Python's lock
  // Whoever is the last to hold the function may be a thread without Python's lock.
  const std::shared_ptr<nb::object> held(new nb::object(callable), [](nb::object* object) {
    const nb::gil_scoped_acquire lock;
    delete object;
  });
  return [held](std::size_t change, std::span<const Value> before, std::span<const Value> after) {
    const nb::gil_scoped_acquire lock;
    return nb::cast<bool>((*held)(change, nb::bytes(before.data(), before.size_bytes()),
                                  nb::bytes(after.data(), after.size_bytes())));
  };
}

template <class Value>
std::unique_ptr<CornerSums> make(const std::vector<const AnyForest*>& forests,
                                 const std::vector<Array<std::uint64_t>>& bases,
                                 const MaskSpace& masks, const std::vector<PyChange>& changes,
                                 CornerQuestion<Value> question, Stop& stop) {
  const std::vector<const Forest<Value>*> outputs = forests_of<Value>(forests);
  std::vector<Value> constants;
  std::vector<Change<Value>> asked;
  for (const auto& limbs : bases) constants.push_back(value_of<Value>(limbs));
  for (const PyChange& change : changes) asked.push_back(change_of<Value>(change));
  question.forests = outputs;
  question.bases = constants;
  question.masks = &masks;
  question.changes = asked;
  return make_corner_sums(question, stop);
}

void check_forests(const std::vector<const AnyForest*>& forests, const MaskSpace& masks) {
  if (forests.empty()) throw std::invalid_argument("corner sums need a forest");
  check_fits(*forests[0], masks);
}

std::unique_ptr<CornerSums> make_any(const std::vector<const AnyForest*>& forests,
                                     const std::vector<Array<std::uint64_t>>& bases,
                                     const MaskSpace& masks, const std::vector<PyChange>& changes,
                                     const std::optional<PyWeights>& weights, std::size_t max_bytes,
                                     std::size_t block_bytes, double seconds,
                                     const nb::object& on_pause,
                                     const std::optional<ProbabilityLink>& link,
                                     const nb::object& judge) {
  check_forests(forests, masks);
  const std::vector<std::vector<double>> own = copied(weights);
  auto made = stoppable(seconds, on_pause, [&](Stop& stop) -> std::unique_ptr<CornerSums> {
    try {
      return std::visit(
          [&]<class Value>(const Forest<Value>&) {
            CornerQuestion<Value> question;
            question.weights = own;
            question.max_bytes = max_bytes;
            question.block_bytes = block_bytes;
            question.link = link.value_or(ProbabilityLink{});
            question.judge = judge_of<Value>(judge);
            return make<Value>(forests, bases, masks, changes, std::move(question), stop);
          },
          *forests[0]);
    } catch (const Stopped&) {
      return nullptr;
    }
  });
  if (made != nullptr) return made;
  PyErr_SetString(PyExc_TimeoutError, "the corners were not listed in time");
  throw nb::python_error();
}

template <class T>
Matrix<T> to_matrix(std::vector<T> data, std::size_t n_rows, std::size_t n_columns) {
  auto owner = std::make_unique<std::vector<T>>(std::move(data));
  T* begin = owner->data();
  nb::capsule capsule(owner.release(),
                      [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return Matrix<T>(begin, {n_rows, n_columns}, capsule);
}

// Integers of 128 bits as (low, high) pairs of columns.
Matrix<std::uint64_t> to_limbs(const std::vector<Int128>& values, std::size_t n_rows,
                               std::size_t n_columns) {
  std::vector<std::uint64_t> limbs;
  for (const Int128 value : values) {
    limbs.push_back(static_cast<std::uint64_t>(value));
    limbs.push_back(static_cast<std::uint64_t>(static_cast<UInt128>(value) >> 64));
  }
  return to_matrix(std::move(limbs), n_rows, 2 * n_columns);
}

using PyCounts =
    std::tuple<Matrix<std::uint64_t>, std::optional<Matrix<std::uint64_t>>, std::uint64_t>;

PyCounts count(const CornerSums& self, std::uint64_t first, std::uint64_t end, unsigned n_threads,
               double seconds, const nb::object& on_pause) {
  CornerCounts counts = stoppable(
      seconds, on_pause, [&](Stop& stop) { return self.count(first, end, n_threads, stop); });
  const std::size_t n_rows = self.n_changes();
  std::optional<Matrix<std::uint64_t>> shares;
  if (!counts.shares.empty()) shares = to_limbs(counts.shares, n_rows, self.n_masks());
  return {to_matrix(std::move(counts.counts), n_rows, self.n_masks()), std::move(shares),
          counts.n_finished};
}

CornerCost estimate(const std::vector<const AnyForest*>& forests, const MaskSpace& masks,
                    bool gaps_only, std::size_t lane_bytes) {
  check_forests(forests, masks);
  std::vector<const Topology*> topologies;
  for (const AnyForest* forest : forests) topologies.push_back(&topology_of(*forest));
  const nb::gil_scoped_release release;
  return estimate_corner_cost(topologies, masks, gaps_only, lane_bytes);
}

void bind_change(nb::module_& module) {
  nb::class_<PyChange>(module, "Change",
                       "What makes two regions differ; directions are any, up, down.")
      .def_static("gap", &make_gap, nb::arg("threshold"), nb::arg("direction") = "any",
                  "The sums differ by more than the threshold, given in limbs as leaves are.")
      .def_static("flip", &make_flip, nb::arg("cutoff"), nb::arg("direction") = "any",
                  nb::arg("sure_below").none() = nb::none(),
                  nb::arg("sure_above").none() = nb::none(),
                  "One sum is above the cut-off, the other is not; flips up start at sums up to\n"
                  "sure_below, flips down at those above sure_above (the cut-off unless given).")
      .def_static("probability", &make_probability, nb::arg("threshold"),
                  nb::arg("direction") = "any",
                  "The probability changes by more than threshold / ProbabilityLink.one, rounded\n"
                  "down: what that leaves open, the judge decides.")
      .def_static(
          "largest", [] { return PyChange(ChangeForm::kLargest, Direction::kAny, {}); },
          "Another one of several sums is the largest; of equal ones, the first is.")
      .def_static("sure_largest", &make_sure_largest, nb::arg("probability"), nb::arg("above"),
                  "The same, where the largest is sure enough before: its softmax is at least\n"
                  "probability / ProbabilityLink.one, rounded down (what that leaves open, the\n"
                  "judge decides), or without a softmax its sum is above the one given.");
}

void bind_link(nb::module_& module) {
  nb::class_<ProbabilityLink>(module, "ProbabilityLink", "What makes a probability of sums.")
      .def(
          "__init__",
          [](ProbabilityLink* self, bool softmax, std::size_t output, double unit, int exponent) {
            new (self) ProbabilityLink{softmax, output, unit, exponent};
          },
          nb::arg("softmax"), nb::arg("output"), nb::arg("unit"), nb::arg("exponent"))
      .def_ro_static("one", &kProbabilityOne, "The probability 1 in the integers of thresholds.");
}

void bind_cost(nb::module_& module) {
  nb::class_<CornerCost>(module, "CornerCost", "What corner sums would cost.")
      .def_ro("n_regions", &CornerCost::n_regions, "Those that are visited.")
      .def_ro("n_axes", &CornerCost::n_axes, "Axes with more than one cell.")
      .def_ro("n_corners", &CornerCost::n_corners, "Before equal ones are added up.")
      .def_ro("n_rows", &CornerCost::n_rows, "Rows of sums that are read to decide a region.")
      .def_ro("n_listed", &CornerCost::n_listed, "Corners in lists, at most.")
      .def_ro("n_lanes", &CornerCost::n_lanes, "As n_regions, with lanes that stand empty.")
      .def_ro("column_bytes", &CornerCost::column_bytes, "Of the sums and extremes of a column.")
      .def_prop_ro("work", &CornerCost::work, "Roughly, in additions.");
  module.def("estimate_corner_cost", &estimate, nb::arg("forests"), nb::arg("masks"),
             nb::arg("gaps_only") = false, nb::arg("lane_bytes") = 8,
             "What corner sums would cost, found without making them.");
}

}  // namespace

void bind_corner_sums(nb::module_& module) {
  bind_change(module);
  bind_link(module);
  bind_cost(module);
  nb::class_<CornerSums>(module, "CornerSums",
                         "Exact counting by prefix sums of leaf corners, block by block.")
      .def(nb::new_(&make_any), nb::arg("forests"), nb::arg("bases"), nb::arg("masks"),
           nb::arg("changes"), nb::arg("weights").none() = nb::none(),
           nb::arg("max_bytes") = CornerQuestion<std::int64_t>{}.max_bytes,
           nb::arg("block_bytes") = CornerQuestion<std::int64_t>{}.block_bytes,
           nb::arg("seconds") = std::numeric_limits<double>::infinity(),
           nb::arg("on_pause").none() = nb::none(), nb::arg("link").none() = nb::none(),
           nb::arg("judge").none() = nb::none(),
           "Lists the corners, within max_bytes; TimeoutError after the seconds.")
      .def("count", &count, nb::arg("first"), nb::arg("end"), nb::arg("n_threads"),
           nb::arg("seconds") = std::numeric_limits<double>::infinity(),
           nb::arg("on_pause").none() = nb::none(),
           "Count blocks [first, end): (counts, shares or None, n_finished), arrays by change and\n"
           "mask over the first n_finished blocks. A share is the weight of the non-sensitive "
           "cells\n"
           "that make a mask sensitive, an integer of two limbs in units of share_unit. on_pause "
           "is\n"
           "called a few times a second; what it raises, and Ctrl-C, end the counting.")
      .def("bytes", &CornerSums::bytes, nb::arg("n_threads"), "Memory while counting, at most.")
      .def_prop_ro("n_regions", &CornerSums::n_regions)
      .def_prop_ro("share_unit", &CornerSums::share_unit)
      .def_prop_ro("n_blocks", &CornerSums::n_blocks, "Blocks of the same number of regions each.")
      .def_prop_ro("n_axes", &CornerSums::n_axes, "Axes with more than one cell.")
      .def_prop_ro("n_corners", &CornerSums::n_corners)
      .def_prop_ro("n_bits", &CornerSums::n_bits, "Width of the integers that margins are in.");
}

}  // namespace xcount::python
