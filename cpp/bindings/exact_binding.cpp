#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "forest_binding.hpp"
#include "xcount/exact.hpp"

namespace xcount::python {

namespace {

using AnyExactCounter =
    std::variant<std::unique_ptr<ExactCounter<std::int64_t>>, std::unique_ptr<ExactCounter<Int128>>,
                 std::unique_ptr<ExactCounter<Int2304>>>;

// Holds the variant, so that Python sees one class.
struct ExactCounterHandle {
  AnyExactCounter counter;

  template <class Function>
  decltype(auto) visit(Function function) {
    return std::visit([&](auto& c) -> decltype(auto) { return function(*c); }, counter);
  }
};

nb::object big_integer(const std::vector<std::uint64_t>& limbs) {
  const nb::bytes data(limbs.data(), limbs.size() * sizeof(std::uint64_t));
  return nb::module_::import_("builtins").attr("int").attr("from_bytes")(data, "little");
}

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

using PyTask = std::pair<std::vector<MaskPair>, bool>;

std::vector<ExactTask> to_tasks(const std::vector<PyTask>& tasks, MaskIndex n_masks) {
  std::vector<ExactTask> result;
  result.reserve(tasks.size());
  for (const auto& [pairs, all] : tasks) {
    for (const auto& [a, b] : pairs) {
      if (a < 0 || b < 0 || a >= n_masks || b >= n_masks) {
        throw std::invalid_argument("exact: a mask is out of range");
      }
    }
    result.push_back({pairs, all ? Combine::kAll : Combine::kAny});
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
             const Array<std::uint64_t>& threshold) {
            new (self) ExactCounterHandle{std::visit(
                [&]<class Value>(const Forest<Value>& f) -> AnyExactCounter {
                  return std::make_unique<ExactCounter<Value>>(f, masks,
                                                               value_of<Value>(threshold));
                },
                forest)};
          },
          nb::arg("forest"), nb::arg("masks"), nb::arg("threshold"), nb::keep_alive<1, 2>(),
          nb::keep_alive<1, 3>())
      .def(
          "live",
          [](ExactCounterHandle& self, const std::vector<MaskPair>& pairs, unsigned n_threads) {
            nb::gil_scoped_release release;
            return self.visit([&](auto& c) { return c.live(pairs, n_threads); });
          },
          nb::arg("pairs"), nb::arg("n_threads"),
          "For each pair of masks, whether its difference may exceed the threshold at all.")
      .def(
          "start",
          [](ExactCounterHandle& self, const std::vector<PyTask>& tasks, MaskIndex n_masks,
             std::uint64_t max_steps, std::size_t max_bytes, unsigned n_threads) {
            std::vector<ExactTask> native = to_tasks(tasks, n_masks);
            nb::gil_scoped_release release;
            self.visit([&](auto& c) {
              c.start(std::move(native), ExactLimits{max_steps, max_bytes, n_threads});
            });
          },
          nb::arg("tasks"), nb::arg("n_masks"), nb::arg("max_steps"), nb::arg("max_bytes"),
          nb::arg("n_threads"),
          "Start on tasks: (pairs of masks, whether all of them must differ rather than any).")
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
              for (const TaskResult& r : c.results()) {
                const bool solved = r.status == TaskStatus::kSolved;
                list.append(nb::make_tuple(
                    status_name(r.status), solved ? big_integer(r.count) : nb::object(nb::int_(0)),
                    solved ? big_integer(r.total) : nb::object(nb::int_(1)), r.n_steps));
              }
            });
            return list;
          },
          nb::sig("def results(self) -> list[tuple[str, int, int, int]]"),
          "For each task: status, count, total, number of steps.");
}

}  // namespace xcount::python
