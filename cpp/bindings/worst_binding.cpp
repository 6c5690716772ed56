#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <bit>
#include <cstring>

#include "forest_binding.hpp"
#include "stopping_binding.hpp"
#include "xcount/worst/pair_search.hpp"

namespace xcount::python {

namespace {

using Run = std::pair<Cell, Cell>;
using Cells = std::vector<Cell>;

// A search of any width of values, behind one interface.
class AnySearch {
 public:
  virtual ~AnySearch() = default;
  virtual void advance(std::uint64_t max_boxes, unsigned n_threads, std::size_t max_bytes,
                       bool until_found, Stop& stop) = 0;
  [[nodiscard]] virtual std::optional<std::pair<Cells, Cells>> pair() const = 0;
  [[nodiscard]] virtual nb::object difference() const = 0;
  [[nodiscard]] virtual nb::object high() const = 0;
  [[nodiscard]] virtual nb::object low() const = 0;
  [[nodiscard]] virtual bool is_done() const = 0;
  [[nodiscard]] virtual bool is_full() const = 0;
  [[nodiscard]] virtual std::uint64_t n_boxes() const = 0;
  [[nodiscard]] virtual std::size_t n_open() const = 0;
};

static_assert(std::endian::native == std::endian::little);

// The Python int of a value of any width.
template <class Value>
nb::object to_python(const Value& value) {
  const nb::bytes data(&value, sizeof(Value));
  return nb::module_::import_("builtins")
      .attr("int")
      .attr("from_bytes")(data, "little", nb::arg("signed") = true);
}

template <class Value, class Objective>
class TypedSearch : public AnySearch {
 public:
  template <class... Args>
  explicit TypedSearch(Args&&... args) : search_(std::forward<Args>(args)...) {}

  void advance(std::uint64_t max_boxes, unsigned n_threads, std::size_t max_bytes, bool until_found,
               Stop& stop) override {
    search_.advance(max_boxes, n_threads, max_bytes, until_found, stop);
  }
  [[nodiscard]] std::optional<std::pair<Cells, Cells>> pair() const override {
    if (!search_.pair()) return std::nullopt;
    return std::pair{search_.pair()->start, search_.pair()->target};
  }
  [[nodiscard]] nb::object difference() const override { return to_python(search_.difference()); }
  [[nodiscard]] nb::object low() const override {
    if constexpr (Objective::kSums > 1) {
      return nb::float_(search_.low());
    } else {
      return difference();
    }
  }
  [[nodiscard]] nb::object high() const override {
    if (search_.is_done()) return low();
    if constexpr (Objective::kSums > 1) {
      return nb::float_(search_.high());
    } else {
      return nb::int_(search_.high()).attr("__lshift__")(search_.shift());
    }
  }
  [[nodiscard]] bool is_done() const override { return search_.is_done(); }
  [[nodiscard]] bool is_full() const override { return search_.is_full(); }
  [[nodiscard]] std::uint64_t n_boxes() const override { return search_.n_boxes(); }
  [[nodiscard]] std::size_t n_open() const override { return search_.n_open(); }

 private:
  PairSearch<Value, Objective> search_;
};

std::vector<PairBox> to_boxes(const std::vector<std::vector<Run>>& roots) {
  std::vector<PairBox> boxes;
  for (const auto& runs : roots) {
    PairBox& box = boxes.emplace_back();
    for (const auto& [low, high] : runs) box.push_back({low, high});
  }
  return boxes;
}

// The exponent of one unit of a sum as (mantissa, power of two), that of a sum of 0, and the change
// of the probability up to which changes do not count.
using Sigmoid = std::tuple<std::pair<double, int>, double, double>;

std::unique_ptr<AnySearch> make_search(const AnyForest& forest,
                                       const std::vector<Feature>& sensitive,
                                       std::optional<std::int64_t> distance,
                                       const std::vector<std::vector<Run>>& roots,
                                       const Array<std::uint64_t>& floor,
                                       const std::optional<Sigmoid>& sigmoid, std::uint64_t seed) {
  const Topology& topology = topology_of(forest);
  for (const Feature feature : sensitive) {
    if (feature < 0 || static_cast<std::size_t>(feature) >= topology.axes.size()) {
      throw std::invalid_argument("largest change: a sensitive feature is out of range");
    }
  }
  if (sensitive.empty()) throw std::invalid_argument("largest change: no sensitive feature");
  return std::visit(
      [&]<class Value>(const Forest<Value>& f) -> std::unique_ptr<AnySearch> {
        const std::vector<PairBox> boxes = to_boxes(roots);
        const Value least = value_of<Value>(floor);
        if (sigmoid) {
          const auto& [unit, base, least_change] = *sigmoid;
          const ProbabilityObjective objective{unit.first, unit.second, base, least_change};
          return std::make_unique<TypedSearch<Value, ProbabilityObjective>>(
              f, sensitive, distance, objective, boxes, least, seed);
        }
        return std::make_unique<TypedSearch<Value, MarginObjective>>(
            f, sensitive, distance, MarginObjective{}, boxes, least, seed);
      },
      forest);
}

// Python's handle of a search.
struct LargestChange {
  std::unique_ptr<AnySearch> search;
};

}  // namespace

void bind_worst(nb::module_& module) {
  nb::class_<LargestChange>(module, "LargestChange",
                            "Best-first search for the largest change of a sum or a probability.")
      .def(
          "__init__",
          [](LargestChange* self, const AnyForest& forest, const std::vector<Feature>& sensitive,
             std::optional<std::int64_t> distance, const std::vector<std::vector<Run>>& roots,
             const Array<std::uint64_t>& floor, const std::optional<Sigmoid>& sigmoid,
             std::uint64_t seed) {
            std::unique_ptr<AnySearch> search;
            {
              const nb::gil_scoped_release release;
              search = make_search(forest, sensitive, distance, roots, floor, sigmoid, seed);
            }
            new (self) LargestChange{std::move(search)};
          },
          nb::arg("forest"), nb::arg("sensitive"), nb::arg("distance").none(), nb::arg("roots"),
          nb::arg("floor"), nb::arg("sigmoid").none() = nb::none(), nb::arg("seed") = 0,
          nb::keep_alive<1, 2>(),
          "A root has the first and the last cell of each sensitive feature at the start and at\n"
          "the target, in turn. Changes up to the floor do not count. sigmoid: the exponent of\n"
          "one unit of a sum, as (mantissa, power of two), that of a sum of 0, and the floor of\n"
          "the probability's change.")
      .def(
          "advance",
          [](LargestChange& self, std::uint64_t max_boxes, unsigned n_threads,
             std::size_t max_bytes, bool until_found, double seconds, const nb::object& on_pause) {
            stoppable(seconds, on_pause, [&](Stop& stop) {
              self.search->advance(max_boxes, n_threads, max_bytes, until_found, stop);
              return true;
            });
          },
          nb::arg("max_boxes"), nb::arg("n_threads"), nb::arg("max_bytes"),
          nb::arg("until_found") = false,
          nb::arg("seconds") = std::numeric_limits<double>::infinity(),
          nb::arg("on_pause").none() = nb::none(),
          "Evaluate boxes until so many are done, a limit is reached, or none is open.")
      .def_prop_ro(
          "pair", [](const LargestChange& self) { return self.search->pair(); },
          "The cells of the best pair, at the start and at the target; None if there is none.")
      .def_prop_ro(
          "difference", [](const LargestChange& self) { return self.search->difference(); },
          nb::sig("def difference(self) -> int"),
          "The difference of the best pair's sums; the floor if there is none.")
      .def_prop_ro(
          "low", [](const LargestChange& self) { return self.search->low(); },
          nb::sig("def low(self) -> float"),
          "A lower bound of the largest change: an int, or a probability.")
      .def_prop_ro(
          "high", [](const LargestChange& self) { return self.search->high(); },
          nb::sig("def high(self) -> float"),
          "An upper bound of the largest change, or of the floor if that is larger.")
      .def_prop_ro("is_done", [](const LargestChange& self) { return self.search->is_done(); })
      .def_prop_ro(
          "is_full", [](const LargestChange& self) { return self.search->is_full(); },
          "Whether the last turn ended because there was no more memory.")
      .def_prop_ro("n_boxes", [](const LargestChange& self) { return self.search->n_boxes(); })
      .def_prop_ro("n_open", [](const LargestChange& self) { return self.search->n_open(); });
}

}  // namespace xcount::python
