(* What the program needs of node, or of a browser. *)
external argument_count : unit -> int = "xcount_argument_count"
external argument : int -> string = "xcount_argument"
external read : string -> string = "xcount_read_file"
external seconds : unit -> float = "xcount_seconds"
external megabytes : unit -> int = "xcount_megabytes"
external is_command : unit -> bool = "xcount_is_command"
external export :
  (string -> int -> float -> int -> (int -> int -> int -> unit) -> string * string) -> unit
  = "xcount_export"

let arguments () = List.init (argument_count ()) argument
let read_file name =
  match read name with "" -> raise (Sys_error (name ^ ": cannot be read, or is empty")) | text -> text
let prepare () = ()
