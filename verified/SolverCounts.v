(** Whatever the solver returns is the weight of the regions at which the formula holds. *)
From Coq Require Import List Arith ZArith Bool Lia.
From XCount Require Import Spec Count SumsOverGrids StepsAgree TreesKeepValues StatesKeepMeaning.
From XCount Require Import MasksCoverRegions.
Import ListNotations.
Open Scope Z_scope.

(** * Runs of weights stand for lists of weights *)
Definition expand (rs : runs) : list Z := flat_map (fun '(n, w) => repeat w n) rs.
Lemma expand_compress : forall l, expand (compress l) = l.
Proof.
  induction l as [|w l IH]; cbn [compress]; auto.
  destruct (compress l) as [|[n w'] r]; cbn in *.
  - rewrite <- IH. reflexivity.
  - destruct (Z.eqb_spec w w'); subst; cbn; rewrite <- ?IH; reflexivity.
Qed.
Lemma zsum_repeat : forall w n, zsum (repeat w n) = Z.of_nat n * w.
Proof.
  induction n; cbn [repeat]; rewrite ?zsum_cons. reflexivity. rewrite IHn, Nat2Z.inj_succ. lia.
Qed.
Lemma run_sum_is_sum : forall rs, run_sum rs = zsum (expand rs).
Proof.
  induction rs as [|[n w] rs IH]. reflexivity. cbn [run_sum fold_right expand flat_map].
  fold (run_sum rs). fold (expand rs). rewrite zsum_app, zsum_repeat, IH. reflexivity.
Qed.
Lemma firstn_repeat : forall (w : Z) k n, (k <= n)%nat -> firstn k (repeat w n) = repeat w k.
Proof. induction k; destruct n; simpl; intros; auto; try lia. f_equal. apply IHk. lia. Qed.
Lemma skipn_repeat : forall (w : Z) k n, skipn k (repeat w n) = repeat w (n - k).
Proof. induction k; destruct n; simpl; auto. Qed.
Lemma run_take_splits : forall rs k w rs', run_take k rs = (w, rs') ->
  w = zsum (firstn k (expand rs)) /\ expand rs' = skipn k (expand rs).
Proof.
  induction rs as [|[n v] rs IH]; intros k w rs' H; cbn [run_take] in H.
  - inversion H; subst. cbn. rewrite firstn_nil, skipn_nil. auto.
  - cbn [expand flat_map]. fold (expand rs).
    rewrite firstn_app, skipn_app, repeat_length.
    destruct (Nat.ltb_spec k n).
    + inversion H; subst. replace (k - n)%nat with 0%nat by lia. cbn [firstn skipn].
      rewrite app_nil_r, firstn_repeat, skipn_repeat, zsum_repeat by lia. auto.
    + destruct (run_take (k - n) rs) as [s r'] eqn:E. inversion H; subst. apply IH in E.
      destruct E as [-> ->].
      rewrite (firstn_all2 (repeat v n)), (skipn_all2 (repeat v n)) by (rewrite repeat_length; lia).
      rewrite zsum_app, zsum_repeat. auto.
Qed.

Section Solver.
  Variable hash_leaf : Z -> nat.
  Variable hash_node : nat -> cells -> nat -> nat -> nat.
  Variable hash_mix : nat -> nat -> nat.
  Variable choose : form -> nat.
  Variable big : Z.
  Variable use_memo : form -> bool.
  Variable g : grid.
  Variable axes : list runs.
  Variable everything : Z.
  Hypothesis Everything : forall b : bool, wsum g (fun _ => b) = if b then everything else 0.
  Hypothesis Axes : forall f, (f < length g)%nat -> expand (nth f axes []) = cell_weights g f.
  Notation decide := (decide big).
  Notation elim_form := (elim_form hash_leaf hash_node).

  (** n is the answer for every variant of p whose offsets are in the box *)
  Definition valid (p : form) (b : box) (n : Z) : Prop :=
    forall p', similar p p' -> inside p' b = true -> wsum g (holds p') = n.

  (** * The memo holds valid answers *)
  Definition valid_entry (e : entry) := valid (e_form e) (e_box e) (e_count e).
  Fixpoint valid_memo (mm : memo) : Prop :=
    match mm with
    | Empty => True
    | Table _ es l r => Forall valid_entry es /\ valid_memo l /\ valid_memo r
    end.
  Lemma entries_valid : forall mm k, valid_memo mm -> Forall valid_entry (entries mm k).
  Proof.
    induction mm; simpl; intros k' H; auto. destruct H as (? & ? & ?).
    destruct (k' =? k)%nat; auto. destruct (k' <? k)%nat; auto.
  Qed.
  Lemma insert_valid : forall mm k e, valid_memo mm -> valid_entry e -> valid_memo (insert mm k e).
  Proof.
    induction mm; simpl; intros k' e H He. repeat split; auto. destruct H as (? & ? & ?).
    destruct (k' =? k)%nat; [|destruct (k' <? k)%nat]; simpl; repeat split; auto.
  Qed.
  Lemma scan_valid : forall es p n b,
    Forall valid_entry es -> scan es p = Some (n, b) -> valid p b n.
  Proof.
    induction 1 as [|e es He]; simpl; intros E. discriminate.
    destruct (inside p (e_box e) && _) eqn:K; auto. inversion E; subst.
    apply andb_true_iff in K. destruct K as [_ K]. apply same_form_similar in K.
    intros p' Sp B. apply He; auto. eapply similar_trans; eauto.
  Qed.

  (** * The sum over the steps of one feature *)
  Definition right_answers (rec : memo -> form -> option (memo * Z * box)) :=
    forall mm p mm' n b, valid_memo mm -> bounded_form p -> rec mm p = Some (mm', n, b) ->
      valid_memo mm' /\ valid p b n.
  Section OneFeature.
    Variable rec : memo -> form -> option (memo * Z * box).
    Variables (p : form) (f : nat).
    Hypothesis Rec : right_answers rec.
    Hypothesis Hf : (f < length g)%nat.

    (** the answer for a child is the count of the parent after f was set to c *)
    Lemma answer_of_child : forall q mm mm' n b' b c,
      valid_memo mm -> bounded_form q -> rec mm q = Some (mm', n, b') -> child f c p q ->
      forall p', similar p p' -> inside p' (meet b (unshift p q b')) = true ->
      wsum g (fun x => holds p' (put x f c)) = n.
    Proof.
      intros q mm mm' n b' b c M W E St p' Sp B. apply inside_meet in B. destruct B as [_ B].
      destruct (unshift_is_right _ _ _ _ St _ _ Sp B) as (q' & S1 & S2 & S3).
      destruct (Rec _ _ _ _ _ M W E) as [_ V]. rewrite <- (V _ S1 S2). apply wsum_ext.
      intros x Hx. apply S3. apply in_regions in Hx. destruct Hx as [-> _]. auto.
    Qed.

    (** The induction follows the steps; in the last case the sum over the cells from lo on is
        split at the end u of the first step. *)
    Lemma sum_steps_is_sum : forall r lo ws mm acc b mm' s b',
      everywhere bounded_form r ->
      (forall c, (lo <= c < lo + length (expand ws))%nat -> child f c p (at_cell r c)) ->
      valid_memo mm -> sum_steps rec p lo ws mm acc b r = Some (mm', s, b') ->
      valid_memo mm' /\ forall p', similar p p' -> inside p' b' = true ->
        inside p' b = true /\
        s = acc + csum (fun c => wsum g (fun x => holds p' (put x f c))) lo (expand ws).
    Proof.
      induction r as [q|u q r IH]; intros lo ws mm acc b mm' s b' W St M H; cbn [sum_steps] in H.
      - destruct ws as [|w ws'].
        + inversion H; subst. split; auto. intros. cbn. split; auto; lia.
        + remember (w :: ws') as ws.
          destruct (rec mm q) as [[[mm1 n] b1]|] eqn:E; inversion H; subst mm' s b'.
          split. eapply Rec; eauto. intros p' Sp B. split. exact (proj1 (inside_meet _ _ _ B)).
          rewrite (csum_ext _ (fun _ => n)). rewrite csum_const, run_sum_is_sum. reflexivity.
          intros c Hc. eapply answer_of_child; eauto.
      - destruct ws as [|w ws'].
        + inversion H; subst. split; auto. intros. cbn. split; auto; lia.
        + remember (w :: ws') as ws. destruct W as [Wq Wr].
          destruct (Nat.leb_spec u lo).
          * eapply IH; eauto. intros c Hc. specialize (St c Hc). cbn [at_cell] in St.
            destruct (Nat.ltb_spec c u); auto. lia.
          * destruct (run_take (u - lo) ws) as [w1 ws1] eqn:RT.
            apply run_take_splits in RT. destruct RT as [-> RT].
            destruct (rec mm q) as [[[mm1 n] b1]|] eqn:E; try discriminate.
            destruct (Rec _ _ _ _ _ M Wq E) as [M1 _].
            set (xs := expand ws) in *.
            assert (LF : length (firstn (u - lo) xs) = Nat.min (u - lo) (length xs))
              by apply firstn_length.
            assert (LS : length (skipn (u - lo) xs) = (length xs - (u - lo))%nat)
              by apply skipn_length.
            eapply IH in H; eauto.
            2:{ intros c Hc. rewrite RT, LS in Hc.
                assert (Hc' : (lo <= c < lo + length xs)%nat) by lia.
                specialize (St c Hc'). cbn [at_cell] in St. destruct (Nat.ltb_spec c u); auto. lia. }
            destruct H as [M' V]. split; auto. intros p' Sp B.
            destruct (V p' Sp B) as [B1 V1]. split. exact (proj1 (inside_meet _ _ _ B1)).
            rewrite V1, RT, <- Z.add_assoc. f_equal.
            rewrite <- (firstn_skipn (u - lo) xs) at 3. rewrite csum_app. f_equal.
            -- rewrite (csum_ext _ (fun _ => n)). rewrite csum_const. reflexivity.
               intros c Hc. apply (answer_of_child q mm mm1 n b1 b c M Wq E); auto.
               rewrite LF in Hc. specialize (St c). cbn [at_cell] in St.
               destruct (Nat.ltb_spec c u); [apply St|]; lia.
            -- destruct (Nat.le_gt_cases (u - lo) (length xs)).
               ++ rewrite LF, Nat.min_l by lia. replace (lo + (u - lo))%nat with u by lia. reflexivity.
               ++ rewrite skipn_all2 by lia. reflexivity.
    Qed.
  End OneFeature.

  (** * The solver *)
  Notation solve := (solve hash_leaf hash_node hash_mix choose big use_memo g axes everything).
  Lemma solve_counts : forall fuel, right_answers (solve fuel).
  Proof.
    induction fuel as [|fuel IH]; intros mm p mm' n b M W H; cbn [Count.solve] in H.
    all: destruct (decide p) as [q k] eqn:D; apply decide_reduces in D; auto; destruct D as [Wq D].
    (* a valid answer for the reduced formula q, lifted, is one for p *)
    all: assert (Lift : forall b n, valid q b n -> valid p (lift k b) n)
      by (intros b0 n0 V p' Sp B; destruct (D _ _ Sp B) as (q' & S1 & S2 & S3);
          rewrite <- (V _ S1 S2); apply wsum_ext; auto).
    all: destruct (constant q) as [c|] eqn:Q;
      [ destruct q; inversion Q; subst; inversion H; subst; split; auto; apply Lift;
        intros p' Sp _; destruct p'; simpl in Sp; try tauto; subst;
        match goal with |- wsum _ (holds (FConst ?c)) = _ => exact (Everything c) end | ].
    all: match type of H with match ?c with _ => _ end = _ => destruct c as [[n1 b1]|] eqn:SC end;
      [ inversion H; subst mm' n b; split; auto; apply Lift; destruct (use_memo q); try discriminate;
        eapply scan_valid; [apply entries_valid; exact M | exact SC] | ].
    - discriminate.
    - destruct ((choose q <? length g)%nat && (0 <? run_sum (nth (choose q) axes []))) eqn:F;
        try discriminate.
      apply andb_true_iff in F. destruct F as [F1 F2].
      apply Nat.ltb_lt in F1. apply Z.ltb_lt in F2.
      match type of H with match ?c with _ => _ end = _ => destruct c as [[[mm1 s] b1]|] eqn:SS end;
        try discriminate.
      inversion H; subst n b. clear H.
      eapply sum_steps_is_sum in SS; eauto.
      2:{ apply elim_form_bounded; auto. }
      2:{ intros c _. apply elim_form_child. }
      destruct SS as [M1 V].
      (* the counting lemma *)
      assert (VL : valid q b1 (s / run_sum (nth (choose q) axes []))).
      { intros p' Sp B. destruct (V _ Sp B) as [_ ->]. rewrite Z.add_0_l.
        rewrite Axes, <- sum_by_one_feature by auto. rewrite run_sum_is_sum, Axes in * by auto.
        rewrite Z.mul_comm, Z.div_mul; auto. lia. }
      split; [|apply Lift; auto].
      subst mm'. destruct (use_memo q); auto. apply insert_valid; auto.
  Qed.
  Lemma solve_at_counts : forall fuel mm p mm' n, valid_memo mm -> bounded_form p ->
    solve_at hash_leaf hash_node hash_mix choose big use_memo g axes everything fuel mm p
      = Some (mm', n) ->
    valid_memo mm' /\ n = wsum g (holds p).
  Proof.
    unfold solve_at. intros fuel mm p mm' n M W H.
    destruct (solve fuel mm p) as [[[mm1 n1] b]|] eqn:E; try discriminate.
    destruct (inside p b) eqn:B; inversion H; subst.
    destruct (solve_counts _ _ _ _ _ _ M W E) as [M' V]. split; auto.
    symmetry. apply V; auto. apply similar_refl.
  Qed.

  Variable by_overlap : form -> bool.
  Notation count_form :=
    (count_form hash_leaf hash_node hash_mix choose big use_memo g axes everything by_overlap).
  Lemma count_form_counts : forall fuel p mm mm' n, valid_memo mm -> bounded_form p ->
    count_form fuel mm p = Some (mm', n) -> valid_memo mm' /\ n = wsum g (holds p).
  Proof.
    induction p as [c|a o ts|q l IHl r IHr]; intros mm mm' n M W H; cbn [Count.count_form] in H;
      try (eapply solve_at_counts; eauto; fail).
    destruct q; try (eapply solve_at_counts; eauto; fail).
    destruct (by_overlap _); [|eapply solve_at_counts; [|eauto|eauto]; exact I].
    destruct W as [Wl Wr].
    destruct (count_form fuel mm l) as [[mm1 na]|] eqn:A; try discriminate.
    destruct (count_form fuel Empty r) as [[mm2 nb]|] eqn:B; try discriminate.
    match type of H with match ?c with _ => _ end = _ => destruct c as [[mm3 nc]|] eqn:C end;
      try discriminate.
    inversion H; subst mm' n.
    apply IHl in A; auto. apply IHr in B; auto; [|exact I].
    apply solve_at_counts in C; [|exact I|split; auto].
    destruct A as [_ ->], B as [M2 ->], C as [_ ->]. split; auto.
    cbn [holds apply]. rewrite wsum_overlap. reflexivity.
  Qed.
End Solver.
