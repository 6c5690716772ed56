(** The counter.

    For every mask m of the sensitive features the question becomes a formula over the other
    features: "some allowed neighbour m' of m has a change".  [solve] counts the regions at which
    a formula holds by eliminating one feature at a time.  Functions that are marked as untrusted
    are parameters: the theorem holds for all of them. *)
From Coq Require Import List Arith ZArith Bool.
From XCount Require Import Spec.
Import ListNotations.
Open Scope Z_scope.

(** * Step functions: what happens at each cell of one feature *)
Inductive steps (A : Type) :=
  | Always (a : A)
  | Until (u : nat) (a : A) (r : steps A).   (* a at the cells below u, then r *)
Arguments Always {A}. Arguments Until {A}.
Fixpoint at_cell {A} (r : steps A) (c : nat) : A :=
  match r with
  | Always a => a
  | Until u a r' => if (c <? u)%nat then a else at_cell r' c
  end.
Fixpoint smap {A B} (h : A -> B) (r : steps A) : steps B :=
  match r with Always a => Always (h a) | Until u a r' => Until u (h a) (smap h r') end.
Fixpoint szip {A B C} (h : A -> B -> C) (r1 : steps A) : steps B -> steps C :=
  match r1 with
  | Always a => smap (h a)
  | Until u1 a r1' =>
      fix zip2 (r2 : steps B) : steps C :=
        match r2 with
        | Always b => Until u1 (h a b) (szip h r1' r2)
        | Until u2 b r2' =>
            if (u1 =? u2)%nat then Until u1 (h a b) (szip h r1' r2')
            else if (u1 <? u2)%nat then Until u1 (h a b) (szip h r1' r2)
            else Until u2 (h a b) (zip2 r2')
        end
  end.
Fixpoint drop_below {A} (c : nat) (r : steps A) : steps A :=
  match r with
  | Always a => r
  | Until u a r' => if (u <=? c)%nat then drop_below c r' else r
  end.
(** r1 below the cell c, r2 from c on *)
Fixpoint join_at {A} (c : nat) (r1 r2 : steps A) : steps A :=
  match r1 with
  | Always a => Until c a (drop_below c r2)
  | Until u a r' => if (u <? c)%nat then Until u a (join_at c r' r2)
                    else Until c a (drop_below c r2)
  end.
Fixpoint indicator (s : cells) : steps bool :=
  match s with
  | [] => Always false
  | (a, b) :: s' => szip orb (Until a false (Until b true (Always false))) (indicator s')
  end.
(** r1 at the cells of s, r2 at the others *)
Definition pick {A} (s : cells) (r1 r2 : steps A) : steps A :=
  match s with
  | [(O, b)] => join_at b r1 r2
  | _ => szip (fun (m : bool) (p : A * A) => if m then fst p else snd p)
              (indicator s) (szip pair r1 r2)
  end.

(** * Sets of cells *)
Definition inside_range (p q : nat * nat) : bool := ((fst q <=? fst p) && (snd p <=? snd q))%nat.
Definition apart_ranges (p q : nat * nat) : bool := ((snd p <=? fst q) || (snd q <=? fst p))%nat.
Definition subset (s s' : cells) : bool := forallb (fun p => existsb (inside_range p) s') s.
Definition disjoint (s s' : cells) : bool := forallb (fun p => forallb (apart_ranges p) s') s.
Definition add_range (c : nat) (s : cells) : cells :=
  match s with
  | (a, b) :: s' => if ((a =? S c) && (a <? b))%nat then (c, b) :: s' else (c, S c) :: s
  | [] => [(c, S c)]
  end.
(** the cells below n that satisfy P *)
Definition cells_where (P : nat -> bool) (n : nat) : cells :=
  fold_right (fun c s => if P c then add_range c s else s) [] (seq 0 n).

Fixpoint listeqb {A} (eq : A -> A -> bool) (a b : list A) : bool :=
  match a, b with
  | [], [] => true
  | x :: a', y :: b' => eq x y && listeqb eq a' b'
  | _, _ => false
  end.
Definition cells_eqb (s s' : cells) : bool :=
  listeqb (fun p q => (fst p =? fst q) && (snd p =? snd q))%nat s s'.

(** * Trees that carry a hash (which means nothing) and bounds of their values *)
Inductive ctree :=
  | CLeaf (v : Z)
  | CNode (hash : nat) (lowest highest : Z) (f : nat) (s : cells) (l r : ctree).
Definition tmin t := match t with CLeaf v => v | CNode _ mn _ _ _ _ _ => mn end.
Definition tmax t := match t with CLeaf v => v | CNode _ _ mx _ _ _ _ => mx end.
Fixpoint ctree_eqb (a b : ctree) : bool :=
  match a, b with
  | CLeaf v, CLeaf w => v =? w
  | CNode h _ _ f c l r, CNode h' _ _ f' c' l' r' =>
      (h =? h')%nat
      && ((f =? f')%nat && (cells_eqb c c' && (ctree_eqb l l' && ctree_eqb r r')))
  | _, _ => false
  end.
(** the sum of the leaves among some trees, and the other trees *)
Fixpoint split_leaves (ts : list ctree) : Z * list ctree :=
  match ts with
  | [] => (0, [])
  | t :: ts' => let (k, r) := split_leaves ts' in
                match t with CLeaf v => (v + k, r) | _ => (k, t :: r) end
  end.

(** * States: formulas over sums of trees *)
Inductive test := TGt (T : Z) | TLe (T : Z) | TAbs (G : Z). (* sum > T; sum <= T; |sum| > G *)
Inductive op := And | Or | Xor.
Inductive form :=
  | FConst (b : bool)
  | FAtom (a : test) (offset : Z) (ts : list ctree)
  | FBin (p : op) (l r : form).
Definition pass (a : test) (v : Z) : bool :=
  match a with TGt T => T <? v | TLe T => v <=? T | TAbs G => G <? Z.abs v end.
Definition apply (p : op) (a b : bool) : bool :=
  match p with And => a && b | Or => a || b | Xor => xorb a b end.

(** A box says for which offsets of a formula's atoms an answer holds. *)
Inductive box := BAny | BNever | BRange (lo hi : Z) | BPair (l r : box).
Fixpoint inside (p : form) (b : box) {struct b} : bool :=
  match b, p with
  | BAny, _ => true
  | BRange lo hi, FAtom _ o _ => (lo <=? o) && (o <=? hi)
  | BPair b1 b2, FBin _ l r => inside l b1 && inside r b2
  | _, _ => false
  end.
Fixpoint meet (a b : box) : box :=
  match a, b with
  | BAny, _ => b
  | _, BAny => a
  | BRange lo hi, BRange lo' hi' => BRange (Z.max lo lo') (Z.min hi hi')
  | BPair a1 a2, BPair b1 b2 => BPair (meet a1 b1) (meet a2 b2)
  | _, _ => BNever
  end.
(** b is about the offsets of the child q, the result about those of its parent p *)
Fixpoint unshift (p q : form) (b : box) {struct b} : box :=
  match b, p, q with
  | BAny, _, _ => BAny
  | BRange lo hi, FAtom _ o _, FAtom _ o' _ => BRange (lo - (o' - o)) (hi - (o' - o))
  | BPair b1 b2, FBin _ l r, FBin _ l' r' => BPair (unshift l l' b1) (unshift r r' b2)
  | _, _, _ => BNever
  end.
Definition test_eqb (a b : test) : bool :=
  match a, b with
  | TGt x, TGt y | TLe x, TLe y | TAbs x, TAbs y => x =? y
  | _, _ => false
  end.
Definition op_eqb (a b : op) : bool :=
  match a, b with And, And | Or, Or | Xor, Xor => true | _, _ => false end.
(** the same formula, up to offsets *)
Fixpoint same_form (p q : form) : bool :=
  match p, q with
  | FConst a, FConst b => Bool.eqb a b
  | FAtom a _ ts, FAtom a' _ ts' => test_eqb a a' && listeqb ctree_eqb ts ts'
  | FBin o l r, FBin o' l' r' => op_eqb o o' && (same_form l l' && same_form r r')
  | _, _ => false
  end.

(** ** Deciding atoms by bounds.  A trace tells how the box of the rest becomes one of the whole. *)
Inductive trace :=
  | KDone (b : box) | KKeep | KBin (l r : trace)
  | KLeft (l : trace) (b : box) | KRight (b : box) (r : trace).
Fixpoint lift (k : trace) (b : box) : box :=
  match k with
  | KDone b' => match b with BAny => b' | _ => BNever end
  | KKeep => b
  | KBin l r => match b with
                | BPair b1 b2 => BPair (lift l b1) (lift r b2)
                | BAny => BPair (lift l BAny) (lift r BAny)
                | _ => BNever
                end
  | KLeft l b2 => BPair (lift l b) b2
  | KRight b1 r => BPair b1 (lift r b)
  end.
Definition constant (p : form) : option bool := match p with FConst b => Some b | _ => None end.
Definition absorbs (p : op) (q : form) : bool :=
  match p, q with And, FConst false | Or, FConst true => true | _, _ => false end.
Definition neutral (p : op) (q : form) : bool :=
  match p, q with
  | And, FConst true | Or, FConst false | Xor, FConst false => true
  | _, _ => false
  end.

(** * The memo: a search tree over hashes, whose order does not matter for correctness *)
Record entry := Entry { e_form : form; e_box : box; e_count : Z }.
Inductive memo := Empty | Table (k : nat) (es : list entry) (l r : memo).
Fixpoint entries (mm : memo) (k : nat) : list entry :=
  match mm with
  | Empty => []
  | Table k' es l r => if (k =? k')%nat then es
                       else if (k <? k')%nat then entries l k else entries r k
  end.
Fixpoint insert (mm : memo) (k : nat) (e : entry) : memo :=
  match mm with
  | Empty => Table k [e] Empty Empty
  | Table k' es l r => if (k =? k')%nat then Table k' (e :: es) l r
                       else if (k <? k')%nat then Table k' es (insert l k e) r
                       else Table k' es l (insert r k e)
  end.
Fixpoint scan (es : list entry) (p : form) : option (Z * box) :=
  match es with
  | [] => None
  | e :: es' => if inside p (e_box e) && same_form (e_form e) p
                then Some (e_count e, e_box e) else scan es' p
  end.

(** * Runs of equal weights *)
Definition runs := list (nat * Z).
Fixpoint compress (l : list Z) : runs :=
  match l with
  | [] => []
  | w :: l' => match compress l' with
               | (n, w') :: r => if w =? w' then (S n, w') :: r else (1%nat, w) :: (n, w') :: r
               | [] => [(1%nat, w)]
               end
  end.
Definition run_sum (rs : runs) : Z := fold_right (fun '(n, w) a => Z.of_nat n * w + a) 0 rs.
(** the weight of the first k cells, and the rest *)
Fixpoint run_take (k : nat) (rs : runs) : Z * runs :=
  match rs with
  | [] => (0, [])
  | (n, w) :: r => if (k <? n)%nat then (Z.of_nat k * w, (n - k, w)%nat :: r)
                   else let (s, r') := run_take (k - n) r in (Z.of_nat n * w + s, r')
  end.

(** * Masks: one cell for each sensitive feature *)
Fixpoint put (x : region) (f c : nat) : region :=
  match x, f with
  | [], _ => []
  | _ :: x', O => c :: x'
  | a :: x', S f' => a :: put x' f' c
  end.
Fixpoint put_mask (x : region) (S m : list nat) : region :=
  match S, m with
  | f :: S', c :: m' => put_mask (put x f c) S' m'
  | _, _ => x
  end.
Definition cell_weights (g : grid) (f : nat) : list Z := weights (nth f g (Feature Unordered [])).
Definition n_cells (g : grid) (f : nat) : nat := length (cell_weights g f).
Fixpoint masks (g : grid) (S : list nat) : list (list nat) :=
  match S with
  | [] => [[]]
  | f :: S' => flat_map (fun c => map (cons c) (masks g S')) (seq 0 (n_cells g f))
  end.
Fixpoint mask_weight (g : grid) (S m : list nat) : Z :=
  match S, m with
  | f :: S', c :: m' => nth c (cell_weights g f) 0 * mask_weight g S' m'
  | _, _ => 1
  end.
Fixpoint cell_in_mask (S m : list nat) (f : nat) : option nat :=
  match S, m with
  | s :: S', c :: m' =>
      match cell_in_mask S' m' f with
      | Some k => Some k
      | None => if (f =? s)%nat then Some c else None
      end
  | _, _ => None
  end.
(** how often a region with given other cells occurs among all masks, by weight *)
Definition copies (g : grid) (S : list nat) : Z :=
  fold_right (fun f a => zsum (cell_weights g f) * a) 1 S.
Definition total (g : grid) : Z := fold_right (fun F a => zsum (weights F) * a) 1 g.

(** What becomes of a feature's cell on the way from a region to the one where trees are read. *)
Inductive fate := Fixed (c : nat) | Moved (cs : list nat) | Stays.

Section Counter.
  (** untrusted: hashes; which feature to eliminate; a large number for boxes without an end;
      which states are remembered *)
  Variable hash_leaf : Z -> nat.
  Variable hash_node : nat -> cells -> nat -> nat -> nat.
  Variable hash_mix : nat -> nat -> nat.
  Variable choose : form -> nat.
  Variable big : Z.
  Variable use_memo : form -> bool.

  (** * Trees *)
  Definition tree_hash t := match t with CLeaf v => hash_leaf v | CNode h _ _ _ _ _ _ => h end.
  Definition node f s l r :=
    if ctree_eqb l r then l
    else CNode (hash_node f s (tree_hash l) (tree_hash r))
               (Z.min (tmin l) (tmin r)) (Z.max (tmax l) (tmax r)) f s l r.
  Definition preimage (cs : list nat) (s : cells) : cells :=
    cells_where (fun c => mem (nth c cs 0%nat) s) (length cs).
  (** the tree over the features that are left, after the fate of each feature *)
  Fixpoint convert (how : nat -> fate) (t : tree) : ctree :=
    match t with
    | Leaf v => CLeaf v
    | Node f s l r =>
        match how f with
        | Fixed c => if mem c s then convert how l else convert how r
        | Moved cs => node f (preimage cs s) (convert how l) (convert how r)
        | Stays => node f s (convert how l) (convert how r)
        end
    end.
  (** what is left of t where [mem (cell of f) s = side] *)
  Fixpoint prune (side : bool) (f : nat) (s : cells) (t : ctree) : ctree :=
    match t with
    | CLeaf _ => t
    | CNode _ _ _ f' s' l r =>
        if ((f' =? f)%nat && (if side then subset s s' else false))%bool
        then prune side f s l
        else if ((f' =? f)%nat && (if side then disjoint s s' else subset s' s))%bool
        then prune side f s r
        else node f' s' (prune side f s l) (prune side f s r)
    end.
  Fixpoint subtract_from (a : Z) (t : ctree) : ctree :=
    match t with
    | CLeaf v => CLeaf (a - v)
    | CNode _ _ _ f s l r => node f s (subtract_from a l) (subtract_from a r)
    end.
  (** the difference tree of t1 and t2 *)
  Fixpoint diff (t1 t2 : ctree) : ctree :=
    if ctree_eqb t1 t2 then CLeaf 0 else
    match t1 with
    | CLeaf a => subtract_from a t2
    | CNode _ _ _ f s l r =>
        node f s (diff l (prune true f s t2)) (diff r (prune false f s t2))
    end.
  Definition or_always (t : ctree) (o : option (steps ctree)) :=
    match o with None => Always t | Some r => r end.
  (** t at each cell of f; None if f does not occur *)
  Fixpoint elim (f : nat) (t : ctree) : option (steps ctree) :=
    match t with
    | CLeaf _ => None
    | CNode _ _ _ f' s l r =>
        if (f' =? f)%nat
        then Some (pick s (or_always l (elim f l)) (or_always r (elim f r)))
        else match elim f l, elim f r with
             | None, None => None
             | ol, or => Some (szip (node f' s) (or_always l ol) (or_always r or))
             end
    end.
  Definition elim_row (f : nat) (ts : list ctree) : steps (list ctree) :=
    fold_right (fun t acc => szip cons (or_always t (elim f t)) acc) (Always []) ts.
  Fixpoint elim_form (f : nat) (p : form) : steps form :=
    match p with
    | FConst _ => Always p
    | FAtom a o ts =>
        smap (fun ts' => let (k, r) := split_leaves ts' in FAtom a (o + k) r) (elim_row f ts)
    | FBin q l r => szip (FBin q) (elim_form f l) (elim_form f r)
    end.

  (** * Bounds.  [Some (b, (lo, hi))]: the atom is b at every region, for these offsets. *)
  Definition judge (a : test) (o : Z) (ts : list ctree) : option (bool * (Z * Z)) :=
    let mn := zsum (map tmin ts) in
    let mx := zsum (map tmax ts) in
    match a with
    | TGt T => if T <? o + mn then Some (true, (T - mn + 1, big))
               else if o + mx <=? T then Some (false, (- big, T - mx))
               else None
    | TLe T => if T <? o + mn then Some (false, (T - mn + 1, big))
               else if o + mx <=? T then Some (true, (- big, T - mx))
               else None
    | TAbs G => if G <? o + mn then Some (true, (G - mn + 1, big))
                else if o + mx <? - G then Some (true, (- big, - G - mx - 1))
                else if (- G <=? o + mn) && (o + mx <=? G) then Some (false, (- G - mn, G - mx))
                else None
    end.
  Fixpoint decide (p : form) : form * trace :=
    match p with
    | FConst _ => (p, KDone BAny)
    | FAtom a o ts =>
        match judge a o ts with
        | Some (b, (lo, hi)) => (FConst b, KDone (BRange lo hi))
        | None => (p, KKeep)
        end
    | FBin q l r =>
        let (l', kl) := decide l in
        if absorbs q l' then (l', KDone (BPair (lift kl BAny) BAny))
        else let (r', kr) := decide r in
        if absorbs q r' then (r', KDone (BPair BAny (lift kr BAny)))
        else if neutral q l' then (r', KRight (lift kl BAny) kr)
        else if neutral q r' then (l', KLeft kl (lift kr BAny))
        else match l', r' with
             | FConst a, FConst b =>
                 (FConst (apply q a b), KDone (BPair (lift kl BAny) (lift kr BAny)))
             | _, _ => (FBin q l' r', KBin kl kr)
             end
    end.
  Fixpoint form_hash (a : nat) (p : form) : nat :=
    match p with
    | FConst b => hash_mix a (if b then 3 else 4)
    | FAtom _ _ ts => fold_left (fun a t => hash_mix a (tree_hash t)) ts (hash_mix a 1)
    | FBin _ l r => form_hash (form_hash (hash_mix a 2) l) r
    end.

  (** * Elimination *)
  Variable g : grid.
  Variable axes : list runs.   (* the weights of g, compressed *)
  Variable everything : Z.     (* total g *)

  (** The sum over the steps r of (weight of the step) * (count of its formula), from the cell lo
      on, whose cells have the weights ws; the formulas are children of p. *)
  Fixpoint sum_steps (rec : memo -> form -> option (memo * Z * box)) (p : form)
      (lo : nat) (ws : runs) (mm : memo) (acc : Z) (b : box) (r : steps form)
    : option (memo * Z * box) :=
    let child w q :=
      match rec mm q with
      | None => None
      | Some (mm', n, b') => Some (mm', acc + w * n, meet b (unshift p q b'))
      end in
    match ws with
    | [] => Some (mm, acc, b)
    | _ =>
      match r with
      | Always q => child (run_sum ws) q
      | Until u q r' =>
          if (u <=? lo)%nat then sum_steps rec p lo ws mm acc b r'
          else let (w, ws') := run_take (u - lo) ws in
               match child w q with
               | None => None
               | Some (mm', acc', b') => sum_steps rec p u ws' mm' acc' b' r'
               end
      end
    end.

  (** The weight of the regions at which p holds, over the whole grid, and the box of offsets for
      which it is the same. *)
  Fixpoint solve (fuel : nat) (mm : memo) (p : form) : option (memo * Z * box) :=
    let (q, k) := decide p in
    match constant q with
    | Some b => Some (mm, if b then everything else 0, lift k BAny)
    | None =>
        let remembered := use_memo q in
        let h := if remembered then form_hash 1%nat q else 0%nat in
        match (if remembered then scan (entries mm h) q else None) with
        | Some (n, b) => Some (mm, n, lift k b)
        | None =>
            match fuel with
            | O => None
            | S fuel' =>
                let f := choose q in
                let ws := nth f axes [] in
                let w := run_sum ws in
                if (f <? length g)%nat && (0 <? w) then
                  match sum_steps (solve fuel') q 0 ws mm 0 BAny (elim_form f q) with
                  | None => None
                  | Some (mm', s, b) =>
                      let n := s / w in
                      Some (if remembered then insert mm' h (Entry q b n) else mm', n, lift k b)
                  end
                else None
            end
        end
    end.
  Definition solve_at (fuel : nat) (mm : memo) (p : form) : option (memo * Z) :=
    match solve fuel mm p with
    | None => None
    | Some (mm', n, b) => if inside p b then Some (mm', n) else None
    end.

  (** untrusted: whether to count "A or B" as |A| + |B| - |A and B| *)
  Variable by_overlap : form -> bool.
  Fixpoint count_form (fuel : nat) (mm : memo) (p : form) : option (memo * Z) :=
    match p with
    | FBin Or a b =>
        if by_overlap p then
          match count_form fuel mm a with
          | None => None
          | Some (_, na) =>
              match count_form fuel Empty b with
              | None => None
              | Some (mm2, nb) =>
                  match solve_at fuel Empty (FBin And a b) with
                  | None => None
                  | Some (_, nab) => Some (mm2, na + nb - nab)
                  end
              end
          end
        else solve_at fuel Empty p
    | _ => solve_at fuel mm p
    end.

  (** * Formulas *)
  Definition atom (a : test) (ts : list ctree) : form :=
    let (k, r) := split_leaves ts in
    match r with [] => FConst (pass a k) | _ => FAtom a k r end.
  Definition conj (p q : form) : form :=
    match p, q with
    | FConst b, _ => if b then q else FConst false
    | _, FConst b => if b then p else FConst false
    | _, _ => FBin And p q
    end.
  Definition disj (p q : form) : form :=
    match p, q with
    | FConst b, _ => if b then FConst true else q
    | _, FConst b => if b then FConst true else p
    | _, _ => FBin Or p q
    end.
  Definition is_false (p : form) : bool :=
    match constant p with Some b => negb b | None => false end.
  Definition all_of (ps : list form) : form := fold_right conj (FConst true) ps.
  Definition some_of (ps : list form) : form := fold_left disj ps (FConst false).

  Variable q : question.
  Notation S := (q_sensitive q).
  Definition start_fate (m : list nat) (f : nat) : fate :=
    match cell_in_mask S m f with Some c => Fixed c | None => Stays end.
  Definition target_fate (m : list nat) (f : nat) : fate :=
    match cell_in_mask S m f with
    | Some c => Fixed c
    | None => match lookup f (q_along q) with Some cs => Moved cs | None => Stays end
    end.
  (** whether a change can alter the value of a tree *)
  Definition moves (f : nat) : bool :=
    among f S || match lookup f (q_along q) with Some _ => true | None => false end.
  Fixpoint touched (t : tree) : bool :=
    match t with Leaf _ => false | Node f _ l r => moves f || (touched l || touched r) end.

  Definition positive_form (how : nat -> fate) (rules : list tree) : form :=
    all_of (map (fun t => atom (TGt 0) [convert how t]) rules).

  (** All that is needed of a mask: as a start, and as a target. *)
  Record stop := Stop {
    s_mask : list nat;
    s_region : region;
    s_from : form;                     (* it exists, and a change may start there *)
    s_to : form;                       (* it exists if the start does, and may be a target *)
    s_start : list (list ctree);       (* for each output, the touched trees *)
    s_target : list (list ctree) }.
  Definition zero : region := map (fun _ => 0%nat) g.
  Definition touched_outputs : list (list tree) := map (filter touched) (q_outputs q).
  Definition stop_at (m : list nat) : stop :=
    Stop m (put_mask zero S m)
      (conj (positive_form (start_fate m) (q_rules q)) (positive_form (start_fate m) (q_from q)))
      (conj (positive_form (target_fate m) (filter touched (q_rules q)))
            (positive_form (target_fate m) (q_to q)))
      (map (map (convert (start_fate m))) touched_outputs)
      (map (map (convert (target_fate m))) touched_outputs).

  Variable untouched : list (list ctree).   (* for each output, the other trees *)
  Definition row (trees : list (list ctree)) (k : nat) : list ctree :=
    nth k untouched [] ++ nth k trees [].
  Definition differences (a b : list (list ctree)) : list ctree :=
    map (fun '(t, t') => diff t t') (combine (nth 0 a []) (nth 0 b [])).
  (** output k minus output j *)
  Definition lead (trees : list (list ctree)) (k j : nat) : list ctree :=
    row trees k ++ map (subtract_from 0) (row trees j).
  Definition wins_form (trees : list (list ctree)) (k : nat) : form :=
    all_of (map (fun j => if (j <? k)%nat then atom (TGt 0) (lead trees k j)
                          else atom (TGt (-1)) (lead trees k j))
                (seq 0 (length (q_outputs q)))).
  Definition loses_form (trees : list (list ctree)) (k : nat) : form :=
    some_of (map (fun j => if (j <? k)%nat then atom (TLe 0) (lead trees k j)
                           else atom (TLe (-1)) (lead trees k j))
                 (seq 0 (length (q_outputs q)))).

  (** untrusted: whether to subtract two masks the other way round *)
  Variable swap : list nat -> list nat -> bool.
  Definition changed_form (a b : stop) : form :=
    let v := s_start a in
    let w := s_target b in
    match q_change q with
    | Gap G => atom (TAbs G) (if swap (s_mask a) (s_mask b) then differences v w
                              else differences w v)
    | Rise G => atom (TGt G) (differences w v)
    | Fall G => atom (TGt G) (differences v w)
    | Flip L T H =>
        if (L =? T) && (T =? H)
        then FBin Xor (atom (TGt T) (row v 0)) (atom (TGt T) (row w 0))
        else disj (conj (atom (TLe L) (row v 0)) (atom (TGt T) (row w 0)))
                  (conj (atom (TGt H) (row v 0)) (atom (TLe T) (row w 0)))
    | FlipUp L T => conj (atom (TLe L) (row v 0)) (atom (TGt T) (row w 0))
    | FlipDown T H => conj (atom (TGt H) (row v 0)) (atom (TLe T) (row w 0))
    | Class => some_of (map (fun k => conj (wins_form v k) (loses_form w k))
                            (seq 0 (length (q_outputs q))))
    | ClassTo C => conj (loses_form v C) (wins_form w C)
    | ClassFrom C => conj (wins_form v C) (loses_form w C)
    end.
  Definition pair_form (a b : stop) : form :=
    if is_false (s_to b) then FConst false else conj (s_to b) (changed_form a b).

  (** Cells that may not be entered: by sensitive features, which masks decide ... *)
  Definition may_enter (x y : region) : bool :=
    forallb (fun '(f, s) => negb (among f S)
                            || (negb (mem (cell y f) s) || (cell y f =? cell x f)%nat))
            (q_closed q).
  (** ... and by features that move along, which the start decides. *)
  Definition entering (cs : list nat) (s : cells) : cells :=
    cells_where (fun c => mem (nth c cs 0%nat) s && negb (nth c cs 0%nat =? c)%nat) (length cs).
  Definition along_form : form :=
    all_of (map (fun '(f, s) =>
                   if among f S then FConst true
                   else match lookup f (q_along q) with
                        | None => FConst true
                        | Some cs => atom (TGt 0) [node f (entering cs s) (CLeaf 0) (CLeaf 1)]
                        end)
                (q_closed q)).

  Definition neighbours (stops : list stop) (a : stop) : list stop :=
    filter (fun b => close g S (q_distance q) (s_region a) (s_region b)
                     && may_enter (s_region a) (s_region b)) stops.
  Variable along_allowed : form.            (* along_form *)
  Definition stop_form (stops : list stop) (a : stop) : form :=
    if is_false (s_from a) then FConst false
    else conj (s_from a)
              (conj along_allowed (some_of (map (pair_form a) (neighbours stops a)))).

  (** untrusted: whether to keep the memo for the next mask *)
  Variable keep_memo : list nat -> bool.
  Fixpoint count_stops (fuel : nat) (stops : list stop) (mm : memo) (acc : Z) (todo : list stop)
    : option Z :=
    match todo with
    | [] => Some acc
    | a :: todo' =>
        match count_form fuel (if keep_memo (s_mask a) then mm else Empty) (stop_form stops a) with
        | None => None
        | Some (mm', n) =>
            count_stops fuel stops mm' (acc + mask_weight g S (s_mask a) * n) todo'
        end
    end.
End Counter.

(** Sensitive features, and the cells that features move to, are in the grid. *)
Definition is_sound (q : question) : bool :=
  let g := q_grid q in
  forallb (fun f => f <? length g)%nat (q_sensitive q)
  && forallb (fun '(f, cs) => (f <? length g)%nat && (length cs =? n_cells g f)%nat
                              && forallb (fun c => c <? n_cells g f)%nat cs) (q_along q)
  && (0 <? copies g (q_sensitive q)).

(** The masks can be shared out among several processes: the part i of n has those that [owner],
    which is untrusted, gives it, and part 0 also those that nobody else has. *)
Definition in_part (owner : list nat -> nat) (n i : nat) (m : list nat) : bool :=
  if (owner m <? n)%nat then (owner m =? i)%nat else (i =? 0)%nat.

(** [Some n]: n is the sum, over the masks that are mine, of the weight of the mask times the
    weight of the sensitive regions when every region gets this mask.  [None]: the counter gives up,
    or the question is not sound. *)
Definition sum_over_masks hash_leaf hash_node hash_mix choose big use_memo by_overlap swap keep_memo
    fuel (mine : list nat -> bool) (q : question) : option Z :=
  if is_sound q then
    let g := q_grid q in
    let axes := map (fun F => compress (weights F)) g in
    let stops := map (stop_at hash_leaf hash_node g q) (masks g (q_sensitive q)) in
    let untouched := map (fun trees => map (convert hash_leaf hash_node (fun _ => Stays))
                                           (filter (fun t => negb (touched q t)) trees))
                         (q_outputs q) in
    count_stops hash_leaf hash_node hash_mix choose big use_memo g axes (total g) by_overlap
      q untouched swap (along_form hash_leaf hash_node q) keep_memo fuel stops Empty 0
      (filter (fun a => mine (s_mask a)) stops)
  else None.

(** The sum over all masks holds every region as often as there are masks, by weight. *)
Definition answer_of_sum (q : question) (n : Z) : Z := n / copies (q_grid q) (q_sensitive q).

(** [Some n]: the answer is n. *)
Definition count hash_leaf hash_node hash_mix choose big use_memo by_overlap swap keep_memo fuel
    (q : question) : option Z :=
  option_map (answer_of_sum q)
    (sum_over_masks hash_leaf hash_node hash_mix choose big use_memo by_overlap swap keep_memo fuel
       (fun _ => true) q).

(** The answer from the sums over the parts. *)
Definition answer_of_parts (q : question) (sums : list Z) : Z := answer_of_sum q (zsum sums).
