(** Formulas keep their meaning when bounds decide atoms and when a feature is eliminated; boxes
    contain only offsets for which that is so. *)
From Coq Require Import List Arith ZArith Bool Lia.
From XCount Require Import Spec Count SumsOverGrids StepsAgree TreesKeepValues.
Import ListNotations.
Open Scope Z_scope.

(** Does the formula hold at the region? *)
Fixpoint holds (p : form) (x : region) : bool :=
  match p with
  | FConst b => b
  | FAtom a o ts => pass a (o + sum_value ts x)
  | FBin q l r => apply q (holds l x) (holds r x)
  end.
Fixpoint bounded_form (p : form) : Prop :=
  match p with
  | FConst _ => True
  | FAtom _ _ ts => Forall bounded ts
  | FBin _ l r => bounded_form l /\ bounded_form r
  end.

(** * The same formula with other offsets *)
Fixpoint similar (p q : form) : Prop :=
  match p, q with
  | FConst a, FConst b => a = b
  | FAtom a _ ts, FAtom a' _ ts' => a = a' /\ forall x, sum_value ts x = sum_value ts' x
  | FBin o l r, FBin o' l' r' => o = o' /\ similar l l' /\ similar r r'
  | _, _ => False
  end.
Lemma similar_refl : forall p, similar p p.
Proof. induction p; simpl; auto. Qed.
Lemma similar_trans : forall p q r, similar p q -> similar q r -> similar p r.
Proof.
  induction p; destruct q, r; simpl; try tauto; try congruence.
  - intros [-> H] [-> H']. split; auto. intros. rewrite H; auto.
  - intros (-> & H1 & H2) (-> & H1' & H2'). repeat split; eauto.
Qed.
Lemma equal_rows_equal_sums : forall a b x,
  listeqb ctree_eqb a b = true -> sum_value a x = sum_value b x.
Proof.
  unfold sum_value. induction a; destruct b; cbn [listeqb map]; intros x H; try discriminate; auto.
  apply andb_true_iff in H. destruct H as [H1 H2]. rewrite !zsum_cons.
  rewrite (ctree_eqb_value _ _ x H1), (IHa b x H2). reflexivity.
Qed.
Lemma same_form_similar : forall p q, same_form p q = true -> similar p q.
Proof.
  induction p; destruct q; simpl; intros H; try discriminate.
  - apply Bool.eqb_prop; auto.
  - apply andb_true_iff in H. destruct H as [H1 H2]. split.
    + destruct a, a0; simpl in H1; try discriminate; apply Z.eqb_eq in H1; congruence.
    + intros. apply equal_rows_equal_sums; auto.
  - apply andb_true_iff in H. destruct H as [H1 H2].
    apply andb_true_iff in H2. destruct H2 as [H2 H3].
    repeat split; auto. destruct p1, p; simpl in H1; congruence || auto.
Qed.

(** * Boxes *)
Lemma inside_range_bounds : forall a o ts lo hi,
  inside (FAtom a o ts) (BRange lo hi) = true -> lo <= o <= hi.
Proof.
  simpl. intros a o ts lo hi H. apply andb_true_iff in H. destruct H as [H1 H2].
  apply Z.leb_le in H1. apply Z.leb_le in H2. lia.
Qed.
Lemma inside_meet : forall a b p, inside p (meet a b) = true -> inside p a = true /\ inside p b = true.
Proof.
  induction a as [| |lo hi|a1 IH1 a2 IH2]; intros b p H.
  - split; auto.
  - destruct b; simpl in H; discriminate.
  - destruct b; simpl in H; try discriminate; try (split; auto; fail).
    destruct p; try discriminate. apply andb_true_iff in H. destruct H as [H1 H2].
    apply Z.leb_le in H1. apply Z.leb_le in H2. simpl.
    rewrite !(proj2 (Z.leb_le _ _)) by lia. auto.
  - destruct b as [| | |b1 b2]; cbn [meet] in H; try discriminate; try (split; auto; fail).
    destruct p; try discriminate. cbn [inside] in *. apply andb_true_iff in H. destruct H as [H1 H2].
    apply IH1 in H1. apply IH2 in H2. destruct H1 as [-> ->]. destruct H2 as [-> ->]. auto.
Qed.

(** * Bounds decide atoms *)
Section Decide.
  Variable big : Z.
  Notation judge := (judge big).
  Notation decide := (decide big).

  Lemma judge_is_right : forall a o ts b lo hi o' x, Forall bounded ts ->
    judge a o ts = Some (b, (lo, hi)) -> lo <= o' <= hi -> pass a (o' + sum_value ts x) = b.
  Proof.
    intros a o ts b lo hi o' x W J K. pose proof (sum_between_bounds ts x W).
    unfold Count.judge in J. destruct a; cbn [pass].
    - destruct (Z.ltb_spec T (o' + sum_value ts x)), b; auto; exfalso;
      (destruct (T <? _); [|destruct (_ <=? T)]); inversion J; subst; lia.
    - destruct (Z.leb_spec (o' + sum_value ts x) T), b; auto; exfalso;
      (destruct (T <? _); [|destruct (_ <=? T)]); inversion J; subst; lia.
    - destruct (Z.ltb_spec G (Z.abs (o' + sum_value ts x))), b; auto; exfalso;
      (destruct (G <? _); [|destruct (_ <? - G); [|destruct (_ && _)]]); inversion J; subst; lia.
  Qed.

  (** What [decide p = (q, k)] promises: every variant of p whose offsets are in the lifted box
      has the meaning of a variant of q whose offsets are in the box. *)
  Definition reduces (p q : form) (k : trace) : Prop :=
    bounded_form q /\ forall p' b, similar p p' -> inside p' (lift k b) = true ->
      exists q', similar q q' /\ inside q' b = true /\ forall x, holds p' x = holds q' x.

  Lemma absorbs_spec : forall o q, absorbs o q = true ->
    exists c, q = FConst c /\ forall b, apply o c b = c /\ apply o b c = c.
  Proof.
    destruct o, q as [[]| |]; simpl; intros; try discriminate; eexists; split; eauto; intros []; auto.
  Qed.
  Lemma neutral_spec : forall o q, neutral o q = true ->
    exists c, q = FConst c /\ forall b, apply o c b = b /\ apply o b c = b.
  Proof.
    destruct o, q as [[]| |]; simpl; intros; try discriminate; eexists; split; eauto; intros []; auto.
  Qed.
  Lemma reduces_to_constant : forall p c k p', reduces p (FConst c) k -> similar p p' ->
    inside p' (lift k BAny) = true -> forall x, holds p' x = c.
  Proof.
    intros p c k p' [_ R] Sp B x. destruct (R p' BAny Sp B) as (q' & S1 & _ & E).
    rewrite E. destruct q'; simpl in S1; try tauto. subst; reflexivity.
  Qed.

  (** The cases of a formula of two parts, each of which was reduced. *)
  Section TwoParts.
    Variables (o : op) (l r l' r' : form) (kl kr : trace).
    Hypothesis Hl : reduces l l' kl.
    Hypothesis Hr : reduces r r' kr.
    Ltac parts p' Sp :=
      destruct p' as [| |? l0 r0]; try (simpl in Sp; tauto); destruct Sp as (<- & Sl & Sr).
    Ltac split_inside B :=
      cbn [lift inside] in B; apply andb_true_iff in B; destruct B as [B1 B2].

    Lemma left_absorbs : absorbs o l' = true ->
      reduces (FBin o l r) l' (KDone (BPair (lift kl BAny) BAny)).
    Proof.
      intros A. apply absorbs_spec in A. destruct A as (c & -> & A).
      split. exact I. intros p' b Sp B. destruct b; try discriminate. parts p' Sp.
      split_inside B. exists (FConst c). repeat split; auto. intros x. cbn [holds].
      rewrite (reduces_to_constant _ _ _ _ Hl Sl B1). apply A.
    Qed.
    Lemma right_absorbs : absorbs o r' = true ->
      reduces (FBin o l r) r' (KDone (BPair BAny (lift kr BAny))).
    Proof.
      intros A. apply absorbs_spec in A. destruct A as (c & -> & A).
      split. exact I. intros p' b Sp B. destruct b; try discriminate. parts p' Sp.
      split_inside B. exists (FConst c). repeat split; auto. intros x. cbn [holds].
      rewrite (reduces_to_constant _ _ _ _ Hr Sr B2). apply A.
    Qed.
    Lemma left_neutral : neutral o l' = true ->
      reduces (FBin o l r) r' (KRight (lift kl BAny) kr).
    Proof.
      intros A. apply neutral_spec in A. destruct A as (c & -> & A).
      split. apply Hr. intros p' b Sp B. parts p' Sp. split_inside B.
      destruct (proj2 Hr r0 b Sr B2) as (q' & S1 & S2 & S3).
      exists q'. repeat split; auto. intros x. cbn [holds].
      rewrite (reduces_to_constant _ _ _ _ Hl Sl B1), <- S3. apply A.
    Qed.
    Lemma right_neutral : neutral o r' = true ->
      reduces (FBin o l r) l' (KLeft kl (lift kr BAny)).
    Proof.
      intros A. apply neutral_spec in A. destruct A as (c & -> & A).
      split. apply Hl. intros p' b Sp B. parts p' Sp. split_inside B.
      destruct (proj2 Hl l0 b Sl B1) as (q' & S1 & S2 & S3).
      exists q'. repeat split; auto. intros x. cbn [holds].
      rewrite (reduces_to_constant _ _ _ _ Hr Sr B2), <- S3. apply A.
    Qed.
    Lemma both_constant : forall a b, l' = FConst a -> r' = FConst b ->
      reduces (FBin o l r) (FConst (apply o a b)) (KDone (BPair (lift kl BAny) (lift kr BAny))).
    Proof.
      intros a b E E'. rewrite E in Hl. rewrite E' in Hr.
      split. exact I. intros p' b0 Sp B. destruct b0; try discriminate. parts p' Sp.
      split_inside B. exists (FConst (apply o a b)). repeat split; auto. intros x. cbn [holds].
      rewrite (reduces_to_constant _ _ _ _ Hl Sl B1), (reduces_to_constant _ _ _ _ Hr Sr B2).
      reflexivity.
    Qed.
    Lemma both_kept : reduces (FBin o l r) (FBin o l' r') (KBin kl kr).
    Proof.
      destruct Hl as [Wl Rl], Hr as [Wr Rr]. split. split; auto.
      intros p' b Sp B. parts p' Sp.
      destruct b as [| | |b1 b2]; try discriminate; split_inside B;
        destruct (Rl _ _ Sl B1) as (q1 & ? & ? & E1); destruct (Rr _ _ Sr B2) as (q2 & ? & ? & E2);
        exists (FBin o q1 q2);
        (split; [simpl; auto|split; [|intros x; cbn [holds]; rewrite E1, E2; reflexivity]]).
      - reflexivity.
      - cbn [inside]. apply andb_true_iff; auto.
    Qed.
  End TwoParts.

  Lemma decide_reduces : forall p q k, bounded_form p -> decide p = (q, k) -> reduces p q k.
  Proof.
    induction p as [c|a o ts|q0 l IHl r IHr]; intros q k W H; cbn [Count.decide] in H.
    - inversion H; subst. split. exact I. intros p' b Sp B. exists p'. split; auto. split; auto.
      destruct b; simpl in B; try discriminate; auto.
    - destruct (judge a o ts) as [[b0 [lo hi]]|] eqn:J; inversion H; subst.
      + split. exact I. intros p' b Sp B. destruct b; simpl in B; try discriminate.
        destruct p' as [|a' o' ts'|]; try discriminate. destruct Sp as [<- Sp].
        apply (inside_range_bounds a o' ts') in B.
        exists (FConst b0). repeat split; auto. intros x. cbn [holds]. rewrite <- Sp.
        apply (judge_is_right a o ts b0 lo hi); auto.
      + split; auto. intros p' b Sp B. exists p'. repeat split; auto.
    - destruct W as [Wl Wr].
      destruct (decide l) as [l' kl]. specialize (IHl l' kl Wl eq_refl).
      destruct (decide r) as [r' kr]. specialize (IHr r' kr Wr eq_refl).
      destruct (absorbs q0 l') eqn:A1; [inversion H; subst; eapply left_absorbs; eauto|].
      destruct (absorbs q0 r') eqn:A2; [inversion H; subst; eapply right_absorbs; eauto|].
      destruct (neutral q0 l') eqn:N1; [inversion H; subst; eapply left_neutral; eauto|].
      destruct (neutral q0 r') eqn:N2; [inversion H; subst; eapply right_neutral; eauto|].
      pose proof (both_kept q0 _ _ _ _ _ _ IHl IHr) as D.
      destruct l' as [c1| |]; try (inversion H; subst; exact D).
      destruct r' as [c2| |]; try (inversion H; subst; exact D).
      inversion H; subst. eapply both_constant; eauto.
  Qed.
End Decide.

(** * Elimination of a feature *)
(** q is p after feature f was set to cell c *)
Fixpoint child (f c : nat) (p q : form) : Prop :=
  match p, q with
  | FConst a, FConst b => a = b
  | FAtom a o ts, FAtom a' o' ts' => a = a' /\
      forall x, (f < length x)%nat -> (o' - o) + sum_value ts' x = sum_value ts (put x f c)
  | FBin k l r, FBin k' l' r' => k = k' /\ child f c l l' /\ child f c r r'
  | _, _ => False
  end.
(** A variant of the parent whose offsets are in the unshifted box means, after setting f to c,
    the same as a variant of the child whose offsets are in the box. *)
Lemma unshift_is_right : forall f c p q, child f c p q -> forall p' b, similar p p' ->
  inside p' (unshift p q b) = true ->
  exists q', similar q q' /\ inside q' b = true /\
    forall x, (f < length x)%nat -> holds p' (put x f c) = holds q' x.
Proof.
  induction p as [a|a o ts|k l IHl r IHr]; destruct q as [a1|a1 o1 ts1|k1 l1 r1];
    intros St p' b Sp B; simpl in St; try tauto.
  - destruct b; try discriminate. exists p'. subst. split; auto. split; auto.
    destruct p'; simpl in Sp; try tauto; subst; auto.
  - destruct p' as [|a2 o2 ts2|]; simpl in Sp; try tauto.
    destruct Sp as [<- Sp]. destruct St as [<- St].
    exists (FAtom a (o2 + (o1 - o)) ts1). split. simpl; auto. split.
    + destruct b; try discriminate; auto. cbn [unshift] in B. apply inside_range_bounds in B.
      cbn [inside]. rewrite !(proj2 (Z.leb_le _ _)) by lia. auto.
    + intros x Hx. cbn [holds]. rewrite <- Sp, <- St by auto. f_equal. lia.
  - destruct p' as [| |k2 l2 r2]; simpl in Sp; try tauto.
    destruct Sp as (<- & Sl & Sr). destruct St as (<- & Tl & Tr).
    assert (X : exists b1 b2, inside l2 (unshift l l1 b1) = true
                /\ inside r2 (unshift r r1 b2) = true
                /\ forall q1 q2, inside q1 b1 = true -> inside q2 b2 = true
                                 -> inside (FBin k q1 q2) b = true).
    { destruct b; try discriminate.
      - exists BAny, BAny. destruct l, r; auto.
      - cbn [unshift inside] in B. apply andb_true_iff in B. destruct B.
        exists b1, b2. repeat split; auto. intros. cbn [inside]. apply andb_true_iff; auto. }
    destruct X as (b1 & b2 & B1 & B2 & X).
    destruct (IHl _ Tl _ _ Sl B1) as (q1 & ? & ? & E1).
    destruct (IHr _ Tr _ _ Sr B2) as (q2 & ? & ? & E2).
    exists (FBin k q1 q2). split. simpl; auto. split. auto.
    intros x Hx. cbn [holds]. rewrite E1, E2; auto.
Qed.

Section Eliminate.
  Variable hash_leaf : Z -> nat.
  Variable hash_node : nat -> cells -> nat -> nat -> nat.
  Notation elim_form := (elim_form hash_leaf hash_node).

  Lemma elim_form_child : forall f c p, child f c p (at_cell (elim_form f p) c).
  Proof.
    induction p as [b|a o ts|q l IHl r IHr]; cbn [Count.elim_form].
    - reflexivity.
    - rewrite at_smap. destruct (split_leaves _) as [k r] eqn:E. split; auto. intros x Hx.
      destruct (elim_row_spec hash_leaf hash_node f ts) as [R _]. rewrite <- (R c x Hx).
      rewrite (split_leaves_value (at_cell _ c)), E. cbn [fst snd]. lia.
    - rewrite at_szip. simpl. auto.
  Qed.
  Lemma elim_form_bounded : forall f p, bounded_form p -> everywhere bounded_form (elim_form f p).
  Proof.
    induction p as [b|a o ts|q l IHl r IHr]; cbn [Count.elim_form]; intros W.
    - exact I.
    - apply everywhere_smap. destruct (elim_row_spec hash_leaf hash_node f ts) as [_ R].
      apply everywhere_weaken with (P := Forall bounded); auto. intros ts' W'.
      pose proof (split_leaves_bounded ts' W'). destruct (split_leaves ts'). exact H.
    - destruct W. apply everywhere_szip with (P := bounded_form) (Q := bounded_form); auto.
      intros; simpl; auto.
  Qed.
End Eliminate.
