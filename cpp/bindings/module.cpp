// Table of contents of the native module; each concept has a binding file of its own.
#include <cstddef>
#include <exception>
#include <stdexcept>
#include <vector>

#include "forest_binding.hpp"
#include "xcount/tables/csv_records.hpp"

namespace {

// Questions too large for the core raise an error meant for the user.
void translate_length_error(const std::exception_ptr& thrown, void* /*payload*/) {
  try {
    std::rethrow_exception(thrown);
  } catch (const std::length_error& error) {
    const nb::object type = nb::module_::import_("xcount.errors").attr("BudgetError");
    PyErr_SetString(type.ptr(), error.what());
  }
}

// Makes room in nanobind's tables of live objects and of objects that keep others alive. It ends
// the process if one of them cannot grow; they never shrink, and so many objects hardly ever live
// at once.
void reserve_objects(std::size_t n) {
  std::vector<nb::object> kept;
  kept.reserve(n);
  for (std::size_t i = 0; i < n; ++i) {
    kept.push_back(nb::cast(xcount::CsvHead{}));
    if (i > 0) nb::keep_alive_obj(kept.back(), kept.front());
  }
}

constexpr std::size_t kReservedObjects = 2000;

}  // namespace

NB_MODULE(_core, module) {
  // Objects still alive when an interpreter is stopped early are no leak to report.
  nb::set_leak_warnings(false);
  module.doc() = "XCount's native core.";
  nb::register_exception_translator(translate_length_error);
  xcount::python::bind_forest(module);
  xcount::python::bind_brute(module);
  xcount::python::bind_exact(module);
  xcount::python::bind_solution_diagram(module);
  xcount::python::bind_sampling(module);
  xcount::python::bind_regions(module);
  xcount::python::bind_cover(module);
  xcount::python::bind_diagrams(module);
  xcount::python::bind_corner_sums(module);
  xcount::python::bind_population(module);
  xcount::python::bind_tables(module);
  xcount::python::bind_worst(module);
  xcount::python::bind_pair_cover(module);
  reserve_objects(kReservedObjects);
}
