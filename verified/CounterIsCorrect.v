(** The theorem: whatever the counter returns is the answer of the specification.  It holds for
    all hashes, all choices of features and all policies of the memo. *)
From Coq Require Import List Arith ZArith Bool Lia.
From XCount Require Import Spec Count SumsOverGrids TreesKeepValues StatesKeepMeaning.
From XCount Require Import MasksCoverRegions SolverCounts FormulasSayChanged.
Import ListNotations.
Open Scope Z_scope.

Section Masks.
  Variable hash_leaf : Z -> nat.
  Variable hash_node : nat -> cells -> nat -> nat -> nat.
  Variable hash_mix : nat -> nat -> nat.
  Variable choose : form -> nat.
  Variable big : Z.
  Variable use_memo by_overlap : form -> bool.
  Variable swap : list nat -> list nat -> bool.
  Variable keep_memo : list nat -> bool.
  Variable fuel : nat.
  Variable q : question.
  Hypothesis Sound : is_sound q = true.
  Notation g := (q_grid q).
  Notation S := (q_sensitive q).
  Definition axes : list runs := map (fun F => compress (weights F)) g.
  Lemma axes_are_weights : forall f, (f < length g)%nat ->
    expand (nth f axes []) = cell_weights g f.
  Proof.
    intros f Hf. unfold axes, cell_weights.
    rewrite nth_indep with (d' := compress (weights (Feature Unordered [])))
      by (rewrite map_length; auto).
    rewrite (map_nth (fun F => compress (weights F))), expand_compress. reflexivity.
  Qed.

  Notation stop_at := (stop_at hash_leaf hash_node g q).
  Notation stops := (map stop_at (masks g S)).
  Lemma count_stops_is_sum : forall ms mm acc n, valid_memo g mm ->
    (forall m, In m ms -> In m (masks g S)) ->
    count_stops hash_leaf hash_node hash_mix choose big use_memo g axes (total g) by_overlap q
      (untouched hash_leaf hash_node q) swap (along_form hash_leaf hash_node q) keep_memo fuel
      stops mm acc (map stop_at ms) = Some n ->
    n = acc + zsum (map (fun m => mask_weight g S m
                                  * wsum g (fun x => sensitive q (put_mask x S m))) ms).
  Proof.
    induction ms as [|m ms IH]; intros mm acc n M I H; cbn [map Count.count_stops] in H.
    - inversion H; subst. cbn. lia.
    - match type of H with match ?c with _ => _ end = _ => destruct c as [[mm' k]|] eqn:C end;
        try discriminate.
      destruct (formula_says_sensitive hash_leaf hash_node q Sound swap m) as [W E];
        [apply I; left; auto|].
      apply count_form_counts in C; auto using axes_are_weights, wsum_const.
      2:{ destruct (keep_memo _); simpl; auto. }
      destruct C as [M' ->].
      apply IH in H; auto; [|intros; apply I; right; auto].
      rewrite H. cbn [map s_mask Count.stop_at]. rewrite zsum_cons.
      rewrite (wsum_ext g _ (fun x => sensitive q (put_mask x S m)) E). lia.
  Qed.
End Masks.

Theorem counter_is_correct :
  forall hash_leaf hash_node hash_mix choose big use_memo by_overlap swap keep_memo fuel q n,
    count hash_leaf hash_node hash_mix choose big use_memo by_overlap swap keep_memo fuel q = Some n ->
    n = answer q.
Proof.
  unfold count. intros until n. intros H.
  destruct (is_sound q) eqn:Sound; try discriminate.
  match type of H with match ?c with _ => _ end = _ => destruct c as [k|] eqn:E end;
    inversion H; subst. clear H.
  apply (count_stops_is_sum hash_leaf hash_node hash_mix choose big use_memo by_overlap swap
           keep_memo fuel q Sound) in E; simpl; auto.
  rewrite E, Z.add_0_l. unfold answer.
  rewrite <- wsum_is_sum_of_weights, <- sum_by_masks by (apply sensitive_in_grid; auto).
  rewrite Z.mul_comm, Z.div_mul; auto.
  unfold is_sound in Sound. apply andb_true_iff in Sound. destruct Sound as [_ P].
  apply Z.ltb_lt in P. lia.
Qed.
Print Assumptions counter_is_correct.
