(** The formula of a mask says that a region with this mask is sensitive. *)
From Coq Require Import List Arith ZArith Bool Lia.
From XCount Require Import Spec Count SumsOverGrids StepsAgree TreesKeepValues StatesKeepMeaning.
From XCount Require Import MasksCoverRegions.
Import ListNotations.
Open Scope Z_scope.

Lemma forallb_and : forall A (P Q : A -> bool) l,
  forallb (fun a => P a && Q a) l = forallb P l && forallb Q l.
Proof.
  induction l as [|a l IH]; simpl; auto. rewrite IH.
  destruct (P a), (Q a), (forallb P l), (forallb Q l); auto.
Qed.
Lemma forallb_ext_in : forall A (P Q : A -> bool) l,
  (forall a, In a l -> P a = Q a) -> forallb P l = forallb Q l.
Proof. induction l; simpl; intros H; auto. rewrite H, IHl; auto. Qed.
Lemma existsb_ext_in : forall A (P Q : A -> bool) l,
  (forall a, In a l -> P a = Q a) -> existsb P l = existsb Q l.
Proof. induction l; simpl; intros H; auto. rewrite H, IHl; auto. Qed.
Lemma existsb_filter : forall A (P Q : A -> bool) l,
  existsb P (filter Q l) = existsb (fun a => Q a && P a) l.
Proof. induction l; simpl; auto. destruct (Q a); simpl; rewrite IHl; auto. Qed.
Lemma existsb_map : forall A B (P : B -> bool) (h : A -> B) l,
  existsb P (map h l) = existsb (fun a => P (h a)) l.
Proof. induction l; simpl; auto. rewrite IHl. reflexivity. Qed.
Lemma existsb_and_const : forall A (P : A -> bool) b l,
  existsb (fun a => P a && b) l = existsb P l && b.
Proof. induction l; simpl; auto. rewrite IHl. destruct (P a), b, (existsb P l); auto. Qed.
Lemma existsb_negb : forall A (P : A -> bool) l,
  existsb (fun a => negb (P a)) l = negb (forallb P l).
Proof. induction l; simpl; auto. rewrite IHl. destruct (P a); auto. Qed.

(** * Formulas about the regions of a grid *)
Section Says.
  Variable g : grid.
  Definition says (p : form) (P : region -> bool) : Prop :=
    bounded_form p /\ forall x, In x (regions g) -> holds p x = P x.
  Lemma says_ext : forall p P Q, says p P -> (forall x, In x (regions g) -> P x = Q x) -> says p Q.
  Proof. intros p P Q [W H] E. split; auto. intros. rewrite H; auto. Qed.
  Lemma atom_says : forall a ts v, Forall bounded ts ->
    (forall x, In x (regions g) -> sum_value ts x = v x) -> says (atom a ts) (fun x => pass a (v x)).
  Proof.
    intros a ts v W H. unfold atom. pose proof (split_leaves_value ts) as E.
    pose proof (split_leaves_bounded ts W) as W'. destruct (split_leaves ts) as [k r].
    cbn [fst snd] in *. assert (K : says (FAtom a k r) (fun x => pass a (v x))).
    { split; auto. intros x Hx. cbn [holds]. rewrite <- E, H; auto. }
    destruct r; auto. split. exact I. intros x Hx. destruct K as [_ K]. rewrite <- K by auto.
    cbn [holds]. unfold sum_value. cbn. rewrite Z.add_0_r. reflexivity.
  Qed.
  Lemma const_says : forall b, says (FConst b) (fun _ => b).
  Proof. split; simpl; auto. Qed.
  Lemma bin_says : forall o p q P Q, says p P -> says q Q ->
    says (FBin o p q) (fun x => apply o (P x) (Q x)).
  Proof. intros o p q P Q [W H] [W' H']. split. simpl; auto. intros. cbn [holds]. rewrite H, H'; auto. Qed.
  Lemma conj_says : forall p q P Q, says p P -> says q Q -> says (conj p q) (fun x => P x && Q x).
  Proof.
    intros p q P Q Hp Hq. pose proof (bin_says And p q P Q Hp Hq) as [W H].
    assert (E : forall x, holds (conj p q) x = holds (FBin And p q) x).
    { intros x. destruct p as [[]| |], q as [[]| |]; cbn; auto; rewrite ?andb_true_r, ?andb_false_r; auto. }
    split; [|intros; rewrite E; apply H; auto].
    destruct W. destruct p as [[]| |], q as [[]| |]; simpl in *; auto.
  Qed.
  Lemma disj_says : forall p q P Q, says p P -> says q Q -> says (disj p q) (fun x => P x || Q x).
  Proof.
    intros p q P Q Hp Hq. pose proof (bin_says Or p q P Q Hp Hq) as [W H].
    assert (E : forall x, holds (disj p q) x = holds (FBin Or p q) x).
    { intros x. destruct p as [[]| |], q as [[]| |]; cbn; auto; rewrite ?orb_true_r, ?orb_false_r; auto. }
    split; [|intros; rewrite E; apply H; auto].
    destruct W. destruct p as [[]| |], q as [[]| |]; simpl in *; auto.
  Qed.
  Lemma all_of_says : forall A (F : A -> form) (P : A -> region -> bool) l,
    (forall a, In a l -> says (F a) (P a)) ->
    says (all_of (map F l)) (fun x => forallb (fun a => P a x) l).
  Proof.
    unfold all_of. induction l as [|a l IH]; cbn [map fold_right forallb]; intros H.
    apply const_says. apply conj_says. apply H; left; auto. apply IH. intros; apply H; right; auto.
  Qed.
  Lemma some_of_says : forall A (F : A -> form) (P : A -> region -> bool) l,
    (forall a, In a l -> says (F a) (P a)) ->
    says (some_of (map F l)) (fun x => existsb (fun a => P a x) l).
  Proof.
    intros A F P l H. unfold some_of.
    assert (K : forall l p Q, (forall a, In a l -> says (F a) (P a)) -> says p Q ->
      says (fold_left disj (map F l) p) (fun x => Q x || existsb (fun a => P a x) l)).
    { clear. induction l as [|a l IH]; intros p Q H HQ; cbn [map fold_left existsb].
      - eapply says_ext; eauto. intros. cbn. rewrite orb_false_r. reflexivity.
      - eapply says_ext. apply IH with (Q := fun x => Q x || P a x).
        intros; apply H; right; auto. apply disj_says; auto. apply H; left; auto.
        intros. cbn. rewrite orb_assoc. reflexivity. }
    eapply says_ext. apply K with (Q := fun _ => false); auto. apply const_says. reflexivity.
  Qed.
  (** The shortcut for a formula that is false *)
  Lemma guard_says : forall p q P Q, says p P -> says q Q ->
    says (if is_false p then FConst false else conj p q) (fun x => P x && Q x).
  Proof.
    intros p q P Q Hp Hq. pose proof (conj_says p q P Q Hp Hq) as C.
    destruct p as [[]| |]; auto.
  Qed.
End Says.

Section Question.
  Variable hash_leaf : Z -> nat.
  Variable hash_node : nat -> cells -> nat -> nat -> nat.
  Variable q : question.
  Notation g := (q_grid q).
  Notation S := (q_sensitive q).
  Notation says := (says g).
  Notation convert := (convert hash_leaf hash_node).
  Hypothesis Sound : is_sound q = true.

  (** * Reading trees at a start and at a target *)
  (** [how] are the fates on the way from x to Y x, which changes only features that move *)
  Definition reads (how : nat -> fate) (Y : region -> region) : Prop :=
    forall x, In x (regions g) ->
      follows how x (Y x) /\ forall f, moves q f = false -> cell (Y x) f = cell x f.
  Definition start_of (m : list nat) (x : region) : region := put_mask x S m.
  Definition target_of (m : list nat) (x : region) : region := target q x m.

  Lemma reads_start : forall m, In m (masks g S) -> reads (start_fate q m) (start_of m).
  Proof.
    intros m Hm x Hx. apply in_regions in Hx. destruct Hx as [L Hx].
    assert (C : forall f, cell (start_of m x) f
              = match cell_in_mask S m f with Some k => k | None => cell x f end).
    { intros f. apply cell_put_mask. rewrite L. apply sensitive_in_grid; auto. }
    split; intros f.
    - rewrite C. unfold start_fate. destruct (cell_in_mask S m f); auto.
    - intros M. rewrite C. pose proof (in_masks g S m f Hm) as K.
      apply orb_false_iff in M. destruct M as [M _].
      destruct (cell_in_mask S m f); auto. destruct K; congruence.
  Qed.
  Lemma reads_target : forall m, In m (masks g S) -> reads (target_fate q m) (target_of m).
  Proof.
    intros m Hm x Hx. apply in_regions in Hx. destruct Hx as [L Hx].
    assert (C : forall f, cell (target_of m x) f
              = match cell_in_mask S m f with Some k => k | None => cell (moved q x) f end).
    { intros f. apply cell_put_mask. rewrite moved_length, L. apply sensitive_in_grid; auto. }
    assert (N : forall f, lookup f (q_along q) = None -> cell (moved q x) f = cell x f).
    { intros f E. destruct (Nat.lt_ge_cases f (length x)).
      - rewrite cell_moved by auto. unfold expected. rewrite E. reflexivity.
      - unfold cell. rewrite !nth_overflow; rewrite ?moved_length; auto. }
    split; intros f.
    - rewrite C. unfold target_fate. destruct (cell_in_mask S m f); auto.
      destruct (lookup f (q_along q)) as [cs|] eqn:E; auto.
      destruct (along_in_grid q Sound f cs E) as (K1 & K2 & K3). rewrite cell_moved by lia.
      unfold expected. rewrite E. split; auto. rewrite K2. auto.
    - intros M. rewrite C. pose proof (in_masks g S m f Hm) as K.
      apply orb_false_iff in M. destruct M as [M M'].
      destruct (cell_in_mask S m f); [destruct K; congruence|].
      apply N. destruct (lookup f (q_along q)); auto. discriminate.
  Qed.
  Lemma untouched_value : forall x y t, touched q t = false ->
    (forall f, moves q f = false -> cell y f = cell x f) -> value t y = value t x.
  Proof.
    induction t; cbn [touched value]; intros T H; auto.
    apply orb_false_iff in T. destruct T as [T1 T]. apply orb_false_iff in T. destruct T.
    rewrite (H f T1), IHt1, IHt2; auto.
  Qed.

  (** * Conditions *)
  Lemma positive_says : forall how Y rules, reads how Y ->
    says (positive_form hash_leaf hash_node how rules) (fun x => all_positive rules (Y x)).
  Proof.
    intros how Y rules R. apply all_of_says. intros t _.
    apply (atom_says g (TGt 0) _ (fun x => value t (Y x))).
    - repeat constructor. apply convert_bounded.
    - intros x Hx. unfold sum_value. cbn [map]. rewrite zsum_cons.
      rewrite (convert_value _ _ how x (Y x)) by (apply R; auto). cbn. lia.
  Qed.
  (** Rules that no change touches hold at the target if they hold at the start. *)
  Lemma touched_rules_suffice : forall m m' x,
    In m (masks g S) -> In m' (masks g S) -> In x (regions g) ->
    all_positive (q_rules q) (start_of m x) = true ->
    all_positive (q_rules q) (target_of m' x)
    = all_positive (filter (touched q) (q_rules q)) (target_of m' x).
  Proof.
    intros m m' x Hm Hm' Hx. unfold all_positive. induction (q_rules q) as [|t l IH]; auto.
    cbn [forallb filter]. intros H. apply andb_true_iff in H. destruct H as [H1 H].
    destruct (touched q t) eqn:T; cbn [forallb]; rewrite IH by auto; auto.
    destruct (reads_start m Hm x Hx) as [_ U]. destruct (reads_target m' Hm' x Hx) as [_ U'].
    rewrite (untouched_value x (start_of m x)) in H1 by auto.
    rewrite (untouched_value x (target_of m' x)), H1 by auto. reflexivity.
  Qed.

  (** * Margins *)
  Notation touched_outputs := (touched_outputs q).
  Definition untouched : list (list ctree) :=
    map (fun trees => map (convert (fun _ => Stays)) (filter (fun t => negb (touched q t)) trees))
        (q_outputs q).
  Definition at_fate (how : nat -> fate) : list (list ctree) := map (map (convert how)) touched_outputs.
  Lemma nth_touched : forall how k,
    nth k (at_fate how) [] = map (convert how) (filter (touched q) (nth k (q_outputs q) [])).
  Proof.
    intros. unfold at_fate. change (@nil ctree) with (map (convert how) []). rewrite map_nth. f_equal.
    change (@nil tree) with (filter (touched q) []) at 1. apply map_nth.
  Qed.
  Lemma nth_untouched : forall k, nth k untouched []
    = map (convert (fun _ => Stays)) (filter (fun t => negb (touched q t)) (nth k (q_outputs q) [])).
  Proof.
    intros. unfold untouched.
    change (@nil ctree) with ((fun trees => map (convert (fun _ => Stays))
      (filter (fun t => negb (touched q t)) trees)) []) at 1. apply map_nth.
  Qed.
  Lemma output_margins : forall x k,
    output (margins (q_outputs q) x) k = margin (nth k (q_outputs q) []) x.
  Proof.
    intros. unfold output, margins. change 0 with ((fun trees => margin trees x) []) at 1.
    apply map_nth.
  Qed.
  Lemma map_convert_bounded : forall how l, Forall bounded (map (convert how) l).
  Proof.
    intros. apply Forall_forall. intros t H. apply in_map_iff in H. destruct H as (t' & <- & _).
    apply convert_bounded.
  Qed.
  Lemma sum_converted : forall how x y l, follows how x y ->
    sum_value (map (convert how) l) x = zsum (map (fun t => value t y) l).
  Proof.
    intros. unfold sum_value. rewrite map_map. apply zsum_ext. intros t _. apply convert_value; auto.
  Qed.
  Lemma row_is_margin : forall how Y k, reads how Y ->
    Forall bounded (row untouched (at_fate how) k) /\
    forall x, In x (regions g) ->
      sum_value (row untouched (at_fate how) k) x = output (margins (q_outputs q) (Y x)) k.
  Proof.
    intros how Y k R. unfold row. rewrite nth_touched, nth_untouched. split.
    - apply Forall_app. split; apply map_convert_bounded.
    - intros x Hx. destruct (R x Hx) as [Fo Un].
      rewrite sum_value_app, output_margins. unfold margin.
      rewrite (zsum_partition _ (touched q)). f_equal.
      + rewrite (sum_converted _ x x) by (intros f; reflexivity).
        apply zsum_ext. intros t Ht. apply filter_In in Ht. destruct Ht as [_ Ht].
        symmetry. apply untouched_value; auto. apply negb_true_iff; auto.
      + apply sum_converted; auto.
  Qed.
  Lemma differences_are_differences : forall how how' Y Y', reads how Y -> reads how' Y' ->
    Forall bounded (differences hash_leaf hash_node (at_fate how) (at_fate how')) /\
    forall x, In x (regions g) ->
      sum_value (differences hash_leaf hash_node (at_fate how) (at_fate how')) x
      = output (margins (q_outputs q) (Y x)) 0 - output (margins (q_outputs q) (Y' x)) 0.
  Proof.
    intros how how' Y Y' R R'. unfold differences. rewrite !nth_touched. split.
    - apply Forall_forall. intros t H. apply in_map_iff in H. destruct H as ([t1 t2] & <- & _).
      apply diff_bounded.
    - intros x Hx. destruct (R x Hx) as [Fo Un]. destruct (R' x Hx) as [Fo' Un'].
      rewrite !output_margins. unfold margin.
      rewrite (zsum_partition _ (touched q) _ (nth 0 (q_outputs q) [])).
      rewrite (zsum_partition _ (touched q) (fun t => value t (Y' x))).
      (* the untouched trees cancel *)
      rewrite (zsum_ext _ (fun t => value t (Y x)) (fun t => value t (Y' x))
                        (filter (fun t => negb (touched q t)) _)).
      2:{ intros t Ht. apply filter_In in Ht. destruct Ht as [_ Ht]. apply negb_true_iff in Ht.
          rewrite (untouched_value x (Y x)), (untouched_value x (Y' x)); auto. }
      unfold sum_value. induction (filter (touched q) (nth 0 (q_outputs q) [])) as [|t l IH].
      + cbn. lia.
      + cbn [map combine]. rewrite !zsum_cons, diff_value.
        rewrite (convert_value _ _ how x (Y x)), (convert_value _ _ how' x (Y' x)) by auto. lia.
  Qed.
  Lemma negated_row : forall l x,
    sum_value (map (subtract_from hash_leaf hash_node 0) l) x = - sum_value l x.
  Proof.
    unfold sum_value. induction l as [|t l IH]; intros x. reflexivity.
    cbn [map]. rewrite !zsum_cons, IH, subtract_from_value. lia.
  Qed.
  Lemma lead_is_lead : forall how Y k j, reads how Y ->
    Forall bounded (lead hash_leaf hash_node untouched (at_fate how) k j) /\
    forall x, In x (regions g) ->
      sum_value (lead hash_leaf hash_node untouched (at_fate how) k j) x
      = output (margins (q_outputs q) (Y x)) k - output (margins (q_outputs q) (Y x)) j.
  Proof.
    intros how Y k j R. unfold lead. destruct (row_is_margin how Y k R) as [W E].
    destruct (row_is_margin how Y j R) as [_ E']. split.
    - apply Forall_app. split; auto. apply Forall_forall. intros t H. apply in_map_iff in H.
      destruct H as (t' & <- & _). apply subtract_from_bounded.
    - intros x Hx. rewrite sum_value_app, negated_row, E, E' by auto. lia.
  Qed.

  (** * Changes *)
  Lemma margins_length : forall x, length (margins (q_outputs q) x) = length (q_outputs q).
  Proof. intros. apply map_length. Qed.
  Lemma wins_says : forall how Y k, reads how Y ->
    says (wins_form hash_leaf hash_node q untouched (at_fate how) k)
         (fun x => wins (margins (q_outputs q) (Y x)) k).
  Proof.
    intros how Y k R. unfold wins_form.
    eapply says_ext. apply all_of_says with (P := fun j x =>
        if (j <? k)%nat
        then output (margins (q_outputs q) (Y x)) j <? output (margins (q_outputs q) (Y x)) k
        else output (margins (q_outputs q) (Y x)) j <=? output (margins (q_outputs q) (Y x)) k).
    - intros j _. destruct (lead_is_lead how Y k j R) as [W E].
      destruct (j <? k)%nat; (eapply says_ext; [apply atom_says; [exact W|exact E]|]);
        intros x _; cbn [pass]; apply Bool.eq_iff_eq_true; rewrite ?Z.ltb_lt, ?Z.leb_le; lia.
    - intros x _. unfold wins. rewrite margins_length. reflexivity.
  Qed.
  Lemma loses_says : forall how Y k, reads how Y ->
    says (loses_form hash_leaf hash_node q untouched (at_fate how) k)
         (fun x => negb (wins (margins (q_outputs q) (Y x)) k)).
  Proof.
    intros how Y k R. unfold loses_form.
    eapply says_ext. apply some_of_says with (P := fun j x => negb (
        if (j <? k)%nat
        then output (margins (q_outputs q) (Y x)) j <? output (margins (q_outputs q) (Y x)) k
        else output (margins (q_outputs q) (Y x)) j <=? output (margins (q_outputs q) (Y x)) k)).
    - intros j _. destruct (lead_is_lead how Y k j R) as [W E].
      destruct (j <? k)%nat; (eapply says_ext; [apply atom_says; [exact W|exact E]|]);
        intros x _; cbn [pass]; apply Bool.eq_iff_eq_true;
        rewrite ?negb_true_iff, ?Z.leb_le, ?Z.ltb_ge, ?Z.leb_gt; lia.
    - intros x _. unfold wins. rewrite margins_length, existsb_negb. reflexivity.
  Qed.

  Variable swap : list nat -> list nat -> bool.
  Notation stop_at := (stop_at hash_leaf hash_node g q).
  Notation changed_form := (changed_form hash_leaf hash_node q untouched swap).
  Lemma changed_says : forall m m', In m (masks g S) -> In m' (masks g S) ->
    says (changed_form (stop_at m) (stop_at m'))
         (fun x => changed (q_change q) (margins (q_outputs q) (start_of m x))
                                        (margins (q_outputs q) (target_of m' x))).
  Proof.
    intros m m' Hm Hm'. unfold Count.changed_form, changed. cbn [s_start s_target s_mask Count.stop_at].
    fold (at_fate (start_fate q m)). fold (at_fate (target_fate q m')).
    pose proof (reads_start m Hm) as Rs. pose proof (reads_target m' Hm') as Rt.
    (* the four kinds of atoms *)
    destruct (differences_are_differences _ _ _ _ Rs Rt) as [Wd Ed].
    destruct (differences_are_differences _ _ _ _ Rt Rs) as [Wd' Ed'].
    destruct (row_is_margin _ _ 0%nat Rs) as [Wv Ev]. destruct (row_is_margin _ _ 0%nat Rt) as [Ww Ew].
    assert (Av : forall a, says (atom a (row untouched (at_fate (start_fate q m)) 0))
      (fun x => pass a (output (margins (q_outputs q) (start_of m x)) 0)))
      by (intros; apply atom_says; auto).
    assert (Aw : forall a, says (atom a (row untouched (at_fate (target_fate q m')) 0))
      (fun x => pass a (output (margins (q_outputs q) (target_of m' x)) 0)))
      by (intros; apply atom_says; auto).
    destruct (q_change q) as [G|G|G|L T H|L T|T H| |C|C].
    - destruct (swap m m').
      + eapply says_ext. apply atom_says; [exact Wd|exact Ed]. intros. cbn [pass]. f_equal. lia.
      + eapply says_ext. apply atom_says; [exact Wd'|exact Ed']. reflexivity.
    - eapply says_ext. apply atom_says; [exact Wd'|exact Ed']. reflexivity.
    - eapply says_ext. apply atom_says; [exact Wd|exact Ed]. reflexivity.
    - destruct ((L =? T) && (T =? H)) eqn:E.
      + apply andb_true_iff in E. destruct E as [E1 E2]. apply Z.eqb_eq in E1, E2. subst L H.
        eapply says_ext. apply bin_says; [apply Av|apply Aw]. intros x _. cbn [apply pass].
        rewrite !Z.leb_antisym. destruct (T <? _), (T <? _); reflexivity.
      + apply disj_says; apply conj_says;
          [exact (Av (TLe L))|exact (Aw (TGt T))|exact (Av (TGt H))|exact (Aw (TLe T))].
    - apply conj_says; [exact (Av (TLe L))|exact (Aw (TGt T))].
    - apply conj_says; [exact (Av (TGt H))|exact (Aw (TLe T))].
    - eapply says_ext. apply some_of_says. intros k _.
      apply conj_says; [apply wins_says|apply loses_says]; eauto.
      intros x _. cbn beta. rewrite margins_length. reflexivity.
    - apply conj_says; [apply loses_says|apply wins_says]; auto.
    - apply conj_says; [apply wins_says|apply loses_says]; auto.
  Qed.

  (** * Cells that may not be entered *)
  Definition stays_out (a : nat * cells) (x : region) : bool :=
    let '(f, s) := a in
    if among f S then true
    else match lookup f (q_along q) with
         | None => true
         | Some cs => negb (mem (cell x f) (entering cs s))
         end.
  Definition along_ok (x : region) : bool := forallb (fun a => stays_out a x) (q_closed q).
  Lemma along_says : says (along_form hash_leaf hash_node q) along_ok.
  Proof.
    unfold along_form, along_ok. apply all_of_says.
    intros [f s] _. unfold stays_out. destruct (among f S). apply const_says.
    destruct (lookup f (q_along q)) as [cs|]; [|apply const_says].
    eapply says_ext. apply atom_says with (v := fun x => if mem (cell x f) (entering cs s) then 0 else 1).
    - constructor; [|constructor]. apply node_bounded; exact I.
    - intros x _. unfold sum_value. cbn [map]. rewrite zsum_cons, node_value.
      destruct (mem _ _); reflexivity.
    - intros x _. cbn beta. destruct (mem (cell x f) (entering cs s)); reflexivity.
  Qed.
  Lemma entering_splits : forall m m' x,
    In m (masks g S) -> In m' (masks g S) -> In x (regions g) ->
    enters_no_closed (q_closed q) (start_of m x) (target_of m' x)
    = may_enter q (put_mask (zero g) S m) (put_mask (zero g) S m') && along_ok x.
  Proof.
    intros m m' x Hm Hm' Hx. unfold enters_no_closed, may_enter, along_ok. rewrite <- forallb_and.
    destruct (reads_start m Hm x Hx) as [Fo _]. destruct (reads_target m' Hm' x Hx) as [Fo' _].
    apply in_regions in Hx. destruct Hx as [L Hx].
    apply forallb_ext_in. intros [f s] _. unfold stays_out.
    destruct (among f S) eqn:A; cbn [negb orb andb].
    - (* the masks decide *)
      rewrite andb_true_r.
      assert (E : cell (start_of m x) f = cell (put_mask (zero g) S m) f)
        by (apply sensitive_cell; auto using zero_length).
      assert (E' : cell (target_of m' x) f = cell (put_mask (zero g) S m') f)
        by (apply sensitive_cell; auto using zero_length; rewrite moved_length; auto).
      rewrite E, E'. reflexivity.
    - (* the start decides *)
      specialize (Fo f). specialize (Fo' f). unfold start_fate in Fo. unfold target_fate in Fo'.
      pose proof (in_masks g S m f Hm) as K. pose proof (in_masks g S m' f Hm') as K'.
      destruct (cell_in_mask S m f); [destruct K; congruence|].
      destruct (cell_in_mask S m' f); [destruct K'; congruence|].
      destruct (lookup f (q_along q)) as [cs|].
      + destruct Fo' as [Lc E]. rewrite E, Fo. unfold entering. rewrite mem_cells_where.
        destruct (Nat.ltb_spec (cell x f) (length cs)); [|lia]. cbn [andb].
        rewrite negb_andb, negb_involutive. reflexivity.
      + rewrite Fo', Fo, Nat.eqb_refl, orb_true_r. reflexivity.
  Qed.

  (** * The formula of a mask *)
  Notation stop_form := (stop_form hash_leaf hash_node g q untouched swap
                                   (along_form hash_leaf hash_node q)).
  Notation stops := (map stop_at (masks g S)).
  Lemma pair_says : forall m m', In m (masks g S) -> In m' (masks g S) ->
    says (pair_form hash_leaf hash_node q untouched swap (stop_at m) (stop_at m'))
         (fun x => all_positive (filter (touched q) (q_rules q)) (target_of m' x)
                   && all_positive (q_to q) (target_of m' x)
                   && changed (q_change q) (margins (q_outputs q) (start_of m x))
                                           (margins (q_outputs q) (target_of m' x))).
  Proof.
    intros m m' Hm Hm'. unfold pair_form. apply guard_says.
    - cbn [s_to Count.stop_at]. apply conj_says; apply positive_says; apply reads_target; auto.
    - apply changed_says; auto.
  Qed.
  Theorem formula_says_sensitive : forall m, In m (masks g S) ->
    says (stop_form stops (stop_at m)) (fun x => sensitive q (start_of m x)).
  Proof.
    intros m Hm. unfold Count.stop_form.
    assert (N : says (some_of (map (pair_form hash_leaf hash_node q untouched swap (stop_at m))
                                   (neighbours g q stops (stop_at m))))
      (fun x => existsb (fun m' =>
         close g S (q_distance q) (put_mask (zero g) S m) (put_mask (zero g) S m')
         && may_enter q (put_mask (zero g) S m) (put_mask (zero g) S m')
         && (all_positive (filter (touched q) (q_rules q)) (target_of m' x)
             && all_positive (q_to q) (target_of m' x)
             && changed (q_change q) (margins (q_outputs q) (start_of m x))
                                     (margins (q_outputs q) (target_of m' x)))) (masks g S))).
    { eapply says_ext.
      - apply some_of_says with (P := fun b x =>
          all_positive (filter (touched q) (q_rules q)) (target_of (s_mask b) x)
          && all_positive (q_to q) (target_of (s_mask b) x)
          && changed (q_change q) (margins (q_outputs q) (start_of m x))
                                  (margins (q_outputs q) (target_of (s_mask b) x))).
        intros b Hb. unfold neighbours in Hb. apply filter_In in Hb. destruct Hb as [Hb _].
        apply in_map_iff in Hb. destruct Hb as (m' & <- & Hm'). apply pair_says; auto.
      - intros x _. unfold neighbours. rewrite existsb_filter, existsb_map. reflexivity. }
    eapply says_ext.
    { apply guard_says; [|apply conj_says; [apply along_says|exact N]].
      cbn [s_from Count.stop_at]. apply conj_says; apply positive_says; apply reads_start; auto. }
    intros x Hx. cbn beta. unfold start_of at 4. rewrite sensitive_by_masks by auto.
    fold (start_of m x). destruct (all_positive (q_rules q) (start_of m x)) eqn:Ru; auto.
    destruct (all_positive (q_from q) (start_of m x)); auto. cbn [andb].
    rewrite andb_comm, <- existsb_and_const. apply existsb_ext_in. intros m' Hm'.
    unfold acceptable. cbn zeta. fold (start_of m x). fold (target_of m' x).
    rewrite (touched_rules_suffice m m' x), (entering_splits m m' x) by auto.
    destruct (close _ _ _ _ _), (may_enter _ _ _), (along_ok x),
      (all_positive (filter _ _) _), (all_positive (q_to q) _); cbn [andb];
      rewrite ?andb_true_r, ?andb_false_r; reflexivity.
  Qed.
End Question.
