// Numbers as tables write them, rounded to the nearest double, ties to even.
//
// A plain number is [+-] digits [. digits] [e [+-] digits], of ASCII, with spaces or tabs around
// it; digits may lack on one side of the point. Whatever else Python takes for a number ("inf",
// "1e999") is none here: the caller looks at it again.
#pragma once

#include <optional>
#include <string_view>

namespace xcount {

[[nodiscard]] std::optional<double> plain_number(std::string_view text);

}  // namespace xcount
