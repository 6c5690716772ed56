#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>

#include "forest_binding.hpp"
#include "sequences.hpp"
#include "xcount/diagrams/add.hpp"
#include "xcount/diagrams/bdd_count.hpp"
#include "xcount/support/stopping.hpp"

namespace xcount::python {

namespace {

using Clock = Stop::Clock;
using Bits = nb::ndarray<const std::uint8_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using AnyAdds = std::variant<std::unique_ptr<Adds<std::int64_t>>, std::unique_ptr<Adds<Int128>>,
                             std::unique_ptr<Adds<Int2304>>>;

constexpr auto kSignalInterval = std::chrono::milliseconds(50);

// Lets Ctrl-C end an operation that runs without the interpreter lock.
void check_signals() {
  thread_local Clock::time_point last{};
  const auto now = Clock::now();
  if (now - last < kSignalInterval) return;
  last = now;
  nb::gil_scoped_acquire acquire;
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

// A table whose value type was chosen at run time.
struct Table {
  AnyAdds adds;

  Diagrams& base() {
    return std::visit([](auto& a) -> Diagrams& { return *a; }, adds);
  }
  template <class Value>
  Adds<Value>& as() {
    auto* found = std::get_if<std::unique_ptr<Adds<Value>>>(&adds);
    if (found == nullptr) throw std::invalid_argument("table and forest differ in value width");
    return **found;
  }
};

template <class Value>
AnyAdds make_adds(std::span<const std::uint32_t> sizes, DiagramLimits limits) {
  auto adds = std::make_unique<Adds<Value>>(sizes, limits);
  adds->set_checkpoint(check_signals);
  return adds;
}

AnyAdds make_any(const std::vector<std::uint32_t>& sizes, std::size_t n_limbs,
                 DiagramLimits limits) {
  switch (n_limbs) {
    case ValueTraits<std::int64_t>::kLimbs:
      return make_adds<std::int64_t>(sizes, limits);
    case ValueTraits<Int128>::kLimbs:
      return make_adds<Int128>(sizes, limits);
    case ValueTraits<Int2304>::kLimbs:
      return make_adds<Int2304>(sizes, limits);
    default:
      throw std::invalid_argument("diagrams: unsupported width of values");
  }
}

Ref arithmetic(Table& self, AddOp op, const Ref& f, const Ref& g, bool monotone) {
  return without_lock([&] {
    return std::visit([&](auto& a) { return a->arithmetic(op, f, g, monotone); }, self.adds);
  });
}

std::vector<std::uint64_t> limbs_of(std::int64_t value) {
  return {static_cast<std::uint64_t>(value)};
}
std::vector<std::uint64_t> limbs_of(Int128 value) {
  return {static_cast<std::uint64_t>(value),
          static_cast<std::uint64_t>(static_cast<UInt128>(value) >> 64)};
}
template <std::size_t N>
std::vector<std::uint64_t> limbs_of(const WideInt<N>& value) {
  return {value.limbs.begin(), value.limbs.end()};
}

// (node, level or -1, low, high, limbs of the value) of every node, children before parents.
using NodeRow = std::tuple<NodeId, std::int64_t, NodeId, NodeId, std::vector<std::uint64_t>>;

std::vector<NodeRow> rows_of(Table& self, const Ref& f) {
  return std::visit(
      [&](auto& a) {
        std::vector<NodeRow> rows;
        for (const NodeId node : a->reachable(f.node())) {
          if (a->is_terminal(node)) {
            rows.emplace_back(node, -1, 0, 0, limbs_of(a->value(node)));
          } else {
            rows.emplace_back(node, a->level(node), a->low(node), a->high(node),
                              std::vector<std::uint64_t>{});
          }
        }
        return rows;
      },
      self.adds);
}

void bind_operations(nb::class_<Table>& table) {
  table
      .def(
          "apply",
          [](Table& self, BoolOp op, const Ref& f, const Ref& g) {
            return without_lock([&] { return self.base().apply(op, f, g); });
          },
          nb::arg("op"), nb::arg("f"), nb::arg("g"), nb::keep_alive<0, 1>(), "The BDD of f op g.")
      .def("arithmetic", &arithmetic, nb::arg("op"), nb::arg("f"), nb::arg("g"),
           nb::arg("monotone") = false, nb::keep_alive<0, 1>(),
           "The pointwise f op g; at monotone points only, and smaller, when monotone is set.")
      .def(
          "ite",
          [](Table& self, const Ref& f, const Ref& g, const Ref& h) {
            return without_lock([&] { return self.base().ite(f, g, h); });
          },
          nb::arg("f"), nb::arg("g"), nb::arg("h"), nb::keep_alive<0, 1>(), "if f then g else h.")
      .def(
          "restrict",
          [](Table& self, const Ref& f, const Array<std::int8_t>& values) {
            return without_lock([&] { return self.base().restrict_to(f, span_of(values)); });
          },
          nb::arg("f"), nb::arg("values"), nb::keep_alive<0, 1>(),
          "Fix variables to 0 or 1; a negative value leaves one free.")
      .def(
          "exists",
          [](Table& self, const Ref& f, const Array<std::uint8_t>& marked) {
            return without_lock([&] { return self.base().exists(f, span_of(marked)); });
          },
          nb::arg("f"), nb::arg("marked"), nb::keep_alive<0, 1>(),
          "Quantify the marked variables of a BDD.")
      .def(
          "permute",
          [](Table& self, const Ref& f, const Array<std::uint32_t>& target) {
            return without_lock([&] { return self.base().permute(f, span_of(target)); });
          },
          nb::arg("f"), nb::arg("target"), nb::keep_alive<0, 1>(),
          "Put variable target[v] in the place of every variable v.")
      .def(
          "simplify",
          [](Table& self, const Ref& f) {
            return without_lock([&] { return self.base().simplify(f); });
          },
          nb::arg("f"), nb::keep_alive<0, 1>(),
          "The smallest diagram that agrees with f at all monotone points.")
      .def(
          "monotone",
          [](Table& self, const std::vector<std::uint32_t>& groups) {
            return without_lock([&] { return self.base().monotone(groups); });
          },
          nb::arg("groups"), nb::keep_alive<0, 1>(),
          "The BDD that says the bits of these groups are monotone.");
}

void bind_values(nb::class_<Table>& table) {
  table
      .def(
          "constant", [](Table& self, bool value) { return self.base().constant(value); },
          nb::arg("value"), nb::keep_alive<0, 1>())
      .def(
          "variable", [](Table& self, Level level) { return self.base().variable(level); },
          nb::arg("level"), nb::keep_alive<0, 1>())
      .def(
          "terminal",
          [](Table& self, const Array<std::uint64_t>& limbs) {
            return std::visit(
                [&]<class Value>(std::unique_ptr<Adds<Value>>& a) {
                  return a->terminal(value_of<Value>(limbs));
                },
                self.adds);
          },
          nb::arg("limbs"), nb::keep_alive<0, 1>(), "The constant diagram of a number.")
      .def(
          "exceeds",
          [](Table& self, const Ref& f, const Array<std::uint64_t>& bound) {
            return std::visit(
                [&]<class Value>(std::unique_ptr<Adds<Value>>& a) {
                  const Value value = value_of<Value>(bound);
                  return without_lock([&] { return a->exceeds(f, value); });
                },
                self.adds);
          },
          nb::arg("f"), nb::arg("bound"), nb::keep_alive<0, 1>(), "The BDD of |f| > bound.")
      .def(
          "encode",
          [](Table& self, const AnyForest& forest, std::size_t tree,
             const Array<std::int32_t>& cells, const Array<std::uint32_t>& first_level,
             bool only_fixed) {
            const GuardLayout layout{{first_level.data(), first_level.data() + first_level.size()}};
            return std::visit(
                [&]<class Value>(const Forest<Value>& f) {
                  auto& adds = self.as<Value>();
                  return without_lock(
                      [&] { return adds.encode(f, tree, span_of(cells), layout, only_fixed); });
                },
                forest);
          },
          nb::arg("forest"), nb::arg("tree"), nb::arg("cells"), nb::arg("first_level"),
          nb::arg("only_fixed") = false, nb::keep_alive<0, 1>(),
          "The ADD of a tree, pruned where a feature's cell is fixed; with only_fixed, 0 in "
          "branches that test no such feature.")
      .def("rows", &rows_of, nb::arg("f"),
           "(node, level or -1, low, high, value limbs) of every node, children first.");
}

void bind_table(nb::module_& module) {
  nb::class_<Ref>(module, "Diagram", "A BDD or an ADD of a DiagramTable.")
      .def(
          "__eq__", [](const Ref& a, const Ref& b) { return a == b; }, nb::is_operator(),
          nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__hash__", [](const Ref& a) { return static_cast<std::size_t>(a.node()); })
      .def_prop_ro("node", &Ref::node);
  auto table =
      nb::class_<Table>(module, "DiagramTable", "Decision diagrams that share their nodes.")
          .def(
              "__init__",
              [](Table* self, const std::vector<std::uint32_t>& group_sizes, std::size_t n_limbs,
                 std::optional<std::size_t> max_nodes, std::optional<std::size_t> max_bytes) {
                DiagramLimits limits;
                if (max_nodes) limits.max_nodes = std::min(limits.max_nodes, *max_nodes);
                if (max_bytes) limits.max_bytes = std::min(limits.max_bytes, *max_bytes);
                new (self) Table{make_any(group_sizes, n_limbs, limits)};
              },
              nb::arg("group_sizes"), nb::arg("n_limbs") = 1, nb::arg("max_nodes") = nb::none(),
              nb::arg("max_bytes") = nb::none())
          .def(
              "set_time_limit",
              [](Table& self, std::optional<double> seconds) {
                if (!seconds) return self.base().set_deadline(std::nullopt);
                self.base().set_deadline(Stop::after(*seconds));
              },
              nb::arg("seconds").none(), "Raise DiagramLimit when this time has passed.")
          .def("collect_garbage", [](Table& self) { self.base().collect_garbage(); })
          .def(
              "size", [](Table& self, const Ref& f) { return self.base().size(f); }, nb::arg("f"),
              "How many nodes a diagram has.")
          .def_prop_ro("n_variables", [](Table& self) { return self.base().n_variables(); })
          .def_prop_ro("n_nodes", [](Table& self) { return self.base().n_nodes(); })
          .def_prop_ro("peak_nodes", [](Table& self) { return self.base().peak_nodes(); })
          .def_prop_ro("n_bytes", [](Table& self) { return self.base().n_bytes(); });
  bind_operations(table);
  bind_values(table);
}

auto unrank(const Solutions& self, const Limbs& ranks) {
  const std::size_t n = ranks.shape(0), width = ranks.shape(1), bits = self.n_variables();
  auto data = std::make_unique<std::vector<std::uint8_t>>(n * bits);
  without_lock([&] {
    for (std::size_t i = 0; i < n; ++i) {
      self.unrank({ranks.data() + i * width, width}, {data->data() + i * bits, bits});
    }
  });
  std::uint8_t* begin = data->data();
  nb::capsule owner(data.release(),
                    [](void* p) noexcept { delete static_cast<std::vector<std::uint8_t>*>(p); });
  return nb::ndarray<nb::numpy, std::uint8_t, nb::ndim<2>>(begin, {n, bits}, owner);
}

auto contains(const Solutions& self, const Bits& bits) {
  const std::size_t n = bits.shape(0), width = bits.shape(1);
  std::vector<std::uint8_t> found(n);
  without_lock([&] {
    for (std::size_t i = 0; i < n; ++i) {
      found[i] = self.contains({bits.data() + i * width, width}) ? 1 : 0;
    }
  });
  return to_numpy(std::move(found));
}

void bind_solutions(nb::module_& module) {
  nb::class_<Solutions>(module, "Solutions", "The solutions of a BDD, counted and ranked.")
      .def(
          "__init__",
          [](Solutions* self, Table& table, const Ref& f, const std::vector<Level>& levels) {
            nb::gil_scoped_release release;
            new (self) Solutions(table.base(), f, levels);
          },
          nb::arg("table"), nb::arg("f"), nb::arg("levels"))
      .def(
          "count",
          [](const Solutions& self) {
            return to_numpy(std::vector<std::uint64_t>(self.count().begin(), self.count().end()));
          },
          "The number of solutions, in limbs.")
      .def_prop_ro("n_variables", &Solutions::n_variables)
      .def_prop_ro("n_nodes", &Solutions::n_nodes)
      .def("unrank", &unrank, nb::arg("ranks"),
           "The solutions of these ranks, one row of bits each; ranks are rows of limbs.")
      .def("contains", &contains, nb::arg("bits"),
           "For each row of bits, whether it is a solution.");
}

const char* name_of(DiagramLimit::Kind kind) {
  switch (kind) {
    case DiagramLimit::Kind::kMemory:
      return "memory";
    case DiagramLimit::Kind::kNodes:
      return "nodes";
    default:
      return "time";
  }
}

}  // namespace

void bind_diagrams(nb::module_& module) {
  nb::enum_<BoolOp>(module, "BoolOp")
      .value("AND", BoolOp::kAnd)
      .value("OR", BoolOp::kOr)
      .value("XOR", BoolOp::kXor);
  nb::enum_<AddOp>(module, "AddOp")
      .value("PLUS", AddOp::kPlus)
      .value("MINUS", AddOp::kMinus)
      .value("MAX", AddOp::kMax)
      .value("MIN", AddOp::kMin);
  bind_table(module);
  bind_solutions(module);
  // args[0] says which limit: "memory", "nodes" or "time".
  static PyObject* limit_type =
      nb::exception<DiagramLimit>(module, "DiagramLimit", PyExc_RuntimeError).inc_ref().ptr();
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const DiagramLimit& limit) {
      nb::object args = nb::make_tuple(name_of(limit.kind), limit.what());
      PyErr_SetObject(limit_type, args.ptr());
    }
  });
}

}  // namespace xcount::python
