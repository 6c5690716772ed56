#include <nanobind/stl/pair.h>

#include "forest_binding.hpp"
#include "sequences.hpp"
#include "stopping_binding.hpp"
#include "xcount/exact/solution_diagram.hpp"

namespace xcount::python {

namespace {

struct DiagramHandle {
  std::variant<SolutionDiagram<std::int64_t>, SolutionDiagram<Int128>, SolutionDiagram<Int2304>>
      diagram;

  template <class Function>
  decltype(auto) visit(Function function) const {
    return std::visit(function, diagram);
  }
};

DiagramHandle solve(const AnyForest& forest, const MaskSpace& masks,
                    const Array<std::uint64_t>& threshold, const ExactTask& task,
                    std::uint64_t max_steps, std::size_t max_bytes) {
  try {
    return std::visit(
        [&]<class Value>(const Forest<Value>& f) {
          return cancellable([&, gap = value_of<Value>(threshold)](std::atomic<bool>& cancel) {
            const EliminationLimits limits{max_steps, max_bytes, &cancel};
            return DiagramHandle{SolutionDiagram<Value>(f, masks, gap, task, limits)};
          });
        },
        forest);
  } catch (const GiveUp&) {
    throw std::length_error("the solutions of this subproblem are too many to keep");
  }
}

}  // namespace

void bind_solution_diagram(nb::module_& module) {
  nb::class_<DiagramHandle>(module, "SolutionDiagram",
                            "The solutions of one subproblem, kept to be used.")
      .def(
          "__init__",
          [](DiagramHandle* self, const AnyForest& forest, const MaskSpace& masks,
             const Array<std::uint64_t>& threshold, const std::vector<MaskPair>& pairs,
             bool all_pairs, std::uint64_t max_steps, std::size_t max_bytes) {
            check_fits(forest, masks);
            check_pairs(masks, pairs);
            const ExactTask task{pairs, all_pairs ? Combine::kAll : Combine::kAny};
            new (self) DiagramHandle(solve(forest, masks, threshold, task, max_steps, max_bytes));
          },
          nb::arg("forest"), nb::arg("masks"), nb::arg("threshold"), nb::arg("pairs"),
          nb::arg("all_pairs"), nb::arg("max_steps"), nb::arg("max_bytes"))
      .def_prop_ro("features",
                   [](const DiagramHandle& self) {
                     return self.visit([](const auto& d) { return d.features(); });
                   })
      .def_prop_ro("n_nodes",
                   [](const DiagramHandle& self) {
                     return self.visit([](const auto& d) { return d.n_nodes(); });
                   })
      .def_prop_ro(
          "count",
          [](const DiagramHandle& self) {
            return big_integer(self.visit([](const auto& d) { return d.count(); }));
          },
          nb::sig("def count(self) -> int"))
      .def_prop_ro(
          "total",
          [](const DiagramHandle& self) {
            return big_integer(self.visit([](const auto& d) { return d.total(); }));
          },
          nb::sig("def total(self) -> int"))
      .def(
          "sample",
          [](const DiagramHandle& self, std::size_t n, std::uint64_t seed) {
            return to_numpy(self.visit([&](const auto& d) { return d.sample(n, seed); }));
          },
          nb::arg("n"), nb::arg("seed"), "n solutions: cells of the features, row after row.")
      .def(
          "boxes",
          [](const DiagramHandle& self, std::size_t limit) {
            std::vector<std::pair<std::vector<Cell>, std::vector<Cell>>> result;
            for (SolutionBox& box : self.visit([&](const auto& d) { return d.boxes(limit); })) {
              result.emplace_back(std::move(box.begin), std::move(box.end));
            }
            return result;
          },
          nb::arg("limit"), "Disjoint boxes: first cells and ends, by feature.");
}

}  // namespace xcount::python
