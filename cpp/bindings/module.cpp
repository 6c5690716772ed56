// Table of contents of the native module; each concept has a binding file of its own.
#include "forest_binding.hpp"

NB_MODULE(_core, module) {
  // Objects that are still alive when an interpreter is stopped early concern nobody.
  nb::set_leak_warnings(false);
  module.doc() = "XCount's native core.";
  xcount::python::bind_forest(module);
  xcount::python::bind_brute(module);
  xcount::python::bind_exact(module);
  xcount::python::bind_solution_diagram(module);
  xcount::python::bind_sampling(module);
  xcount::python::bind_regions(module);
  xcount::python::bind_cover(module);
  xcount::python::bind_diagrams(module);
}
