#include "forest_binding.hpp"
#include "sequences.hpp"
#include "stopping_binding.hpp"
#include "xcount/population/mixture.hpp"

namespace xcount::python {

void bind_population(nb::module_& module) {
  nb::class_<Mixture>(module, "Mixture", "A mixture of product distributions, fitted to cells.")
      .def(
          "__init__",
          [](Mixture* self, const Array<std::int32_t>& cells, std::vector<std::int32_t> n_cells,
             std::size_t n_components, double strength, std::uint64_t seed) {
            new (self) Mixture(span_of(cells), std::move(n_cells), n_components, strength, seed);
          },
          nb::arg("cells"), nb::arg("n_cells"), nb::arg("n_components"), nb::arg("strength"),
          nb::arg("seed"))
      .def(
          "step",
          [](Mixture& self, unsigned n_threads) {
            return stoppable(std::numeric_limits<double>::infinity(), nb::none(),
                             [&](Stop& stop) { return self.step(n_threads, stop); });
          },
          nb::arg("n_threads"),
          "One step of expectation maximisation; the mean log-likelihood of a row before it.")
      .def(
          "log_likelihood",
          [](const Mixture& self, const Array<std::int32_t>& cells) {
            return self.log_likelihood(span_of(cells));
          },
          nb::arg("cells"), "The mean log-likelihood of other rows.")
      .def_prop_ro(
          "weights", [](const Mixture& self) { return to_numpy(std::vector(self.weights())); },
          nb::rv_policy::move, "What the components weigh.")
      .def_prop_ro(
          "probabilities",
          [](const Mixture& self) { return to_numpy(std::vector(self.probabilities())); },
          nb::rv_policy::move,
          "Feature after feature, cell after cell, component after component.");
}

}  // namespace xcount::python
