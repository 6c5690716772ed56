(* Integers of any size: JavaScript's BigInt, by the functions in primitives.js. *)
type t
external of_int : int -> t = "xcount_of_int"
external add : t -> t -> t = "xcount_add"
external sub : t -> t -> t = "xcount_sub"
external mul : t -> t -> t = "xcount_mul"
external neg : t -> t = "xcount_neg"
external lt : t -> t -> bool = "xcount_lt"
external leq : t -> t -> bool = "xcount_leq"
external equal : t -> t -> bool = "xcount_equal"
external fdiv : t -> t -> t = "xcount_floor_divide"
external shift_left : t -> int -> t = "xcount_shift_left"
external shift_right : t -> int -> t = "xcount_shift_right"
external of_string : string -> t = "xcount_of_string"
external to_string : t -> string = "xcount_to_string"
external to_float : t -> float = "xcount_to_float"
external hash : t -> int = "xcount_hash"
let zero = of_int 0
let one = of_int 1
let succ a = add a one
let is_even a = equal (shift_left (shift_right a 1) 1) a
let sign a = if equal a zero then 0 else if lt a zero then -1 else 1
let min a b = if lt a b then a else b
let max a b = if lt a b then b else a
let abs a = if lt a zero then neg a else a
