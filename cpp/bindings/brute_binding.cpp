#include "forest_binding.hpp"
#include "xcount/exact/brute.hpp"

namespace xcount::python {

namespace {

using AnyBruteForce =
    std::variant<BruteForce<std::int64_t>, BruteForce<Int128>, BruteForce<Int2304>>;

AnyBruteForce make_brute(const AnyForest& forest, const MaskSpace& masks,
                         const Array<std::uint64_t>& threshold) {
  return std::visit(
      [&]<class Value>(const Forest<Value>& f) -> AnyBruteForce {
        return BruteForce<Value>(f, masks, value_of<Value>(threshold));
      },
      forest);
}

}  // namespace

void bind_brute(nb::module_& module) {
  nb::class_<AnyBruteForce>(module, "BruteForce", "Counting by enumeration.")
      .def(
          "__init__",
          [](AnyBruteForce* self, const AnyForest& forest, const MaskSpace& masks,
             const Array<std::uint64_t>& threshold) {
            check_fits(forest, masks);
            new (self) AnyBruteForce(make_brute(forest, masks, threshold));
          },
          nb::arg("forest"), nb::arg("masks"), nb::arg("threshold"), nb::keep_alive<1, 2>(),
          nb::keep_alive<1, 3>())
      .def_prop_ro("n_combinations",
                   [](const AnyBruteForce& self) {
                     return std::visit([](const auto& b) { return b.n_combinations(); }, self);
                   })
      .def(
          "count",
          [](const AnyBruteForce& self, std::uint64_t begin, std::uint64_t end,
             unsigned n_threads) {
            std::vector<std::uint64_t> counts;
            {
              nb::gil_scoped_release release;
              counts =
                  std::visit([&](const auto& b) { return b.count(begin, end, n_threads); }, self);
            }
            return to_numpy(std::move(counts));
          },
          nb::arg("begin"), nb::arg("end"), nb::arg("n_threads"),
          "For each mask, how many combinations in [begin, end) make it sensitive.");
}

}  // namespace xcount::python
