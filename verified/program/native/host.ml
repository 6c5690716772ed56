(* What the program needs of the operating system. *)
let arguments () = List.tl (Array.to_list Sys.argv)

let read_all channel =
  let chunk = Bytes.create 65536 and text = Buffer.create 65536 in
  let rec go () =
    match input channel chunk 0 (Bytes.length chunk) with
    | 0 -> Buffer.contents text
    | n -> Buffer.add_subbytes text chunk 0 n; go () in
  go ()

let read_file name =
  if name = "-" then (set_binary_mode_in stdin true; read_all stdin)
  else
    let channel = open_in_bin name in
    Fun.protect ~finally:(fun () -> close_in_noerr channel) (fun () -> read_all channel)

let seconds () = Sys.time ()
let megabytes () = (Gc.quick_stat ()).Gc.heap_words / (1024 * 1024 / (Sys.word_size / 8))
let prepare () = Gc.set { (Gc.get ()) with Gc.minor_heap_size = 1 lsl 21; space_overhead = 600 }
let is_command () = true
let export (_ : string -> int -> float -> int -> (int -> int -> int -> unit) -> string * string) = ()
