(* Text -> question, by docs/question-format.md to the letter.  This file is trusted. *)
open Counter

exception Unreadable of string

(* The text, and the place of the next word in it. *)
type source = {
  text : string;
  mutable place : int;
  mutable line : int;
  mutable ended : bool;  (* whether the last word read was the last of its line *)
}

let refuse source message =
  raise (Unreadable ("line " ^ string_of_int source.line ^ ": " ^ message))

let shown word = if String.length word > 40 then String.sub word 0 40 ^ "..." else word
let expected source what found = refuse source ("expected " ^ what ^ ", found " ^ shown found)

(* Skips comments, which may stand before every line. *)
let rec skip_comments source =
  let { text; place; _ } = source in
  if place < String.length text && text.[place] = '#' then begin
    let stop = try String.index_from text place '\n'
      with Not_found -> refuse source "the last line does not end with a line feed" in
    for i = place to stop - 1 do
      if text.[i] < ' ' || text.[i] = '\127' then refuse source "a control character"
    done;
    source.place <- stop + 1;
    source.line <- source.line + 1;
    skip_comments source
  end

let open_text text =
  let source = { text; place = 0; line = 1; ended = false } in
  skip_comments source;
  source

(* Starts the next line: every word of the last one was read. *)
let next_line source =
  if not source.ended then refuse source "more words than expected, or a space at the end";
  source.ended <- false;
  source.line <- source.line + 1;
  skip_comments source

let word source what =
  if source.ended then refuse source ("expected " ^ what ^ ", found the end of the line");
  let { text; place = start; _ } = source in
  let length = String.length text in
  if start = length then refuse source ("expected " ^ what ^ ", found the end of the text");
  let stop = ref start in
  while !stop < length && text.[!stop] > ' ' && text.[!stop] < '\127' do incr stop done;
  if !stop = length then refuse source "the last line does not end with a line feed";
  if text.[!stop] <> ' ' && text.[!stop] <> '\n' then
    refuse source "a character that is neither printable ASCII nor a space";
  if !stop = start then refuse source ("expected " ^ what ^ ", found an empty word");
  source.ended <- text.[!stop] = '\n';
  source.place <- !stop + 1;
  String.sub text start (!stop - start)

let keyword source expected_word =
  let found = word source expected_word in
  if found <> expected_word then expected source expected_word found

let is_numeral digits =
  digits <> "" && (digits = "0" || digits.[0] <> '0')
  && (let all = ref true in String.iter (fun c -> if c < '0' || c > '9' then all := false) digits; !all)

let largest = 1073741823

let natural_of source what most found =
  if not (is_numeral found) then expected source what found;
  let value = ref 0 in
  String.iter (fun c ->
    let digit = Char.code c - 48 in
    if !value > most / 10 || !value * 10 + digit > most then
      refuse source (what ^ " is too large: " ^ shown found);
    value := !value * 10 + digit) found;
  !value

let natural ?(least = 0) ?(most = largest) source what =
  let found = word source what in
  let value = natural_of source what most found in
  if value < least then refuse source (what ^ " is too small: " ^ found);
  value

let integer source what =
  let found = word source what in
  let n = String.length found in
  let digits = if n > 0 && found.[0] = '-' then String.sub found 1 (n - 1) else found in
  if not (is_numeral digits) || found = "-0" then expected source what found;
  if String.length digits > 1000 then refuse source (what ^ " has more than 1000 digits");
  Zint.of_string found

(* [times n read] reads n things in order. *)
let times n read =
  let rec go left found = if left = 0 then List.rev found else go (left - 1) (read () :: found) in
  go n []

(* A line with a number of lines that follow, and those lines. *)
let section ?least ?most source name read =
  keyword source name;
  let n = natural ?least ?most source ("the number of " ^ name) in
  next_line source;
  times n (fun () -> let found = read () in next_line source; found)

let most_cells = 16777215

let place source =
  let found = word source "a place" in
  if found = "-" then None else Some (natural_of source "a place" most_cells found)

let weight source =
  let found = integer source "a weight" in
  if Zint.sign found < 0 then refuse source "a weight is negative";
  found

let feature source () =
  let order, places =
    match word source "ordered, unordered or placed" with
    | "ordered" -> Ordered, None
    | "unordered" -> Unordered, None
    | "placed" ->
        let n = natural ~least:1 ~most:most_cells source "the number of cells" in
        Placed (times n (fun () -> place source)), Some n
    | found -> expected source "ordered, unordered or placed" found in
  let kind = word source "cells or weights" in
  if kind <> "cells" && kind <> "weights" then expected source "cells or weights" kind;
  let n = natural ~least:1 ~most:most_cells source "the number of cells" in
  if places <> None && places <> Some n then refuse source "as many places as cells are expected";
  let weights =
    if kind = "cells" then times n (fun () -> Zint.one) else times n (fun () -> weight source) in
  if List.for_all (fun w -> Zint.sign w = 0) weights then refuse source "all weights are 0";
  { axis = order; weights }

(* A feature that exists, as an index of the numbers of cells. *)
let feature_index source cells = natural ~most:(Array.length cells - 1) source "a feature"

let ranges source n_cells =
  let n = natural ~most:most_cells source "the number of ranges" in
  let last = ref (-1) in
  let bound () =
    let found = natural ~most:n_cells source "a cell" in
    if found <= !last then refuse source "ranges overlap, touch, are empty or are not in order";
    last := found;
    found in
  times n (fun () -> let a = bound () in let b = bound () in (a, b))

let rec tree source cells depth =
  match word source "n or l" with
  | "l" -> Leaf (integer source "a value")
  | "n" ->
      if depth = 1000 then refuse source "a tree is deeper than 1000 nodes";
      let f = feature_index source cells in
      let tested = ranges source cells.(f) in
      let left = tree source cells (depth + 1) in
      Node (f, tested, left, tree source cells (depth + 1))
  | found -> expected source "n or l" found

let once source what features =
  let sorted = List.sort compare features in
  let rec look = function
    | a :: (b :: _ as rest) -> if a = b then refuse source (what ^ " twice") else look rest
    | _ -> () in
  look sorted

let change source =
  let number what = integer source what in
  match word source "a change" with
  | "gap" -> Gap (number "the gap")
  | "rise" -> Rise (number "the gap")
  | "fall" -> Fall (number "the gap")
  | "flip" -> let t = number "the cut-off" in Flip (t, t, t)
  | "flip-up" -> let t = number "the cut-off" in FlipUp (t, t)
  | "flip-down" -> let t = number "the cut-off" in FlipDown (t, t)
  | "flip-sure" ->
      let l = number "the lower start" in
      let t = number "the cut-off" in
      Flip (l, t, number "the upper start")
  | "flip-up-sure" -> let l = number "the lower start" in FlipUp (l, number "the cut-off")
  | "flip-down-sure" -> let t = number "the cut-off" in FlipDown (t, number "the upper start")
  | "class" -> Class
  | "class-to" -> ClassTo (natural source "a class")
  | "class-from" -> ClassFrom (natural source "a class")
  | found -> expected source "a change" found

let outputs source cells change =
  keyword source "outputs";
  let n = natural ~least:1 source "the number of outputs" in
  (match change with
   | Class -> if n < 2 then refuse source "a change between classes needs at least 2 outputs"
   | ClassTo c | ClassFrom c ->
       if n < 2 then refuse source "a change between classes needs at least 2 outputs";
       if c >= n then refuse source "the class of the change is not among the outputs"
   | _ -> if n <> 1 then refuse source "this change needs exactly 1 output");
  next_line source;
  times n (fun () -> section source "trees" (fun () -> tree source cells 0))

let read_question source =
  keyword source "xcount-question";
  keyword source "1";
  next_line source;
  let grid = section ~least:1 ~most:1000000 source "features" (feature source) in
  let cells = Array.of_list (List.map (fun f -> List.length f.weights) grid) in
  keyword source "sensitive";
  let n = natural ~least:1 ~most:64 source "the number of sensitive features" in
  let sensitive = times n (fun () -> feature_index source cells) in
  once source "a sensitive feature" sensitive;
  next_line source;
  keyword source "distance";
  let distance = match word source "a distance" with
    | "any" -> None
    | found ->
        let d = natural_of source "a distance" largest found in
        if d < 1 then refuse source "a distance is at least 1";
        Some d in
  next_line source;
  keyword source "change";
  let asked = change source in
  next_line source;
  let closed = section source "closed" (fun () ->
    let f = feature_index source cells in (f, ranges source cells.(f))) in
  once source "a closed feature" (List.map fst closed);
  let along = section source "along" (fun () ->
    let f = feature_index source cells in
    let n = natural ~most:most_cells source "the number of cells" in
    if n <> cells.(f) then refuse source "as many targets as cells are expected";
    if List.mem f sensitive then refuse source "a sensitive feature cannot move along";
    (f, times n (fun () -> natural ~most:(n - 1) source "a cell"))) in
  once source "a feature that moves along" (List.map fst along);
  let trees name = section source name (fun () -> tree source cells 0) in
  let rules = trees "rules" in
  let from = trees "from" in
  let to_ = trees "to" in
  let outs = outputs source cells asked in
  keyword source "end";
  next_line source;
  if source.place <> String.length source.text then refuse source "text after the end";
  { q_grid = grid; q_outputs = outs; q_sensitive = sensitive; q_distance = distance;
    q_change = asked; q_closed = closed; q_along = along; q_rules = rules; q_from = from; q_to = to_ }

let question text = read_question (open_text text)

(* One thing a line, up to the end of the text. *)
let lines source read =
  let rec go found =
    if source.place = String.length source.text then List.rev found
    else begin
      let next = read () in
      next_line source;
      go (next :: found)
    end in
  go []

(* Regions: one line each, a cell for every feature. *)
let regions n_features text =
  let source = open_text text in
  lines source (fun () -> times n_features (fun () -> natural ~most:most_cells source "a cell"))

(* Integers: one line each. *)
let integers text =
  let source = open_text text in
  lines source (fun () -> integer source "a sum")
