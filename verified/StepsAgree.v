(** Operations on step functions act cell by cell, and sets of cells are what they say. *)
From Coq Require Import List Arith ZArith Bool Lia.
From XCount Require Import Spec Count.
Import ListNotations.

(** P holds for every value of a step function. *)
Fixpoint everywhere {A} (P : A -> Prop) (r : steps A) : Prop :=
  match r with Always a => P a | Until _ a r' => P a /\ everywhere P r' end.

Ltac compare_cells :=
  repeat match goal with
  | |- context [(?a <? ?b)%nat] => destruct (Nat.ltb_spec a b)
  | |- context [(?a <=? ?b)%nat] => destruct (Nat.leb_spec a b)
  | |- context [(?a =? ?b)%nat] => destruct (Nat.eqb_spec a b)
  end; subst; try lia; auto.

(** * What the operations yield at a cell *)
Lemma at_smap : forall A B (h : A -> B) r c, at_cell (smap h r) c = h (at_cell r c).
Proof. induction r; simpl; intros; auto. destruct (c <? u)%nat; auto. Qed.
Lemma at_szip : forall A B C (h : A -> B -> C) r1 r2 c,
  at_cell (szip h r1 r2) c = h (at_cell r1 c) (at_cell r2 c).
Proof.
  induction r1 as [a|u1 a r1 IH]; intros r2 c.
  - simpl. apply at_smap.
  - induction r2 as [b|u2 b r2 IH2].
    + cbn [szip at_cell]. rewrite IH. cbn [at_cell]. compare_cells.
    + cbn [szip]. cbn [szip] in IH2.
      destruct (Nat.eqb_spec u1 u2); [|destruct (Nat.ltb_spec u1 u2)].
      * cbn [at_cell]. rewrite IH. compare_cells.
      * cbn [at_cell]. rewrite IH. cbn [at_cell]. compare_cells.
      * cbn [at_cell]. rewrite IH2. cbn [at_cell]. compare_cells.
Qed.
Lemma at_drop_below : forall A (r : steps A) c x,
  (c <= x)%nat -> at_cell (drop_below c r) x = at_cell r x.
Proof.
  induction r; simpl; intros; auto.
  destruct (Nat.leb_spec u c); simpl; auto. rewrite IHr by auto. compare_cells.
Qed.
Lemma at_join_at : forall A (r1 r2 : steps A) c x,
  at_cell (join_at c r1 r2) x = if (x <? c)%nat then at_cell r1 x else at_cell r2 x.
Proof.
  induction r1; simpl; intros.
  - compare_cells. apply at_drop_below; auto.
  - destruct (Nat.ltb_spec u c); cbn [at_cell].
    + rewrite IHr1. compare_cells.
    + destruct (Nat.ltb_spec x c).
      * compare_cells.
      * apply at_drop_below; auto.
Qed.
Lemma at_indicator : forall s c, at_cell (indicator s) c = mem c s.
Proof.
  induction s as [|[a b] s IH]; intros c; cbn [indicator mem existsb]. reflexivity.
  rewrite at_szip, IH. fold (mem c s). f_equal. cbn [at_cell]. compare_cells.
Qed.
Lemma at_pick : forall A s (r1 r2 : steps A) c,
  at_cell (pick s r1 r2) c = if mem c s then at_cell r1 c else at_cell r2 c.
Proof.
  intros A s r1 r2 c.
  assert (E : at_cell (szip (fun (m : bool) (p : A * A) => if m then fst p else snd p)
                            (indicator s) (szip pair r1 r2)) c
              = if mem c s then at_cell r1 c else at_cell r2 c).
  { rewrite !at_szip, at_indicator. destruct (mem c s); reflexivity. }
  unfold pick. destruct s as [|[[|a] b] [|q s]]; auto.
  rewrite at_join_at. cbn [mem existsb]. rewrite orb_false_r. reflexivity.
Qed.

(** * Which properties of values the operations keep *)
Lemma everywhere_smap : forall A B (P : B -> Prop) (h : A -> B) r,
  everywhere (fun a => P (h a)) r -> everywhere P (smap h r).
Proof. induction r; simpl; intros; auto. tauto. Qed.
Lemma everywhere_weaken : forall A (P Q : A -> Prop) r,
  (forall a, P a -> Q a) -> everywhere P r -> everywhere Q r.
Proof. induction r; simpl; intros; auto. destruct H0; auto. Qed.
Lemma everywhere_szip : forall A B C (h : A -> B -> C) (P : A -> Prop) (Q : B -> Prop) (R : C -> Prop),
  (forall a b, P a -> Q b -> R (h a b)) ->
  forall r1 r2, everywhere P r1 -> everywhere Q r2 -> everywhere R (szip h r1 r2).
Proof.
  intros A B C h P Q R H. induction r1 as [a|u1 a r1 IH]; intros r2 H1 H2.
  - simpl in *. apply everywhere_smap. apply everywhere_weaken with (P := Q); auto.
  - destruct H1 as [Ha H1]. induction r2 as [b|u2 b r2 IH2].
    + cbn [szip everywhere] in *. split; [auto|apply IH; simpl; auto].
    + destruct H2 as [Hb H2]. cbn [szip].
      destruct (u1 =? u2)%nat; [|destruct (u1 <? u2)%nat]; cbn [everywhere];
        (split; [solve [auto]|]).
      * apply IH; auto.
      * apply IH; simpl; auto.
      * apply IH2; auto.
Qed.
Lemma everywhere_drop_below : forall A (P : A -> Prop) r c,
  everywhere P r -> everywhere P (drop_below c r).
Proof. induction r; simpl; intros; auto. destruct (u <=? c)%nat; simpl; auto. apply IHr; tauto. Qed.
Lemma everywhere_join_at : forall A (P : A -> Prop) r1 r2 c,
  everywhere P r1 -> everywhere P r2 -> everywhere P (join_at c r1 r2).
Proof.
  induction r1; simpl; intros. split; auto; apply everywhere_drop_below; auto.
  destruct (u <? c)%nat; simpl; split; try tauto. apply IHr1; tauto.
  apply everywhere_drop_below; auto.
Qed.
Lemma everywhere_true : forall A (r : steps A), everywhere (fun _ => True) r.
Proof. induction r; simpl; auto. Qed.
Lemma everywhere_pick : forall A (P : A -> Prop) s r1 r2,
  everywhere P r1 -> everywhere P r2 -> everywhere P (pick s r1 r2).
Proof.
  intros A P s r1 r2 H1 H2.
  assert (E : everywhere P (szip (fun (m : bool) (p : A * A) => if m then fst p else snd p)
                                 (indicator s) (szip pair r1 r2))).
  { apply everywhere_szip with (P := fun _ => True) (Q := fun p => P (fst p) /\ P (snd p)).
    - intros m p _ [? ?]. destruct m; auto.
    - apply everywhere_true.
    - apply everywhere_szip with (P := P) (Q := P); auto. }
  unfold pick. destruct s as [|[[|a] b] [|q s]]; auto. apply everywhere_join_at; auto.
Qed.

(** * Sets of cells *)
Lemma mem_In : forall c s, mem c s = true <-> exists a b, In (a, b) s /\ (a <= c < b)%nat.
Proof.
  intros. unfold mem. rewrite existsb_exists. split.
  - intros ([a b] & H & E). apply andb_true_iff in E. destruct E as [E1 E2].
    apply Nat.leb_le in E1. apply Nat.ltb_lt in E2. exists a, b. auto.
  - intros (a & b & H & E1 & E2). exists (a, b). split; auto.
    apply Nat.leb_le in E1. apply Nat.ltb_lt in E2. rewrite E1, E2. reflexivity.
Qed.
Lemma subset_mem : forall s s' c, subset s s' = true -> mem c s = true -> mem c s' = true.
Proof.
  intros s s' c H M. apply mem_In in M. destruct M as (a & b & I & R).
  unfold subset in H. rewrite forallb_forall in H. apply H in I. apply existsb_exists in I.
  destruct I as ([a' b'] & I & E). apply andb_true_iff in E. cbn in E. destruct E as [E1 E2].
  apply Nat.leb_le in E1. apply Nat.leb_le in E2. apply mem_In. exists a', b'. split; auto. lia.
Qed.
Lemma disjoint_mem : forall s s' c, disjoint s s' = true -> mem c s = true -> mem c s' = false.
Proof.
  intros s s' c H M. apply not_true_is_false. intros M'.
  apply mem_In in M. destruct M as (a & b & I & R).
  apply mem_In in M'. destruct M' as (a' & b' & I' & R').
  unfold disjoint in H. rewrite forallb_forall in H. apply H in I.
  rewrite forallb_forall in I. apply I in I'.
  apply orb_true_iff in I'. cbn in I'. destruct I' as [E|E]; apply Nat.leb_le in E; lia.
Qed.
Lemma cells_eqb_eq : forall s s', cells_eqb s s' = true -> s = s'.
Proof.
  unfold cells_eqb. induction s as [|[a b] s IH]; destruct s' as [|[a' b'] s']; simpl; intros H;
    try discriminate; auto.
  apply andb_true_iff in H. destruct H as [H1 H2]. apply andb_true_iff in H1. destruct H1 as [E1 E2].
  apply Nat.eqb_eq in E1. apply Nat.eqb_eq in E2. subst. f_equal. auto.
Qed.
Lemma mem_add_range : forall c d s, mem c (add_range d s) = (c =? d)%nat || mem c s.
Proof.
  intros c d s.
  assert (E : mem c ((d, S d) :: s) = (c =? d)%nat || mem c s).
  { cbn [mem existsb]. fold (mem c s). f_equal. compare_cells. }
  destruct s as [|[a b] s]; cbn [add_range]; auto.
  destruct (Nat.eqb_spec a (S d)) as [->|N]; cbn [andb]; auto.
  destruct (Nat.ltb_spec (S d) b); auto.
  cbn [mem existsb]. fold (mem c s). rewrite orb_assoc. f_equal. compare_cells.
Qed.
Lemma mem_cells_where : forall P n c, mem c (cells_where P n) = (c <? n)%nat && P c.
Proof.
  intros P n c. unfold cells_where.
  assert (E : forall k lo, mem c (fold_right (fun c s => if P c then add_range c s else s) [] (seq lo k))
                           = (lo <=? c)%nat && (c <? lo + k)%nat && P c).
  { induction k as [|k IH]; intros lo; cbn [seq fold_right].
    - compare_cells.
    - specialize (IH (S lo)). destruct (P lo) eqn:Q.
      + rewrite mem_add_range, IH. destruct (Nat.eqb_spec c lo) as [->|N].
        * rewrite Q. compare_cells.
        * cbn [orb]. f_equal. compare_cells.
      + rewrite IH. destruct (Nat.eqb_spec c lo) as [->|N].
        * rewrite Q, !andb_false_r. reflexivity.
        * f_equal. compare_cells. }
  rewrite (E n 0%nat). reflexivity.
Qed.
