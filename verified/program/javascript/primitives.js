// Integers as BigInt, and what the program needs of node or of a browser.
//Provides: xcount_of_int
function xcount_of_int(a) { return BigInt(a) }
//Provides: xcount_add
function xcount_add(a, b) { return a + b }
//Provides: xcount_sub
function xcount_sub(a, b) { return a - b }
//Provides: xcount_mul
function xcount_mul(a, b) { return a * b }
//Provides: xcount_neg
function xcount_neg(a) { return -a }
//Provides: xcount_lt
function xcount_lt(a, b) { return a < b ? 1 : 0 }
//Provides: xcount_leq
function xcount_leq(a, b) { return a <= b ? 1 : 0 }
//Provides: xcount_equal
function xcount_equal(a, b) { return a == b ? 1 : 0 }
//Provides: xcount_floor_divide
function xcount_floor_divide(a, b) {
  var q = a / b, r = a - q * b, zero = BigInt(0)
  return r != zero && (r < zero) != (b < zero) ? q - BigInt(1) : q
}
//Provides: xcount_shift_left
function xcount_shift_left(a, n) { return a << BigInt(n) }
//Provides: xcount_shift_right
function xcount_shift_right(a, n) { return a >> BigInt(n) }
//Provides: xcount_of_string
//Requires: caml_jsstring_of_string
function xcount_of_string(s) { return BigInt(caml_jsstring_of_string(s)) }
//Provides: xcount_to_string
//Requires: caml_string_of_jsstring
function xcount_to_string(a) { return caml_string_of_jsstring(a.toString()) }
//Provides: xcount_to_float
function xcount_to_float(a) { return Number(a) }
//Provides: xcount_hash
function xcount_hash(a) { return Number(BigInt.asUintN(30, a)) }

//Provides: xcount_is_command
function xcount_is_command() {
  return typeof module == "object" && typeof require == "function" && require.main === module ? 1 : 0
}
//Provides: xcount_argument_count
function xcount_argument_count() { return globalThis.process.argv.length - 2 }
//Provides: xcount_argument
//Requires: caml_string_of_jsstring
function xcount_argument(i) { return caml_string_of_jsstring(globalThis.process.argv[i + 2]) }
//Provides: xcount_read_file
//Requires: caml_jsstring_of_string, caml_string_of_jsbytes
function xcount_read_file(name) {
  var path = caml_jsstring_of_string(name)
  try {
    var bytes = require("fs").readFileSync(path == "-" ? 0 : path)
    return caml_string_of_jsbytes(bytes.toString("latin1"))
  } catch (error) {
    return caml_string_of_jsbytes("")
  }
}
//Provides: xcount_seconds
function xcount_seconds() { return Date.now() / 1000 }
//Provides: xcount_megabytes
function xcount_megabytes() {
  return typeof globalThis.process == "object" && globalThis.process.memoryUsage
    ? Math.floor(globalThis.process.memoryUsage().heapUsed / 1048576) : 0
}
// The one function for browsers and workers:
//   xcountVerified(text, {states, seconds, megabytes}, progress)
// returns {status: "counted", count: "..."} or {status: "unreadable" | "gave up", message: "..."};
// progress(masksDone, masks, states) is called now and then.
//Provides: xcount_export
//Requires: caml_call_gen, caml_string_of_jsstring, caml_jsstring_of_string
function xcount_export(count) {
  function xcountVerified(text, limits, progress) {
    limits = limits || {}
    function report(done, total, states) { if (progress) progress(done, total, states); return 0 }
    var pair = caml_call_gen(count, [
      caml_string_of_jsstring(text), limits.states || 0, limits.seconds || 0,
      limits.megabytes || 0, report])
    var status = caml_jsstring_of_string(pair[1]), said = caml_jsstring_of_string(pair[2])
    return status == "counted" ? { status: status, count: said } : { status: status, message: said }
  }
  globalThis.xcountVerified = xcountVerified
  if (typeof module == "object") module.exports = xcountVerified
  return 0
}
