(* The program: limits, and the choices that the theorem leaves open.  Nothing here can make a
   count wrong; the answer is that of [Counter.count], printed. *)
open Counter

type limits = { states : int; seconds : float; megabytes : int }  (* 0: no limit *)
exception Limit of string

(* * Hashes *)
let mix a b = ((((a * 0x2C1B3C6D) lxor (b + (a lsr 15))) * 0x297A2D39) lxor b) land max_int
let hash_leaf value = mix 77 (Zint.hash value)
let hash_node f cells l r =
  mix (mix (List.fold_left (fun h (a, b) -> mix (h + a) b) f cells) l) r

(* * Which feature to eliminate: the one at whose root nodes trees have the largest range *)
let rec atoms visit = function
  | FConst _ -> ()
  | FAtom (_, _, trees) -> visit trees
  | FBin (_, l, r) -> atoms visit l; atoms visit r

let choose n_features =
  let score = Array.make n_features 0.0 in
  fun form ->
    Array.fill score 0 n_features 0.0;
    atoms (List.iter (function
      | CLeaf _ -> ()
      | CNode (_, low, high, f, _, _, _) ->
          score.(f) <- score.(f) +. Zint.to_float (Zint.sub high low))) form;
    let best = ref 0 in
    for f = 1 to n_features - 1 do if score.(f) > score.(!best) then best := f done;
    !best

(* * Which states to remember: those with several trees *)
let least_remembered = 3
let is_remembered form =
  let n = ref 0 in
  atoms (fun trees -> n := !n + List.length trees) form;
  !n >= least_remembered

(* Two neighbours are counted as |A| + |B| - |A and B|, more of them at once. *)
let by_overlap = function FBin (Or, FBin (Or, _, _), _) -> false | _ -> true
let rec swap (m : int list) m' =
  match m, m' with a :: m, b :: m' -> a > b || a = b && swap m m' | _ -> false

(* * One count *)
let checked_every = 1024
let count question limits progress =
  let started = Host.seconds () and states = ref 0 and masks = ref 0 in
  let n_features = List.length question.q_grid in
  let cells = Array.of_list (List.map (fun f -> List.length f.weights) question.q_grid) in
  let n_masks = List.fold_left (fun n f -> n * cells.(f)) 1 question.q_sensitive in
  let check () =
    if limits.states > 0 && !states > limits.states then raise (Limit "the limit of states");
    if !states mod checked_every = 0 then begin
      progress !masks n_masks !states;
      if limits.seconds > 0.0 && Host.seconds () -. started > limits.seconds then
        raise (Limit "the limit of time");
      if limits.megabytes > 0 && Host.megabytes () > limits.megabytes then
        raise (Limit "the limit of memory")
    end in
  let best = choose n_features in
  let chosen form = incr states; check (); best form in
  let next_mask _ = incr masks; progress !masks n_masks !states; true in
  match Counter.count hash_leaf hash_node mix chosen (Zint.shift_left Zint.one 4000) is_remembered
          by_overlap swap next_mask (n_features + 1) question with
  | Some n -> Ok n
  | None -> Error "the counter gave up"
  | exception Limit what -> Error what
  | exception Stack_overflow -> Error "the limit of the stack"
  | exception Out_of_memory -> Error "the limit of memory"

(* * Text in, (status, count or message) out *)
let answer text limits progress =
  match Reader.question text with
  | exception Reader.Unreadable message -> ("unreadable", message)
  | question ->
      match count question limits progress with
      | Ok n -> ("counted", Zint.to_string n)
      | Error what -> ("gave up", what)

let usage = "usage: xcount-verified [-states N] [-seconds S] [-megabytes M] FILE (- for stdin)"
let command arguments =
  let rec parse limits file = function
    | "-states" :: n :: rest -> parse { limits with states = int_of_string n } file rest
    | "-seconds" :: s :: rest -> parse { limits with seconds = float_of_string s } file rest
    | "-megabytes" :: m :: rest -> parse { limits with megabytes = int_of_string m } file rest
    | [ name ] when name = "-" || name <> "" && name.[0] <> '-' -> (limits, name)
    | _ -> failwith usage in
  match parse { states = 0; seconds = 0.0; megabytes = 0 } "" arguments with
  | exception Failure _ -> prerr_endline usage; 2
  | limits, name ->
      match Host.read_file name with
      | exception Sys_error message -> prerr_endline message; 2
      | text ->
          match answer text limits (fun _ _ _ -> ()) with
          | "counted", n -> print_endline n; 0
          | "unreadable", message -> prerr_endline (name ^ ": " ^ message); 2
          | _, message -> prerr_endline ("no answer: " ^ message); 3

let () =
  Host.prepare ();
  Host.export (fun text states seconds megabytes progress ->
    answer text { states; seconds; megabytes } progress);
  if Host.is_command () then exit (command (Host.arguments ()))
