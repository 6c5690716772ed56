// std::vector from Python sequences; include this file instead of nanobind/stl/vector.h.
//
// nanobind converts arguments in functions that are noexcept, so with its own casters a lack of
// memory ends the process. These casters note it, and throw std::bad_alloc, which becomes a
// MemoryError, when their value is passed to the function.

#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/detail/nb_list.h>
#include <nanobind/stl/optional.h>

#include <new>
#include <optional>
#include <utility>
#include <vector>

namespace nanobind::detail {

// A caster whose value may be asked for only if there was memory for it.
template <typename Base, typename T>
struct ThrowingLater : Base {
  template <typename Asked>
  using Cast = movable_cast_t<Asked>;

  explicit operator T*() { return &checked(); }
  explicit operator T&() { return checked(); }
  explicit operator T&&() { return std::move(checked()); }

 protected:
  bool is_out_of_memory = false;

  template <typename Convert>
  bool noted(Convert convert) noexcept {
    try {
      return convert();
    } catch (const std::bad_alloc&) {
      is_out_of_memory = true;
      return true;
    }
  }

 private:
  T& checked() {
    if (is_out_of_memory) throw std::bad_alloc();
    return this->value;
  }
};

template <typename Entry>
struct type_caster<std::vector<Entry>>
    : ThrowingLater<list_caster<std::vector<Entry>, Entry>, std::vector<Entry>> {
  template <typename Flags>
  bool from_python(handle source, Flags flags, cleanup_list* cleanup) noexcept {
    return this->noted([&] { return converted(source, flags, cleanup); });
  }

 private:
  template <typename Flags>
  bool converted(handle source, Flags flags, cleanup_list* cleanup) {
    PyObject* given = source.ptr();
    if (!PySequence_Check(given) || PyUnicode_Check(given) || PyBytes_Check(given)) return false;
    const object items = steal(PySequence_Tuple(given));
    if (!items.is_valid()) {
      PyErr_Clear();
      return false;
    }
    const Py_ssize_t size = PyTuple_Size(items.ptr());
    this->value.clear();
    this->value.reserve(static_cast<std::size_t>(size));
    make_caster<Entry> caster;
    for (Py_ssize_t i = 0; i < size; ++i) {
      const bool is_converted = caster.from_python(PyTuple_GetItem(items.ptr(), i),
                                                   flags_for_local_caster<Entry>(flags), cleanup);
      if (!is_converted || !caster.template can_cast<Entry>()) return false;
      this->value.push_back(caster.operator cast_t<Entry>());
    }
    return true;
  }
};

template <typename Entry>
struct type_caster<std::optional<std::vector<Entry>>>
    : ThrowingLater<optional_caster<std::optional<std::vector<Entry>>>,
                    std::optional<std::vector<Entry>>> {
  template <typename Flags>
  bool from_python(handle source, Flags flags, cleanup_list* cleanup) noexcept {
    this->value.reset();
    if (source.is_none()) return true;
    return this->noted([&] {
      using Inner = std::vector<Entry>;
      make_caster<Inner> caster;
      if (!caster.from_python(source, flags_for_local_caster<Inner>(flags), cleanup)) return false;
      this->value.emplace(caster.operator Inner&&());
      return true;
    });
  }
};

}  // namespace nanobind::detail
