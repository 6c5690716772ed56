(** What is counted.  This file is the whole specification: everything else in this folder is
    the counter and the proof that it returns [answer q].

    The words are those of docs/question-format.md.  The sentences in quotes are the definition
    of the problem; beside each stands what it becomes here. *)
From Coq Require Import List Arith ZArith Bool.
Import ListNotations.

(** "A feature with m guards has m + 1 cells."  A feature lists the weights of its cells (1 for
    each cell if regions are counted) and says how far apart they are. *)
Inductive order :=
  | Ordered                              (* |c - c'| *)
  | Unordered                            (* 1 if the cells differ *)
  | Placed (places : list (option nat)). (* by places; 1 from and to a cell without a place *)
Record feature := Feature { axis : order; weights : list Z }.
Definition grid := list feature.

(** "Region: one cell per feature."  Cells are numbered from 0. *)
Definition region := list nat.
Definition cell (x : region) (f : nat) : nat := nth f x 0.
Fixpoint regions (g : grid) : list region :=
  match g with
  | [] => [[]]
  | F :: g' => flat_map (fun c => map (cons c) (regions g')) (seq 0 (length (weights F)))
  end.
Fixpoint weight (g : grid) (x : region) : Z :=
  match g, x with
  | F :: g', c :: x' => (nth c (weights F) 0 * weight g' x')%Z
  | _, _ => 1%Z
  end.

(** A test sends a set of cells, given as half-open ranges, to the left. *)
Definition cells := list (nat * nat).
Definition mem (c : nat) (s : cells) : bool :=
  existsb (fun '(a, b) => (a <=? c) && (c <? b)) s.
Inductive tree := Leaf (v : Z) | Node (f : nat) (s : cells) (l r : tree).
Fixpoint value (t : tree) (x : region) : Z :=
  match t with
  | Leaf v => v
  | Node f s l r => if mem (cell x f) s then value l x else value r x
  end.

(** "V(x) = base + sum of one leaf per tree", one such sum for each output. *)
Definition zsum (l : list Z) : Z := fold_right Z.add 0%Z l.
Definition margin (trees : list tree) (x : region) : Z := zsum (map (fun t => value t x) trees).
Definition margins (outputs : list (list tree)) (x : region) : list Z :=
  map (fun trees => margin trees x) outputs.

(** "|V(b) - V(b')| > G (strict)", and the other changes, from margins v to margins w. *)
Inductive change :=
  | Gap (G : Z) | Rise (G : Z) | Fall (G : Z)
  | Flip (L T H : Z)         (* flip T is Flip T T T *)
  | FlipUp (L T : Z)         (* flip-up T is FlipUp T T *)
  | FlipDown (T H : Z)       (* flip-down T is FlipDown T T *)
  | Class | ClassTo (C : nat) | ClassFrom (C : nat).
Definition output (v : list Z) (k : nat) : Z := nth k v 0%Z.
(** Class k is the first largest: larger than those before it, at least those after it. *)
Definition wins (v : list Z) (k : nat) : bool :=
  forallb (fun j => if j <? k then (output v j <? output v k)%Z else (output v j <=? output v k)%Z)
          (seq 0 (length v)).
Definition changed (ch : change) (v w : list Z) : bool :=
  let a := output v 0 in
  let b := output w 0 in
  match ch with
  | Gap G => (G <? Z.abs (b - a))%Z
  | Rise G => (G <? b - a)%Z
  | Fall G => (G <? a - b)%Z
  | Flip L T H => (a <=? L)%Z && (T <? b)%Z || (H <? a)%Z && (b <=? T)%Z
  | FlipUp L T => (a <=? L)%Z && (T <? b)%Z
  | FlipDown T H => (H <? a)%Z && (b <=? T)%Z
  | Class => existsb (fun k => wins v k && negb (wins w k)) (seq 0 (length v))
  | ClassTo C => negb (wins v C) && wins w C
  | ClassFrom C => wins v C && negb (wins w C)
  end.

Record question := Question {
  q_grid : grid;
  q_outputs : list (list tree);
  q_sensitive : list nat;
  q_distance : option nat;            (* None: any *)
  q_change : change;
  q_closed : list (nat * cells);      (* cells that a change may leave but not enter *)
  q_along : list (nat * list nat);    (* features that move along: cell c becomes the c-th *)
  q_rules : list tree;                (* a region exists if all of these are positive *)
  q_from : list tree;                 (* the same for the start of a change *)
  q_to : list tree }.                 (* the same for its target *)

Definition all_positive (trees : list tree) (x : region) : bool :=
  forallb (fun t => 0 <? value t x)%Z trees.
Definition among (f : nat) (S : list nat) : bool := existsb (Nat.eqb f) S.

(** "The same cells on all non-sensitive features", up to those that move along. *)
Fixpoint lookup {A} (f : nat) (l : list (nat * A)) : option A :=
  match l with
  | [] => None
  | (f', a) :: l' => if f =? f' then Some a else lookup f l'
  end.
Definition expected (q : question) (x : region) (f : nat) : nat :=
  match lookup f (q_along q) with
  | Some cs => nth (cell x f) cs 0
  | None => cell x f
  end.
Definition same_elsewhere (q : question) (x y : region) : bool :=
  forallb (fun f => among f (q_sensitive q) || (cell y f =? expected q x f)) (seq 0 (length x)).

(** "Distance = sum over the sensitive features of |i - j|.  A categorical feature's cells have
    no order: its distance is 1 when they differ." *)
Definition apart (c c' : nat) : nat := if c =? c' then 0 else 1.
Definition cell_distance (g : grid) (f c c' : nat) : nat :=
  match axis (nth f g (Feature Unordered [])) with
  | Ordered => (c - c') + (c' - c)
  | Unordered => apart c c'
  | Placed places =>
      match nth c places None, nth c' places None with
      | Some p, Some p' => (p - p') + (p' - p)
      | _, _ => apart c c'
      end
  end.
Definition distance (g : grid) (S : list nat) (x y : region) : nat :=
  list_sum (map (fun f => cell_distance g f (cell x f) (cell y f)) S).
(** "1 <= distance <= d"; "d may be unlimited (any)". *)
Definition close (g : grid) (S : list nat) (d : option nat) (x y : region) : bool :=
  (1 <=? distance g S x y) &&
  match d with None => true | Some d => distance g S x y <=? d end.

Definition enters_no_closed (closed : list (nat * cells)) (x y : region) : bool :=
  forallb (fun '(f, s) => negb (mem (cell y f) s) || (cell y f =? cell x f)) closed.

(** "Sensitive region: a region b for which some region b' exists with ..." *)
Definition sensitive (q : question) (x : region) : bool :=
  all_positive (q_rules q) x && all_positive (q_from q) x &&
  existsb (fun y =>
      all_positive (q_rules q) y && all_positive (q_to q) y
      && same_elsewhere q x y
      && close (q_grid q) (q_sensitive q) (q_distance q) x y
      && enters_no_closed (q_closed q) x y
      && changed (q_change q) (margins (q_outputs q) x) (margins (q_outputs q) y))
    (regions (q_grid q)).

(** "C = the number of sensitive regions": their weight, which is their number if every cell
    has the weight 1. *)
Definition answer (q : question) : Z :=
  zsum (map (weight (q_grid q)) (filter (sensitive q) (regions (q_grid q)))).
