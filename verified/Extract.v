(** The counter as an OCaml program.  This file is trusted: it maps natural numbers to OCaml's
    integers (features, cells, places, hashes, fuel: the question format keeps all of them below
    2^30) and integers to [Zint], which is zarith in the native program and BigInt in JavaScript. *)
From Coq Require Import Extraction ExtrOcamlBasic ZArith Arith.
From XCount Require Import Spec Count RegionsAreDecided.
Extraction Language OCaml.

Extract Inductive nat => "int" [ "0" "succ" ]
  "(fun fO fS n -> if n = 0 then fO () else fS (n-1))".
Extract Constant Init.Nat.sub => "(fun (a:int) b -> if a < b then 0 else a - b)".
Extract Constant Init.Nat.add => "(fun (a:int) b -> a + b)".
Extract Constant Nat.eqb => "(fun (a:int) b -> a = b)".
Extract Constant Nat.ltb => "(fun (a:int) b -> a < b)".
Extract Constant Nat.leb => "(fun (a:int) b -> a <= b)".

Extract Inductive positive => "Zint.t"
  [ "(fun p -> Zint.succ (Zint.shift_left p 1))" "(fun p -> Zint.shift_left p 1)" "Zint.one" ]
  "(fun fI fO fH p -> if Zint.leq p Zint.one then fH () else if Zint.is_even p then fO (Zint.shift_right p 1) else fI (Zint.shift_right p 1))".
Extract Inductive Z => "Zint.t" [ "Zint.zero" "" "Zint.neg" ]
  "(fun f0 fp fn z -> let s = Zint.sign z in if s = 0 then f0 () else if s > 0 then fp z else fn (Zint.neg z))".
Extract Constant Z.add => "Zint.add".
Extract Constant Z.sub => "Zint.sub".
Extract Constant Z.mul => "Zint.mul".
Extract Constant Z.opp => "Zint.neg".
Extract Constant Z.min => "Zint.min".
Extract Constant Z.max => "Zint.max".
Extract Constant Z.eqb => "Zint.equal".
Extract Constant Z.ltb => "Zint.lt".
Extract Constant Z.leb => "Zint.leq".
Extract Constant Z.of_nat => "Zint.of_int".
Extract Constant Z.abs => "Zint.abs".
Extract Constant Z.div => "(fun a b -> if Zint.sign b = 0 then Zint.zero else Zint.fdiv a b)".
Extraction "counter.ml" count sum_over_masks in_part answer_of_parts decide_regions answer.
