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
  (** The sum over the masks of a part. *)
  Definition weighted_sum (ms : list (list nat)) : Z :=
    zsum (map (fun m => mask_weight g S m * wsum g (fun x => sensitive q (put_mask x S m))) ms).
  Lemma filter_stops : forall (mine : list nat -> bool) ms,
    filter (fun a => mine (s_mask a)) (map stop_at ms) = map stop_at (filter mine ms).
  Proof.
    induction ms as [|m ms IH]; cbn [map filter]; auto. cbn [s_mask Count.stop_at].
    rewrite IH. destruct (mine m); reflexivity.
  Qed.
End Masks.

Lemma sum_over_masks_is_sum :
  forall hash_leaf hash_node hash_mix choose big use_memo by_overlap swap keep_memo fuel mine q n,
    sum_over_masks hash_leaf hash_node hash_mix choose big use_memo by_overlap swap keep_memo fuel
      mine q = Some n ->
    is_sound q = true /\ n = weighted_sum q (filter mine (masks (q_grid q) (q_sensitive q))).
Proof.
  unfold sum_over_masks. intros until n. intros H.
  destruct (is_sound q) eqn:Sound; try discriminate. split; auto.
  rewrite filter_stops in H.
  apply (count_stops_is_sum hash_leaf hash_node hash_mix choose big use_memo by_overlap swap
           keep_memo fuel q Sound) in H; simpl; auto.
  intros m Hm. apply filter_In in Hm. tauto.
Qed.
Lemma filter_all : forall A (l : list A), filter (fun _ => true) l = l.
Proof. induction l; simpl; congruence. Qed.
Lemma sum_over_all_masks_gives_answer : forall q, is_sound q = true ->
  answer_of_sum q (weighted_sum q (masks (q_grid q) (q_sensitive q))) = answer q.
Proof.
  intros q Sound. unfold answer_of_sum, weighted_sum, answer.
  rewrite <- wsum_is_sum_of_weights, <- sum_by_masks by (apply sensitive_in_grid; auto).
  rewrite Z.mul_comm, Z.div_mul; auto.
  unfold is_sound in Sound. apply andb_true_iff in Sound. destruct Sound as [_ P].
  apply Z.ltb_lt in P. lia.
Qed.

Theorem counter_is_correct :
  forall hash_leaf hash_node hash_mix choose big use_memo by_overlap swap keep_memo fuel q n,
    count hash_leaf hash_node hash_mix choose big use_memo by_overlap swap keep_memo fuel q = Some n ->
    n = answer q.
Proof.
  unfold count. intros until n. intros H.
  destruct (sum_over_masks _ _ _ _ _ _ _ _ _ _ _ q) as [k|] eqn:E; inversion H; subst.
  apply sum_over_masks_is_sum in E. destruct E as [Sound ->].
  rewrite filter_all.
  apply sum_over_all_masks_gives_answer; auto.
Qed.
Print Assumptions counter_is_correct.

(** * Several processes *)
(** Every mask is in exactly one part, so the sums over the parts add up to that over all. *)
Lemma one_part : forall owner n m, (0 < n)%nat ->
  exists i, (i < n)%nat /\ forall j, in_part owner n j m = (j =? i)%nat.
Proof.
  intros owner n m N. unfold in_part. destruct (Nat.ltb_spec (owner m) n).
  - exists (owner m). split; auto. intros. apply Nat.eqb_sym.
  - exists 0%nat. auto.
Qed.
Lemma sum_at_one_place : forall (v : Z) i n lo, (lo <= i < lo + n)%nat ->
  zsum (map (fun j => if (j =? i)%nat then v else 0) (seq lo n)) = v.
Proof.
  induction n as [|n IH]; intros lo H. lia.
  cbn [seq map]. rewrite zsum_cons. destruct (Nat.eqb_spec lo i).
  - subst. rewrite zsum_ext with (k := fun _ => 0). rewrite zsum_zero. lia.
    intros j Hj. apply in_seq in Hj. destruct (Nat.eqb_spec j i); auto. lia.
  - rewrite IH by lia. lia.
Qed.
Lemma parts_add_up : forall owner n (h : list nat -> Z) ms, (0 < n)%nat ->
  zsum (map (fun i => zsum (map h (filter (in_part owner n i) ms))) (seq 0 n)) = zsum (map h ms).
Proof.
  induction ms as [|m ms IH]; intros N; cbn [filter map].
  - apply (zsum_zero _ (seq 0 n)).
  - rewrite zsum_cons, <- IH by auto. destruct (one_part owner n m N) as (i & Hi & E).
    rewrite <- (sum_at_one_place (h m) i n 0) at 1 by lia.
    rewrite <- zsum_add. apply zsum_ext. intros j _. rewrite E.
    destruct (j =? i)%nat; cbn [map]; rewrite ?zsum_cons; lia.
Qed.

Lemma zsum_by_places : forall l, zsum l = zsum (map (fun i => nth i l 0) (seq 0 (length l))).
Proof.
  intros l. f_equal. apply nth_ext with (d := 0) (d' := 0). rewrite map_length, seq_length; auto.
  intros i Hi. rewrite nth_indep with (l := map _ _) (d' := nth 0%nat l 0)
    by (rewrite map_length, seq_length; auto).
  rewrite (map_nth (fun i => nth i l 0)), seq_nth by auto. reflexivity.
Qed.

(** z is what some process, whatever its untrusted choices, found for part i of n. *)
Definition is_sum_of_part (q : question) (owner : list nat -> nat) (n i : nat) (z : Z) : Prop :=
  exists hash_leaf hash_node hash_mix choose big use_memo by_overlap swap keep_memo fuel,
    sum_over_masks hash_leaf hash_node hash_mix choose big use_memo by_overlap swap keep_memo fuel
      (in_part owner n i) q = Some z.
Theorem parts_give_the_answer : forall q owner sums, sums <> [] ->
  (forall i, (i < length sums)%nat -> is_sum_of_part q owner (length sums) i (nth i sums 0)) ->
  answer_of_parts q sums = answer q.
Proof.
  intros q owner sums N H.
  assert (P : (0 < length sums)%nat) by (destruct sums; [congruence|simpl; lia]).
  assert (K : forall i, (i < length sums)%nat -> is_sound q = true /\ nth i sums 0
    = weighted_sum q (filter (in_part owner (length sums) i) (masks (q_grid q) (q_sensitive q)))).
  { intros i Hi. specialize (H i Hi). unfold is_sum_of_part in H.
    destruct H as (? & ? & ? & ? & ? & ? & ? & ? & ? & ? & H). apply sum_over_masks_is_sum in H. exact H. }
  rewrite <- sum_over_all_masks_gives_answer by (apply (K 0%nat P)).
  unfold answer_of_parts. f_equal. unfold weighted_sum at 1.
  rewrite <- (parts_add_up owner (length sums)) by auto.
  rewrite (zsum_by_places sums). apply zsum_ext. intros i Hi.
  apply in_seq in Hi. apply K. lia.
Qed.
Print Assumptions parts_give_the_answer.
