#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>

#include <type_traits>

#include "forest_binding.hpp"
#include "sequences.hpp"
#include "stopping_binding.hpp"
#include "xcount/exact/counter.hpp"

namespace xcount::python {

namespace {

template <class Value, class Values>
using CounterPointer = std::unique_ptr<ExactCounter<Value, Values>>;

using AnyExactCounter =
    std::variant<CounterPointer<std::int64_t, CountValues>, CounterPointer<Int128, CountValues>,
                 CounterPointer<Int2304, CountValues>, CounterPointer<std::int64_t, WeightValues>,
                 CounterPointer<Int128, WeightValues>, CounterPointer<Int2304, WeightValues>>;

using Weights = std::optional<std::vector<Array<double>>>;

// Cell weights of every feature -> cumulative weights that end at exactly 1.
WeightValues weight_values(const Topology& forest, const std::vector<Array<double>>& weights) {
  if (weights.size() != forest.axes.size()) {
    throw std::invalid_argument("exact: one array of weights per feature is needed");
  }
  std::vector<std::vector<long double>> cumulative;
  for (std::size_t f = 0; f < weights.size(); ++f) {
    if (weights[f].size() != static_cast<std::size_t>(forest.axes[f].n_cells)) {
      throw std::invalid_argument("exact: one weight per cell is needed");
    }
    std::vector<long double> sums{0.0L};
    for (const double weight : span_of(weights[f])) {
      if (!(weight >= 0.0)) throw std::invalid_argument("exact: weights must not be negative");
      sums.push_back(sums.back() + weight);
    }
    const long double total = sums.back();
    if (!(total > 0.0L)) throw std::invalid_argument("exact: the weights of a feature are all 0");
    for (long double& sum : sums) sum /= total;
    cumulative.push_back(std::move(sums));
  }
  return WeightValues(std::move(cumulative));
}

AnyExactCounter make_counter(const AnyForest& forest, const MaskSpace& masks,
                             const Array<std::uint64_t>& threshold, const Weights& weights) {
  return std::visit(
      [&]<class Value>(const Forest<Value>& f) -> AnyExactCounter {
        const Value limit = value_of<Value>(threshold);
        if (!weights) {
          return std::make_unique<ExactCounter<Value, CountValues>>(f, masks, limit, CountValues{});
        }
        return std::make_unique<ExactCounter<Value, WeightValues>>(f, masks, limit,
                                                                   weight_values(f, *weights));
      },
      forest);
}

// Holds the variant, so that Python sees one class.
struct ExactCounterHandle {
  AnyExactCounter counter;
  const MaskSpace* masks;  // kept alive by Python

  template <class Function>
  decltype(auto) visit(Function function) {
    return std::visit([&](auto& c) -> decltype(auto) { return function(*c); }, counter);
  }
};

const char* status_name(TaskStatus status) {
  switch (status) {
    case TaskStatus::kSolved:
      return "solved";
    case TaskStatus::kSteps:
      return "steps";
    case TaskStatus::kMemory:
      return "memory";
    case TaskStatus::kPending:
    case TaskStatus::kCancelled:
      return "cancelled";
  }
  return "cancelled";
}

nb::object to_python(const CountValues::Number& count) { return big_integer(count); }
nb::object to_python(WeightValues::Number weight) { return nb::float_(weight); }

template <class Values>
nb::tuple result_tuple(const TaskResult<Values>& r) {
  constexpr bool kIsCount = std::is_same_v<Values, CountValues>;
  using Plain = std::conditional_t<kIsCount, nb::int_, nb::float_>;
  if (r.status == TaskStatus::kSolved) {
    return nb::make_tuple(status_name(r.status), to_python(r.count), to_python(r.total),
                          to_python(r.size), r.n_steps);
  }
  return nb::make_tuple(status_name(r.status), Plain(0), Plain(1), Plain(0), r.n_steps);
}

// Pairs, whether all of them must differ, which part, and how many bits number the parts.
using PyTask = std::tuple<std::vector<MaskPair>, bool, std::uint32_t, std::uint32_t>;

std::vector<ExactTask> to_tasks(const std::vector<PyTask>& tasks, const MaskSpace& masks) {
  std::vector<ExactTask> result;
  result.reserve(tasks.size());
  for (const auto& [pairs, all, part, n_bits] : tasks) {
    check_pairs(masks, pairs);
    if (n_bits > kMaxPartBits || part >> n_bits != 0) {
      throw std::invalid_argument("exact: no such part");
    }
    result.push_back({pairs, all ? Combine::kAll : Combine::kAny, {part, n_bits}});
  }
  return result;
}

}  // namespace

void bind_exact(nb::module_& module) {
  nb::class_<ExactCounterHandle>(module, "ExactCounter",
                                 "Counts the solutions of subproblems, on a pool of threads.")
      .def(
          "__init__",
          [](ExactCounterHandle* self, const AnyForest& forest, const MaskSpace& masks,
             const Array<std::uint64_t>& threshold, const Weights& weights) {
            check_fits(forest, masks);
            new (self) ExactCounterHandle{make_counter(forest, masks, threshold, weights), &masks};
          },
          nb::arg("forest"), nb::arg("masks"), nb::arg("threshold"),
          nb::arg("weights").none() = nb::none(), nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>(),
          "weights: a weight per cell of each feature, for shares instead of counts.")
      .def(
          "live",
          [](ExactCounterHandle& self, const std::vector<MaskPair>& pairs, unsigned n_threads,
             double seconds, const nb::object& on_pause) {
            check_pairs(*self.masks, pairs);
            return stoppable(seconds, on_pause, [&](Stop& stop) {
              return self.visit([&](auto& c) { return c.live(pairs, n_threads, stop); });
            });
          },
          nb::arg("pairs"), nb::arg("n_threads"),
          nb::arg("seconds") = std::numeric_limits<double>::infinity(),
          nb::arg("on_pause").none() = nb::none(),
          "For each pair of masks, whether its difference may exceed the threshold at all; yes "
          "where\n"
          "the time was over. on_pause is called now and then; what it raises, and Ctrl-C, end it.")
      .def(
          "start",
          [](ExactCounterHandle& self, const std::vector<PyTask>& tasks, MaskIndex n_masks,
             std::uint64_t max_steps, std::size_t max_bytes, unsigned n_threads,
             std::uint64_t max_paths, std::size_t memo_bytes) {
            if (n_masks != self.masks->size()) {
              throw std::invalid_argument("exact: the number of masks is wrong");
            }
            std::vector<ExactTask> native = to_tasks(tasks, *self.masks);
            nb::gil_scoped_release release;
            self.visit([&](auto& c) {
              c.start(std::move(native),
                      ExactLimits{max_steps, max_bytes, n_threads, max_paths, memo_bytes});
            });
          },
          nb::arg("tasks"), nb::arg("n_masks"), nb::arg("max_steps"), nb::arg("max_bytes"),
          nb::arg("n_threads"), nb::arg("max_paths") = kMaxPaths,
          nb::arg("memo_bytes") = kFirstMemoBytes,
          "Start on tasks: (pairs of masks, whether all of them must differ rather than any, "
          "part,\n"
          "how many bits number the parts).")
      .def(
          "wait",
          [](ExactCounterHandle& self, double seconds) {
            nb::gil_scoped_release release;
            return self.visit([&](auto& c) { return c.wait(seconds); });
          },
          nb::arg("seconds"), "Wait for the tasks, at most that long; True when they are done.")
      .def("cancel",
           [](ExactCounterHandle& self) {
             nb::gil_scoped_release release;
             self.visit([](auto& c) { c.cancel(); });
           })
      .def_prop_ro(
          "n_done",
          [](ExactCounterHandle& self) { return self.visit([](auto& c) { return c.n_done(); }); })
      .def(
          "results",
          [](ExactCounterHandle& self) {
            nb::list list;
            self.visit([&](auto& c) {
              for (const auto& result : c.results()) list.append(result_tuple(result));
            });
            return list;
          },
          nb::sig("def results(self) -> list[tuple[str, typing.Any, typing.Any, typing.Any, int]]"),
          "For each task: status, count, total, how much of the total its part is, number of "
          "steps.\n"
          "With weights, the weight of the solutions, 1.0, and the weight of the part.");
}

}  // namespace xcount::python
