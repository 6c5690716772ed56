(** Conversion, subtraction and elimination of trees keep their values, and bounds are bounds. *)
From Coq Require Import List Arith ZArith Bool Lia.
From XCount Require Import Spec Count SumsOverGrids StepsAgree.
Import ListNotations.
Open Scope Z_scope.

(** * Putting cells into regions *)
Lemma put_length : forall x f c, length (put x f c) = length x.
Proof. induction x; destruct f; simpl; auto. Qed.
Lemma cell_put : forall x f c f', (f < length x)%nat ->
  cell (put x f c) f' = if (f' =? f)%nat then c else cell x f'.
Proof.
  unfold cell. induction x; intros f c f' H; simpl in H. lia.
  destruct f, f'; simpl; auto. rewrite IHx by lia. reflexivity.
Qed.

(** * Values and bounds of converted trees *)
Fixpoint cvalue (t : ctree) (x : region) : Z :=
  match t with
  | CLeaf v => v
  | CNode _ _ _ f s l r => if mem (cell x f) s then cvalue l x else cvalue r x
  end.
(** the bounds that nodes carry hold for their children *)
Fixpoint bounded (t : ctree) : Prop :=
  match t with
  | CLeaf _ => True
  | CNode _ mn mx _ _ l r =>
      bounded l /\ bounded r /\ mn <= tmin l /\ mn <= tmin r /\ tmax l <= mx /\ tmax r <= mx
  end.
Lemma value_between_bounds : forall t x, bounded t -> tmin t <= cvalue t x <= tmax t.
Proof.
  induction t; simpl; intros x H. lia.
  destruct H as (Hl & Hr & ? & ? & ? & ?). specialize (IHt1 x Hl). specialize (IHt2 x Hr).
  destruct (mem (cell x f) s); lia.
Qed.
Lemma ctree_eqb_value : forall a b x, ctree_eqb a b = true -> cvalue a x = cvalue b x.
Proof.
  induction a; destruct b; simpl; intros x H; try discriminate.
  - apply Z.eqb_eq; auto.
  - repeat (apply andb_true_iff in H; destruct H as [? H]).
    repeat match goal with
           | K : (_ =? _)%nat = true |- _ => apply Nat.eqb_eq in K
           | K : cells_eqb _ _ = true |- _ => apply cells_eqb_eq in K
           end. subst.
    rewrite (IHa1 b1), (IHa2 b2); auto.
Qed.

Section Trees.
  Variable hash_leaf : Z -> nat.
  Variable hash_node : nat -> cells -> nat -> nat -> nat.
  Notation node := (node hash_leaf hash_node).
  Notation convert := (convert hash_leaf hash_node).
  Notation prune := (prune hash_leaf hash_node).
  Notation subtract_from := (subtract_from hash_leaf hash_node).
  Notation diff := (diff hash_leaf hash_node).
  Notation elim := (elim hash_leaf hash_node).
  Notation elim_row := (elim_row hash_leaf hash_node).

  Lemma node_value : forall f s l r x,
    cvalue (node f s l r) x = if mem (cell x f) s then cvalue l x else cvalue r x.
  Proof.
    intros. unfold Count.node. destruct (ctree_eqb l r) eqn:E; auto.
    rewrite <- (ctree_eqb_value l r x E). destruct (mem (cell x f) s); auto.
  Qed.
  Lemma node_bounded : forall f s l r, bounded l -> bounded r -> bounded (node f s l r).
  Proof.
    intros. unfold Count.node. destruct (ctree_eqb l r); simpl; auto. repeat split; auto; lia.
  Qed.

  (** * Conversion *)
  (** y has, at every feature, the cell of x after that feature's fate *)
  Definition follows (how : nat -> fate) (x y : region) : Prop := forall f,
    match how f with
    | Fixed c => cell y f = c
    | Moved cs => (cell x f < length cs)%nat /\ cell y f = nth (cell x f) cs 0%nat
    | Stays => cell y f = cell x f
    end.
  Lemma convert_value : forall how x y t, follows how x y -> cvalue (convert how t) x = value t y.
  Proof.
    intros how x y t H. induction t as [v|f s l IHl r IHr]; simpl; auto.
    specialize (H f). destruct (how f) as [c|cs|].
    - rewrite H. destruct (mem c s); auto.
    - destruct H as [L E]. rewrite node_value, IHl, IHr, E.
      unfold preimage. rewrite mem_cells_where.
      destruct (Nat.ltb_spec (cell x f) (length cs)); [reflexivity|lia].
    - rewrite node_value, IHl, IHr, H. reflexivity.
  Qed.
  Lemma convert_bounded : forall how t, bounded (convert how t).
  Proof.
    induction t; simpl; auto. destruct (how f).
    destruct (mem c s); auto. all: apply node_bounded; auto.
  Qed.

  (** * Subtraction *)
  Lemma prune_value : forall side f s t x,
    mem (cell x f) s = side -> cvalue (prune side f s t) x = cvalue t x.
  Proof.
    intros side f s t x H.
    induction t as [|h mn mx f0 s' l IHl r IHr]; cbn [Count.prune]; auto.
    destruct ((f0 =? f)%nat && (if side then subset s s' else false)) eqn:E.
    - apply andb_true_iff in E. destruct E as [E1 E2]. apply Nat.eqb_eq in E1. subst f0.
      destruct side; try discriminate. rewrite IHl. cbn [cvalue].
      rewrite (subset_mem s s'); auto.
    - destruct ((f0 =? f)%nat && (if side then disjoint s s' else subset s' s)) eqn:E'.
      + apply andb_true_iff in E'. destruct E' as [E1 E2]. apply Nat.eqb_eq in E1. subst f0.
        rewrite IHr. cbn [cvalue].
        replace (mem (cell x f) s') with false; auto. symmetry. destruct side.
        * apply (disjoint_mem s s'); auto.
        * apply not_true_is_false. intros K. rewrite (subset_mem s' s) in H; auto. discriminate.
      + rewrite node_value, IHl, IHr. reflexivity.
  Qed.
  Lemma prune_bounded : forall side f s t, bounded t -> bounded (prune side f s t).
  Proof.
    induction t; intros H; cbn [Count.prune]; auto. cbn in H. destruct H as (Hl & Hr & _).
    destruct (_ && _); auto. destruct (_ && _); auto. apply node_bounded; auto.
  Qed.
  Lemma subtract_from_value : forall a t x, cvalue (subtract_from a t) x = a - cvalue t x.
  Proof.
    induction t; intros x; cbn [Count.subtract_from]; auto. rewrite node_value, IHt1, IHt2.
    cbn [cvalue]. destruct (mem (cell x f) s); reflexivity.
  Qed.
  Lemma subtract_from_bounded : forall a t, bounded (subtract_from a t).
  Proof. induction t; cbn [Count.subtract_from]; simpl; auto. apply node_bounded; auto. Qed.
  Lemma diff_value : forall t1 t2 x, cvalue (diff t1 t2) x = cvalue t1 x - cvalue t2 x.
  Proof.
    induction t1; intros t2 x; cbn [Count.diff];
      match goal with |- context [ctree_eqb ?a ?b] => destruct (ctree_eqb a b) eqn:E end;
      try (apply ctree_eqb_value with (x := x) in E; rewrite E; cbn; lia).
    - rewrite subtract_from_value. reflexivity.
    - rewrite node_value. cbn [cvalue]. destruct (mem (cell x f) s) eqn:K.
      + rewrite IHt1_1, prune_value; auto.
      + rewrite IHt1_2, prune_value; auto.
  Qed.
  Lemma diff_bounded : forall t1 t2, bounded (diff t1 t2).
  Proof.
    induction t1; intros t2; cbn [Count.diff]; destruct (ctree_eqb _ _); try exact I.
    apply subtract_from_bounded. apply node_bounded; auto.
  Qed.

  (** * Elimination: the tree at cell c of f is the tree after f was set to c *)
  Lemma elim_spec : forall f t,
    (forall c x, (f < length x)%nat ->
       cvalue (at_cell (or_always t (elim f t)) c) x = cvalue t (put x f c)) /\
    (bounded t -> everywhere bounded (or_always t (elim f t))).
  Proof.
    intros f. induction t as [v|h mn mx f' s l [IHl Wl] r [IHr Wr]].
    - split; intros; simpl; auto.
    - cbn [Count.elim].
      (* the two children, put together below a node of another feature *)
      assert (Z1 : forall c x, (f < length x)%nat ->
        cvalue (at_cell (szip (node f' s) (or_always l (elim f l)) (or_always r (elim f r))) c) x
        = if mem (cell x f') s then cvalue l (put x f c) else cvalue r (put x f c)).
      { intros. rewrite at_szip, node_value, IHl, IHr by auto. reflexivity. }
      destruct (Nat.eqb_spec f' f) as [->|N].
      + cbn [or_always]. split.
        * intros c x H. rewrite at_pick. cbn [cvalue]. rewrite cell_put by auto.
          rewrite Nat.eqb_refl. destruct (mem c s); auto.
        * intros (Hl & Hr & _). apply everywhere_pick; auto.
      + assert (Z2 : forall c x, (f < length x)%nat ->
          cvalue (CNode h mn mx f' s l r) (put x f c)
          = if mem (cell x f') s then cvalue l (put x f c) else cvalue r (put x f c)).
        { intros. cbn [cvalue]. rewrite cell_put by auto.
          destruct (Nat.eqb_spec f' f); try contradiction. reflexivity. }
        assert (W : bounded (CNode h mn mx f' s l r) ->
           everywhere bounded (szip (node f' s) (or_always l (elim f l)) (or_always r (elim f r)))).
        { intros (Hl & Hr & _). apply everywhere_szip with (P := bounded) (Q := bounded); auto.
          intros; apply node_bounded; auto. }
        destruct (elim f l) as [rl|] eqn:El; [|destruct (elim f r) as [rr|] eqn:Er].
        1,2: cbn [or_always] in *; split; auto; intros c x H; rewrite Z2 by auto; apply Z1; auto.
        (* f does not occur *)
        cbn [or_always] in *. split.
        * intros c x H. cbn [at_cell]. rewrite Z2 by auto. cbn [cvalue].
          specialize (IHl c x H). specialize (IHr c x H). cbn [at_cell] in *.
          rewrite IHl, IHr. reflexivity.
        * auto.
  Qed.

  (** * Sums of trees *)
  Definition sum_value (ts : list ctree) (x : region) : Z := zsum (map (fun t => cvalue t x) ts).
  Lemma elim_row_spec : forall f ts,
    (forall c x, (f < length x)%nat ->
       sum_value (at_cell (elim_row f ts) c) x = sum_value ts (put x f c)) /\
    (Forall bounded ts -> everywhere (Forall bounded) (elim_row f ts)).
  Proof.
    induction ts as [|t ts [IH W]]; cbn [Count.elim_row fold_right].
    - split; intros; simpl; auto.
    - fold (elim_row f ts). destruct (elim_spec f t) as [E We]. split.
      + intros c x H. rewrite at_szip. unfold sum_value in *. cbn [map].
        rewrite !zsum_cons, <- IH, <- E by auto. reflexivity.
      + intros HF. inversion HF; subst.
        apply everywhere_szip with (P := bounded) (Q := Forall bounded); auto.
  Qed.
End Trees.

Lemma sum_value_app : forall a b x, sum_value (a ++ b) x = sum_value a x + sum_value b x.
Proof. intros. unfold sum_value. rewrite map_app, zsum_app. reflexivity. Qed.
Lemma sum_between_bounds : forall ts x, Forall bounded ts ->
  zsum (map tmin ts) <= sum_value ts x <= zsum (map tmax ts).
Proof.
  unfold sum_value. induction 1 as [|t ts H]. cbn; lia.
  pose proof (value_between_bounds t x H). cbn [map]. rewrite !zsum_cons. lia.
Qed.
Lemma split_leaves_value : forall ts x,
  sum_value ts x = fst (split_leaves ts) + sum_value (snd (split_leaves ts)) x.
Proof.
  unfold sum_value. induction ts as [|t ts IH]; intros x. reflexivity. specialize (IH x).
  cbn [split_leaves]. destruct (split_leaves ts) as [k r]. cbn [map fst snd] in *.
  rewrite zsum_cons, IH. destruct t; cbn [fst snd map]; rewrite ?zsum_cons; cbn [cvalue]; lia.
Qed.
Lemma split_leaves_bounded : forall ts, Forall bounded ts -> Forall bounded (snd (split_leaves ts)).
Proof.
  induction 1 as [|t ts]; simpl; auto. destruct (split_leaves ts). simpl in *.
  destruct t; simpl; auto.
Qed.
