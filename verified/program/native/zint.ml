(* Integers of any size: zarith. *)
include Z
