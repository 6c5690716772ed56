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

(* * One count, or one part of it: consecutive masks go together, since they share work *)
let checked_every = 1024
let owner cells sensitive n_masks n mask =
  let place = List.fold_left2 (fun place f c -> place * cells.(f) + c) 0 sensitive mask in
  if n_masks <= 0 || n_masks > max_int / n then (place land max_int) mod n
  else place * n / n_masks

type task = All | Part of int * int

let count question limits progress task =
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
  let big = Zint.shift_left Zint.one 4000 in
  let found () =
    match task with
    | All ->
        Counter.count hash_leaf hash_node mix chosen big is_remembered by_overlap swap next_mask
          (n_features + 1) question
    | Part (i, n) ->
        let mine = Counter.in_part (owner cells question.q_sensitive n_masks n) n i in
        Counter.sum_over_masks hash_leaf hash_node mix chosen big is_remembered by_overlap swap
          next_mask (n_features + 1) mine question in
  match found () with
  | Some n -> Ok n
  | None -> Error "the counter gave up"
  | exception Limit what -> Error what
  | exception Stack_overflow -> Error "the limit of the stack"
  | exception Out_of_memory -> Error "the limit of memory"

(* * Text in, (status, count or message) out *)
let answer ?(task = All) text limits progress =
  match Reader.question text with
  | exception Reader.Unreadable message -> ("unreadable", message)
  | question ->
      match count question limits progress task with
      | Ok n -> ("counted", Zint.to_string n)
      | Error what -> ("gave up", what)

(* The answer from the sums of all parts. *)
let total text sums =
  match Reader.question text, Reader.integers sums with
  | exception Reader.Unreadable message -> ("unreadable", message)
  | question, sums -> ("counted", Zint.to_string (Counter.answer_of_parts question sums))

(* One character for each region: 1 if it is sensitive, 0 if not. *)
let decided_at_once = 64
let decisions text regions limits =
  let started = Host.seconds () and said = Buffer.create 4096 in
  let rec take n taken rest =
    match rest with
    | x :: rest when n > 0 -> take (n - 1) (x :: taken) rest
    | _ -> (List.rev taken, rest) in
  let rec go question = function
    | [] -> ("counted", Buffer.contents said)
    | regions ->
        if limits.seconds > 0.0 && Host.seconds () -. started > limits.seconds then
          ("gave up", "the limit of time")
        else begin
          let now, later = take decided_at_once [] regions in
          let found = Counter.decide_regions question now in
          List.iter (function
            | Some b -> Buffer.add_char said (if b then '1' else '0')
            | None -> raise (Reader.Unreadable "a region that is not in the grid")) found;
          go question later
        end in
  match
    let question = Reader.question text in
    go question (Reader.regions (List.length question.q_grid) regions)
  with
  | exception Reader.Unreadable message -> ("unreadable", message)
  | found -> found

let usage =
  "usage: xcount-verified [-states N] [-seconds S] [-megabytes M] \
   [-part I N | -total SUMS | -regions FILE] FILE (- for stdin)"

type asked = Count of task | Total of string | Regions of string

let command arguments =
  let rec parse limits asked = function
    | "-states" :: n :: rest -> parse { limits with states = int_of_string n } asked rest
    | "-seconds" :: s :: rest -> parse { limits with seconds = float_of_string s } asked rest
    | "-megabytes" :: m :: rest -> parse { limits with megabytes = int_of_string m } asked rest
    | "-part" :: i :: n :: rest ->
        let i = int_of_string i and n = int_of_string n in
        if i < 0 || i >= n || n > 1000000 then failwith usage;
        parse limits (Count (Part (i, n))) rest
    | "-total" :: file :: rest -> parse limits (Total file) rest
    | "-regions" :: file :: rest -> parse limits (Regions file) rest
    | [ name ] when name = "-" || name <> "" && name.[0] <> '-' -> (limits, asked, name)
    | _ -> failwith usage in
  match parse { states = 0; seconds = 0.0; megabytes = 0 } (Count All) arguments with
  | exception Failure _ -> prerr_endline usage; 2
  | limits, asked, name ->
      let run () =
        let text = Host.read_file name in
        match asked with
        | Count task -> answer ~task text limits (fun _ _ _ -> ())
        | Total file -> total text (Host.read_file file)
        | Regions file -> decisions text (Host.read_file file) limits in
      match run () with
      | exception Sys_error message -> prerr_endline message; 2
      | "counted", n -> print_endline n; 0
      | "unreadable", message -> prerr_endline (name ^ ": " ^ message); 2
      | _, message -> prerr_endline ("no answer: " ^ message); 3

let () =
  Host.prepare ();
  Host.export (fun text states seconds megabytes progress ->
    answer text { states; seconds; megabytes } progress);
  if Host.is_command () then exit (command (Host.arguments ()))
