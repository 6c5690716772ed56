#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <cmath>
#include <optional>
#include <string>
#include <tuple>

#include "forest_binding.hpp"
#include "sequences.hpp"
#include "xcount/tables/table_reader.hpp"

namespace xcount::python {
namespace {

std::string_view view_of(const nb::bytes& data) {
  return {static_cast<const char*>(data.data()), data.size()};
}

const char* words(CsvFault fault) {
  switch (fault) {
    case CsvFault::kNone:
      return "";
    case CsvFault::kAfterQuote:
      return "a comma or the end of the line must follow a closing quote";
    case CsvFault::kOpenQuote:
      return "the file ends inside quotes";
    case CsvFault::kLongField:
      return "a field has more than 131,072 characters";
  }
  return "";
}

nb::object codes_of(ReadColumn& column) {
  return std::visit([](auto codes) { return nb::cast(to_numpy(std::move(codes))); },
                    column.take_codes());
}

std::vector<std::string> texts_of(const ReadColumn& column) {
  std::vector<std::string> found;
  for (std::size_t i = 0; i < column.texts().size(); ++i) {
    found.emplace_back(column.texts().text(static_cast<ReadColumn::Code>(i)));
  }
  return found;
}

std::vector<std::pair<std::size_t, std::string>> odd_texts_of(const ReadColumn& column) {
  std::vector<std::pair<std::size_t, std::string>> found;
  const std::vector<double>& numbers = column.numbers_of_texts();
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (!std::isnan(numbers[i])) continue;
    found.emplace_back(i, column.texts().text(static_cast<ReadColumn::Code>(i)));
  }
  return found;
}

void bind_column(nb::module_& module) {
  nb::class_<ReadColumn>(module, "CsvColumn", "A column of a CSV file: texts, and codes of rows.")
      .def_prop_ro(
          "is_dense", &ReadColumn::is_dense,
          "Whether rows have numbers, because there are too many different ones for codes.")
      .def_prop_ro("texts", &texts_of, "The text of each code.")
      .def_prop_ro("odd_texts", &odd_texts_of, "(code, text) for texts that are no plain numbers.")
      .def_prop_ro(
          "numbers_of_texts",
          [](const ReadColumn& self) { return to_numpy(std::vector(self.numbers_of_texts())); },
          nb::rv_policy::move, "The number of each code; NaN if its text is no plain number.")
      .def_prop_ro(
          "odd_rows",
          [](const ReadColumn& self) {
            return to_numpy(
                std::vector<std::int64_t>(self.odd_rows().begin(), self.odd_rows().end()));
          },
          nb::rv_policy::move, "The rows of a dense column that have no plain number.")
      .def_prop_ro(
          "odd_codes",
          [](const ReadColumn& self) { return to_numpy(std::vector(self.odd_texts())); },
          nb::rv_policy::move, "The codes of their texts.")
      .def("take_codes", &codes_of,
           nb::sig(
               "def take_codes(self) -> numpy.typing.NDArray[numpy.unsignedinteger[typing.Any]]"),
           "The codes of the rows, once.")
      .def(
          "take_numbers", [](ReadColumn& self) { return to_numpy(self.take_numbers()); },
          nb::rv_policy::move, "The numbers of the rows of a dense column, once.");
}

}  // namespace

void bind_tables(nb::module_& module) {
  bind_column(module);
  nb::class_<CsvHead>(module, "CsvHead", "The first record of a CSV file.")
      .def_ro("fields", &CsvHead::fields, "Empty if the end of the record is not known yet.")
      .def_ro("end", &CsvHead::end, "Where the next record starts.")
      .def_ro("n_lines", &CsvHead::n_lines, "How many lines end before that.")
      .def_prop_ro(
          "fault", [](const CsvHead& self) { return words(self.fault); }, "What is wrong with it.");
  module.def(
      "csv_head",
      [](const nb::bytes& data, bool is_last) { return csv_head(view_of(data), is_last); },
      nb::arg("data"), nb::arg("is_last"), "The first record of the text of a CSV file.");
  nb::enum_<ColumnRole>(module, "ColumnRole", "What a column of a CSV file is read for.")
      .value("IGNORED", ColumnRole::kIgnored)
      .value("NUMBERS", ColumnRole::kNumbers)
      .value("TEXTS", ColumnRole::kTexts);
  nb::class_<TableReader>(module, "TableReader", "Reads the columns of a CSV file, block by block.")
      .def(nb::init<std::vector<ColumnRole>>(), nb::arg("roles"))
      .def(
          "feed",
          [](TableReader& self, const nb::bytes& block, bool is_last, unsigned n_threads,
             bool only_count) {
            const std::string_view data = view_of(block);
            const nb::gil_scoped_release release;
            self.feed(data, is_last, n_threads, only_count);
          },
          nb::arg("block"), nb::arg("is_last"), nb::arg("n_threads"), nb::arg("only_count") = false,
          "Reads another block; with only_count, rows are counted and no more.")
      .def_prop_ro("n_rows", &TableReader::n_rows, "How many rows there were so far.")
      .def_prop_ro(
          "fault",
          [](const TableReader& self)
              -> std::optional<std::tuple<std::string, std::size_t, std::size_t>> {
            if (!self.fault()) return std::nullopt;
            return std::make_tuple(std::string(words(self.fault()->csv)), self.fault()->row,
                                   self.fault()->n_fields);
          },
          "What is wrong (empty: the number of fields), with which row, and its number of fields.")
      .def("extra_lines", &TableReader::extra_lines, nb::arg("row"),
           "How many more lines than rows end up to the end of a row.")
      .def(
          "column",
          [](TableReader& self, std::size_t index) -> ReadColumn& {
            return self.columns().at(index);
          },
          nb::arg("index"), nb::rv_policy::reference_internal,
          "One of the columns that are not ignored.");
}

}  // namespace xcount::python
