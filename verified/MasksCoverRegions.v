(** A region is sensitive if and only if one of the masks near its own is a target with a change:
    the sum over regions in the specification becomes a sum over masks. *)
From Coq Require Import List Arith ZArith Bool Lia.
From XCount Require Import Spec Count SumsOverGrids TreesKeepValues.
Import ListNotations.
Open Scope Z_scope.

(** * Regions of a grid *)
Lemma in_regions : forall g x, In x (regions g) <->
  length x = length g /\ forall f, (f < length g)%nat -> (cell x f < n_cells g f)%nat.
Proof.
  unfold cell, n_cells, cell_weights.
  induction g as [|n g IH]; intros x; cbn [regions].
  - split.
    + intros [<-|[]]. split; auto. simpl; intros; lia.
    + intros [H _]. destruct x; simpl in *; auto; lia.
  - rewrite in_flat_map. split.
    + intros (c & Hc & Hx). apply in_map_iff in Hx. destruct Hx as (y & <- & Hy).
      apply IH in Hy. destruct Hy as [L Hy]. apply in_seq in Hc. split. simpl; lia.
      intros [|f] Hf; simpl in *. lia. apply Hy. lia.
    + intros [L H]. destruct x as [|c y]; simpl in L. lia.
      exists c. split. apply in_seq. specialize (H 0%nat). simpl in H. lia.
      apply in_map. apply IH. split. lia. intros f Hf. apply (H (S f)). simpl; lia.
Qed.
Lemma put_mask_length : forall S m x, length (put_mask x S m) = length x.
Proof. induction S; destruct m; simpl; auto. intros. rewrite IHS, put_length. auto. Qed.
Lemma cell_put_mask : forall S m x f', (forall f, In f S -> (f < length x)%nat) ->
  cell (put_mask x S m) f' = match cell_in_mask S m f' with Some k => k | None => cell x f' end.
Proof.
  induction S as [|s S IH]; destruct m as [|c m]; simpl; intros x f' H; auto.
  rewrite IH by (intros; rewrite put_length; apply H; auto).
  destruct (cell_in_mask S m f'); auto. rewrite cell_put by (apply H; auto).
  destruct (f' =? s)%nat; reflexivity.
Qed.
Lemma among_In : forall S f, among f S = true <-> In f S.
Proof.
  intros. unfold among. rewrite existsb_exists. split.
  - intros (y & H & E). apply Nat.eqb_eq in E. subst; auto.
  - intros. exists f. split; auto. apply Nat.eqb_refl.
Qed.
Lemma in_masks : forall g S m f, In m (masks g S) ->
  match cell_in_mask S m f with
  | Some k => among f S = true /\ (k < n_cells g f)%nat
  | None => among f S = false
  end.
Proof.
  induction S as [|s S IH]; cbn [masks cell_in_mask]; intros m f H.
  - reflexivity.
  - apply in_flat_map in H. destruct H as (c & Hc & H). apply in_map_iff in H.
    destruct H as (m' & <- & H). specialize (IH _ f H). unfold among in *. cbn [existsb].
    destruct (cell_in_mask S m' f).
    + destruct IH as [-> ?]. rewrite orb_true_r. auto.
    + rewrite IH, orb_false_r. destruct (f =? s)%nat eqn:E; auto.
      apply Nat.eqb_eq in E. subst. apply in_seq in Hc. split; auto. lia.
Qed.
Definition mask_of (S : list nat) (y : region) : list nat := map (cell y) S.
Lemma mask_of_in : forall g S y, (forall f, In f S -> (f < length g)%nat) ->
  In y (regions g) -> In (mask_of S y) (masks g S).
Proof.
  induction S as [|s S IH]; intros y HS Hy. left; auto.
  cbn. apply in_flat_map. exists (cell y s). split.
  - apply in_regions in Hy. destruct Hy as [_ Hy]. apply in_seq. split. lia.
    apply Hy. apply HS; left; auto.
  - apply in_map. apply IH; auto. intros; apply HS; right; auto.
Qed.
Lemma cell_in_mask_of : forall S y f,
  cell_in_mask S (mask_of S y) f = if among f S then Some (cell y f) else None.
Proof.
  unfold among. induction S as [|s S IH]; intros y f; simpl; auto. rewrite IH.
  destruct (existsb (Nat.eqb f) S).
  - rewrite orb_true_r. reflexivity.
  - rewrite orb_false_r. destruct (f =? s)%nat eqn:E; auto. apply Nat.eqb_eq in E. subst; auto.
Qed.

(** * The target: features move along, then the sensitive ones take the cells of a mask *)
Definition moved (q : question) (x : region) : region :=
  map (expected q x) (seq 0 (length x)).
Lemma moved_length : forall q x, length (moved q x) = length x.
Proof. intros. unfold moved. rewrite map_length, seq_length. reflexivity. Qed.
Lemma cell_moved : forall q x f, (f < length x)%nat -> cell (moved q x) f = expected q x f.
Proof.
  intros. unfold moved, cell. rewrite nth_indep with (d' := expected q x 0%nat)
    by (rewrite map_length, seq_length; auto).
  rewrite map_nth, seq_nth by auto. reflexivity.
Qed.

Section Question.
  Variable q : question.
  Notation g := (q_grid q).
  Notation S := (q_sensitive q).
  Hypothesis Sound : is_sound q = true.

  Lemma sensitive_in_grid : forall f, In f S -> (f < length g)%nat.
  Proof.
    unfold is_sound in Sound. apply andb_true_iff in Sound. destruct Sound as [H _].
    apply andb_true_iff in H. destruct H as [H _].
    intros f Hf. rewrite forallb_forall in H. apply Nat.ltb_lt. auto.
  Qed.
  Lemma lookup_In : forall A f (a : A) l, lookup f l = Some a -> In (f, a) l.
  Proof.
    induction l as [|[f' b] l IH]; simpl. discriminate.
    destruct (Nat.eqb_spec f f'). intros E; inversion E; subst; auto. auto.
  Qed.
  Lemma along_in_grid : forall f cs, lookup f (q_along q) = Some cs ->
    (f < length g)%nat /\ length cs = n_cells g f /\
    forall c, (c < n_cells g f)%nat -> (nth c cs 0 < n_cells g f)%nat.
  Proof.
    intros f cs H. apply lookup_In in H.
    unfold is_sound in Sound. apply andb_true_iff in Sound. destruct Sound as [K _].
    apply andb_true_iff in K. destruct K as [_ K]. rewrite forallb_forall in K. apply K in H.
    apply andb_true_iff in H. destruct H as [H H3].
    apply andb_true_iff in H. destruct H as [H1 H2].
    apply Nat.ltb_lt in H1. apply Nat.eqb_eq in H2. repeat split; auto.
    intros c Hc. rewrite forallb_forall in H3. apply Nat.ltb_lt. apply H3. apply nth_In. lia.
  Qed.
  Lemma moved_region : forall x, In x (regions g) -> In (moved q x) (regions g).
  Proof.
    intros x H. apply in_regions in H. destruct H as [L H]. apply in_regions.
    rewrite moved_length. split; auto. intros f Hf. rewrite cell_moved by lia.
    unfold expected. destruct (lookup f (q_along q)) as [cs|] eqn:E; auto.
    apply along_in_grid in E. destruct E as (_ & _ & E). auto.
  Qed.
  Lemma put_mask_region : forall m x,
    In m (masks g S) -> In x (regions g) -> In (put_mask x S m) (regions g).
  Proof.
    intros m x Hm Hx. apply in_regions in Hx. destruct Hx as [L Hx]. apply in_regions.
    rewrite put_mask_length. split; auto. intros f Hf.
    rewrite cell_put_mask by (rewrite L; apply sensitive_in_grid).
    pose proof (in_masks g S m f Hm) as K. destruct (cell_in_mask S m f); auto. tauto.
  Qed.

  (** Sensitive features of two regions that carry masks are those of the masks. *)
  Lemma sensitive_cell : forall x y m f, length x = length g -> length y = length g ->
    In m (masks g S) -> among f S = true ->
    cell (put_mask x S m) f = cell (put_mask y S m) f.
  Proof.
    intros x y m f L L' Hm Hf. rewrite !cell_put_mask by (rewrite ?L, ?L'; apply sensitive_in_grid).
    pose proof (in_masks g S m f Hm) as K. destruct (cell_in_mask S m f); congruence.
  Qed.
  Lemma zero_length : length (zero g) = length g.
  Proof. apply map_length. Qed.
  Lemma distance_of_masks : forall m m' x y, length x = length g -> length y = length g ->
    In m (masks g S) -> In m' (masks g S) ->
    distance g S (put_mask x S m) (put_mask y S m')
    = distance g S (put_mask (zero g) S m) (put_mask (zero g) S m').
  Proof.
    intros m m' x y L L' Hm Hm'. unfold distance. f_equal. apply map_ext_in. intros f Hf.
    apply among_In in Hf.
    rewrite (sensitive_cell x (zero g) m), (sensitive_cell y (zero g) m') by auto using zero_length.
    reflexivity.
  Qed.
  Lemma close_of_masks : forall m m' x y, length x = length g -> length y = length g ->
    In m (masks g S) -> In m' (masks g S) ->
    close g S (q_distance q) (put_mask x S m) (put_mask y S m')
    = close g S (q_distance q) (put_mask (zero g) S m) (put_mask (zero g) S m').
  Proof. intros. unfold close. rewrite (distance_of_masks m m' x y); auto. Qed.

  Definition target (x : region) (m' : list nat) : region := put_mask (moved q x) S m'.

  (** A region reached from x without changing other features is the target of its own mask. *)
  Lemma target_of_mask : forall x m y, In x (regions g) -> In m (masks g S) -> In y (regions g) ->
    same_elsewhere q (put_mask x S m) y = true -> target x (mask_of S y) = y.
  Proof.
    intros x m y Hx Hm Hy H. apply in_regions in Hx. destruct Hx as [L _].
    apply in_regions in Hy. destruct Hy as [Ly _]. unfold target.
    apply nth_ext with (d := 0%nat) (d' := 0%nat).
    { rewrite put_mask_length, moved_length. lia. }
    intros f Hf. rewrite put_mask_length, moved_length in Hf.
    change (cell (put_mask (moved q x) S (mask_of S y)) f = cell y f).
    rewrite cell_put_mask by (rewrite moved_length, L; apply sensitive_in_grid).
    rewrite cell_in_mask_of. destruct (among f S) eqn:E; auto.
    unfold same_elsewhere in H. rewrite forallb_forall in H. specialize (H f).
    rewrite put_mask_length, E in H. cbn [orb] in H.
    assert (K : In f (seq 0 (length x))) by (apply in_seq; lia).
    apply H in K. apply Nat.eqb_eq in K. rewrite K, cell_moved by lia.
    unfold expected. rewrite cell_put_mask by (rewrite L; apply sensitive_in_grid).
    pose proof (in_masks g S m f Hm) as M. destruct (cell_in_mask S m f); auto.
    destruct M; congruence.
  Qed.
  Lemma target_same_elsewhere : forall x m m', In x (regions g) ->
    In m (masks g S) -> In m' (masks g S) -> same_elsewhere q (put_mask x S m) (target x m') = true.
  Proof.
    intros x m m' Hx Hm Hm'. apply in_regions in Hx. destruct Hx as [L _].
    unfold same_elsewhere. apply forallb_forall. intros f Hf.
    apply in_seq in Hf. rewrite put_mask_length in Hf.
    destruct (among f S) eqn:E; auto. cbn [orb]. apply Nat.eqb_eq. unfold target, expected.
    rewrite !cell_put_mask by (rewrite ?moved_length, L; apply sensitive_in_grid).
    pose proof (in_masks g S m f Hm) as M. pose proof (in_masks g S m' f Hm') as M'.
    destruct (cell_in_mask S m' f); [destruct M'; congruence|].
    destruct (cell_in_mask S m f); [destruct M; congruence|].
    rewrite cell_moved by lia. reflexivity.
  Qed.

  (** A start with mask m is sensitive if and only if some near mask is a target with a change. *)
  Definition acceptable (x : region) (m m' : list nat) : bool :=
    let x' := put_mask x S m in
    let y := target x m' in
    all_positive (q_rules q) y && all_positive (q_to q) y
    && close g S (q_distance q) (put_mask (zero g) S m) (put_mask (zero g) S m')
    && enters_no_closed (q_closed q) x' y
    && changed (q_change q) (margins (q_outputs q) x') (margins (q_outputs q) y).
  Lemma sensitive_by_masks : forall m x, In m (masks g S) -> In x (regions g) ->
    sensitive q (put_mask x S m)
    = all_positive (q_rules q) (put_mask x S m) && all_positive (q_from q) (put_mask x S m)
      && existsb (acceptable x m) (masks g S).
  Proof.
    intros m x Hm Hx. unfold sensitive. f_equal.
    assert (L : length x = length g) by (apply in_regions in Hx; tauto).
    assert (L' : length (moved q x) = length g) by (rewrite moved_length; auto).
    apply eq_true_iff_eq. rewrite !existsb_exists. split.
    - intros (y & Hy & H). repeat (apply andb_true_iff in H; destruct H as [H ?]).
      exists (mask_of S y). pose proof (mask_of_in g S y sensitive_in_grid Hy) as M.
      split; auto. unfold acceptable. cbn zeta.
      rewrite <- (close_of_masks m (mask_of S y) x (moved q x)) by auto.
      fold (target x (mask_of S y)). rewrite (target_of_mask x m y) by auto.
      repeat (apply andb_true_iff; split; auto).
    - intros (m' & Hm' & H). unfold acceptable in H. cbn zeta in H.
      rewrite <- (close_of_masks m m' x (moved q x)) in H by auto. fold (target x m') in H.
      repeat (apply andb_true_iff in H; destruct H as [H ?]).
      exists (target x m'). split. apply put_mask_region; auto. apply moved_region; auto.
      rewrite target_same_elsewhere by auto.
      repeat (apply andb_true_iff; split; auto).
  Qed.
End Question.
