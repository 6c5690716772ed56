(** Whether one region is sensitive, decided by looking at the masks near its own instead of all
    regions: what estimates are made of. *)
From Coq Require Import List Arith ZArith Bool Lia.
From XCount Require Import Spec Count SumsOverGrids TreesKeepValues MasksCoverRegions.
Import ListNotations.
Open Scope nat_scope.

Definition is_region (g : grid) (x : region) : bool :=
  (length x =? length g) && forallb (fun f => cell x f <? n_cells g f) (seq 0 (length g)).

(** x with other masks, among ms, as targets *)
Definition reaches_change (q : question) (ms : list (list nat)) (x : region) : bool :=
  let start := margins (q_outputs q) x in
  let elsewhere := moved q x in
  existsb (fun m =>
      let y := put_mask elsewhere (q_sensitive q) m in
      close (q_grid q) (q_sensitive q) (q_distance q) x y
      && (enters_no_closed (q_closed q) x y
          && (all_positive (q_rules q) y
              && (all_positive (q_to q) y
                  && changed (q_change q) start (margins (q_outputs q) y)))))
    ms.

(** For each region [Some b]: it is sensitive if and only if b.  [None]: it is not in the grid, or
    the question is not sound. *)
Definition decide_regions (q : question) (xs : list region) : list (option bool) :=
  let ms := masks (q_grid q) (q_sensitive q) in
  let sound := is_sound q in
  map (fun x =>
      if sound && is_region (q_grid q) x
      then Some (all_positive (q_rules q) x && all_positive (q_from q) x && reaches_change q ms x)
      else None)
    xs.

Lemma is_region_in_regions : forall g x, is_region g x = true -> In x (regions g).
Proof.
  unfold is_region. intros g x H. apply andb_true_iff in H. destruct H as [L H].
  apply Nat.eqb_eq in L. apply in_regions. split; auto. intros f Hf.
  rewrite forallb_forall in H. apply Nat.ltb_lt. apply H. apply in_seq. lia.
Qed.
Lemma put_own_mask : forall S x, (forall f, In f S -> f < length x) ->
  put_mask x S (mask_of S x) = x.
Proof.
  intros S x H. apply nth_ext with (d := 0) (d' := 0). apply put_mask_length.
  intros f _. change (cell (put_mask x S (mask_of S x)) f = cell x f).
  rewrite cell_put_mask, cell_in_mask_of by auto. destruct (among f S); reflexivity.
Qed.
Lemma region_is_decided : forall q x, is_sound q = true -> In x (regions (q_grid q)) ->
  all_positive (q_rules q) x && all_positive (q_from q) x
    && reaches_change q (masks (q_grid q) (q_sensitive q)) x
  = sensitive q x.
Proof.
  intros q x Sound Hx.
  assert (L : length x = length (q_grid q)) by (apply in_regions in Hx; tauto).
  assert (Own : put_mask x (q_sensitive q) (mask_of (q_sensitive q) x) = x)
    by (apply put_own_mask; rewrite L; apply sensitive_in_grid; auto).
  assert (M : In (mask_of (q_sensitive q) x) (masks (q_grid q) (q_sensitive q)))
    by (apply mask_of_in; [apply sensitive_in_grid|]; auto).
  pose proof (sensitive_by_masks q Sound _ x M Hx) as E. rewrite Own in E. rewrite E. f_equal.
  apply eq_true_iff_eq. unfold reaches_change. rewrite !existsb_exists.
  split; intros (m & Hm & K); exists m; split; auto; unfold acceptable, target in *;
    cbn zeta in *; rewrite Own in *;
    rewrite <- (close_of_masks q Sound _ m x (moved q x)) in * by (auto; rewrite moved_length; auto);
    rewrite Own in *; rewrite !andb_true_iff in *; tauto.
Qed.

Theorem decisions_are_correct : forall q xs x b,
  In (x, Some b) (combine xs (decide_regions q xs)) -> In x (regions (q_grid q)) /\ b = sensitive q x.
Proof.
  intros q xs x b H. unfold decide_regions in H.
  induction xs as [|y xs IH]; cbn [map combine] in H; [destruct H|]. destruct H as [H|H]; auto.
  destruct (is_sound q) eqn:Sound; cbn [andb] in H; [|inversion H].
  destruct (is_region (q_grid q) y) eqn:R; inversion H; subst.
  apply is_region_in_regions in R. split; auto. apply region_is_decided; auto.
Qed.
Print Assumptions decisions_are_correct.
