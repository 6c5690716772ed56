(** Weighted sums over a grid can be taken one feature at a time.

    The counting lemma of the whole development is [sum_by_one_feature]: the weight of a set of
    regions, times the weight of one feature f, is the sum over the cells c of f of w_c times the
    weight of the set after f was set to c.  [sum_by_masks] is the same for several features. *)
From Coq Require Import List Arith ZArith Bool Lia.
From XCount Require Import Spec Count.
Import ListNotations.
Open Scope Z_scope.

(** * Sums of lists *)
Lemma zsum_cons : forall a l, zsum (a :: l) = a + zsum l.
Proof. reflexivity. Qed.
Lemma zsum_app : forall a b, zsum (a ++ b) = zsum a + zsum b.
Proof. induction a; intros; cbn [app]; rewrite ?zsum_cons. reflexivity. rewrite IHa. lia. Qed.
Lemma zsum_ext : forall A (h k : A -> Z) l,
  (forall x, In x l -> h x = k x) -> zsum (map h l) = zsum (map k l).
Proof. intros. f_equal. apply map_ext_in; auto. Qed.
Lemma zsum_flat_map : forall A B (h : A -> list B) k l,
  zsum (map k (flat_map h l)) = zsum (map (fun a => zsum (map k (h a))) l).
Proof. induction l; simpl; auto. rewrite map_app, zsum_app, IHl. reflexivity. Qed.
Lemma zsum_mul : forall A k (h : A -> Z) l, zsum (map (fun a => k * h a) l) = k * zsum (map h l).
Proof. induction l; cbn [map]; rewrite ?zsum_cons. cbn; lia. rewrite IHl. lia. Qed.
Lemma zsum_add : forall A (h k : A -> Z) l,
  zsum (map (fun a => h a + k a) l) = zsum (map h l) + zsum (map k l).
Proof. induction l; cbn [map]; rewrite ?zsum_cons. reflexivity. rewrite IHl. lia. Qed.
Lemma zsum_zero : forall A (l : list A), zsum (map (fun _ => 0) l) = 0.
Proof. induction l; cbn [map]; rewrite ?zsum_cons; auto. Qed.
Lemma zsum_swap : forall A B (h : A -> B -> Z) la lb,
  zsum (map (fun a => zsum (map (h a) lb)) la)
  = zsum (map (fun b => zsum (map (fun a => h a b) la)) lb).
Proof.
  induction la; intros lb; cbn [map].
  - symmetry. apply (zsum_zero _ lb).
  - rewrite zsum_cons, IHla, <- zsum_add. reflexivity.
Qed.
Lemma zsum_partition : forall A (p : A -> bool) (h : A -> Z) l,
  zsum (map h l) = zsum (map h (filter (fun a => negb (p a)) l)) + zsum (map h (filter p l)).
Proof.
  induction l; cbn [map filter]. reflexivity.
  destruct (p a); cbn [negb map]; rewrite !zsum_cons, IHl; lia.
Qed.

(** * The weighted sum of F over the cells lo, lo + 1, ... of one feature *)
Fixpoint csum (F : nat -> Z) (lo : nat) (ws : list Z) : Z :=
  match ws with [] => 0 | w :: ws' => w * F lo + csum F (S lo) ws' end.
Lemma csum_app : forall F a lo b, csum F lo (a ++ b) = csum F lo a + csum F (lo + length a) b.
Proof.
  induction a; intros lo b; cbn [csum app length]. rewrite Nat.add_0_r. lia.
  rewrite IHa, Nat.add_succ_r. cbn [Nat.add]. lia.
Qed.
Lemma csum_ext : forall F H ws lo,
  (forall c, (lo <= c < lo + length ws)%nat -> F c = H c) -> csum F lo ws = csum H lo ws.
Proof.
  induction ws; intros lo E; cbn [csum length] in *. reflexivity.
  rewrite E by lia. rewrite IHws. reflexivity. intros; apply E; lia.
Qed.
Lemma csum_const : forall k ws lo, csum (fun _ => k) lo ws = zsum ws * k.
Proof. induction ws; intros lo; cbn [csum]; rewrite ?zsum_cons. reflexivity. rewrite IHws. lia. Qed.
Lemma csum_mul : forall k F ws lo, csum (fun c => k * F c) lo ws = k * csum F lo ws.
Proof. induction ws; intros lo; cbn [csum]. lia. rewrite IHws. lia. Qed.
Lemma csum_add : forall F H ws lo, csum (fun c => F c + H c) lo ws = csum F lo ws + csum H lo ws.
Proof. induction ws; intros lo; cbn [csum]. lia. rewrite IHws. lia. Qed.
Lemma csum_swap : forall F v lo' ws lo,
  csum (fun c => csum (fun c' => F c c') lo' v) lo ws
  = csum (fun c' => csum (fun c => F c c') lo ws) lo' v.
Proof.
  induction ws as [|w ws IH]; intros lo; cbn [csum].
  - rewrite csum_const. lia.
  - rewrite IH, csum_add, csum_mul. reflexivity.
Qed.
Lemma csum_as_zsum : forall F ws i lo,
  csum F lo ws = zsum (map (fun c => nth (c - i) ws 0 * F (lo + (c - i))%nat) (seq i (length ws))).
Proof.
  induction ws as [|w ws IH]; intros i lo; cbn [csum length seq map]. reflexivity.
  rewrite zsum_cons, Nat.sub_diag, Nat.add_0_r. cbn [nth]. f_equal.
  rewrite (IH (S i) (S lo)). apply zsum_ext. intros c Hc. apply in_seq in Hc.
  replace (c - i)%nat with (S (c - S i)) by lia. cbn [nth]. rewrite Nat.add_succ_r. reflexivity.
Qed.

(** * The weight of the regions that satisfy P *)
Fixpoint wsum (g : grid) (P : region -> bool) : Z :=
  match g with
  | [] => if P [] then 1 else 0
  | F :: g' => csum (fun c => wsum g' (fun x => P (c :: x))) 0 (weights F)
  end.
Lemma filter_flat_map : forall A B (P : B -> bool) (h : A -> list B) l,
  filter P (flat_map h l) = flat_map (fun a => filter P (h a)) l.
Proof. induction l; simpl; auto. rewrite filter_app, IHl. reflexivity. Qed.
Lemma filter_map_cons : forall (P : region -> bool) c l,
  filter P (map (cons c) l) = map (cons c) (filter (fun x => P (c :: x)) l).
Proof. induction l; simpl; auto. destruct (P (c :: a)); simpl; rewrite IHl; auto. Qed.
Lemma wsum_is_sum_of_weights : forall g P,
  wsum g P = zsum (map (weight g) (filter P (regions g))).
Proof.
  induction g as [|F g IH]; intros P. cbn. destruct (P []); reflexivity.
  cbn [wsum regions]. rewrite filter_flat_map, zsum_flat_map, (csum_as_zsum _ _ 0).
  apply zsum_ext. intros c Hc. rewrite Nat.sub_0_r. cbn [Nat.add].
  rewrite filter_map_cons, map_map. cbn [weight]. rewrite zsum_mul, IH. reflexivity.
Qed.
Lemma wsum_ext : forall g P Q, (forall x, In x (regions g) -> P x = Q x) -> wsum g P = wsum g Q.
Proof. intros. rewrite !wsum_is_sum_of_weights. rewrite (filter_ext_in P Q); auto. Qed.
Lemma wsum_const : forall g b, wsum g (fun _ => b) = if b then total g else 0.
Proof.
  induction g as [|F g IH]; intros b. destruct b; reflexivity.
  cbn [wsum]. rewrite csum_const, IH. destruct b. reflexivity. lia.
Qed.
(** |A or B| = |A| + |B| - |A and B| *)
Lemma wsum_overlap : forall g P Q,
  wsum g (fun x => P x || Q x) = wsum g P + wsum g Q - wsum g (fun x => P x && Q x).
Proof.
  induction g as [|F g IH]; intros P Q; cbn [wsum].
  - destruct (P []), (Q []); reflexivity.
  - rewrite <- csum_add.
    replace (csum (fun c => wsum g (fun x => P (c :: x) && Q (c :: x))) 0 (weights F))
      with (- csum (fun c => (-1) * wsum g (fun x => P (c :: x) && Q (c :: x))) 0 (weights F))
      by (rewrite csum_mul; lia).
    rewrite Z.sub_opp_r, <- csum_add. apply csum_ext. intros c _. rewrite IH. lia.
Qed.

(** * The counting lemma, for one feature and for a list of features *)
Lemma sum_by_one_feature : forall g f P, (f < length g)%nat ->
  zsum (cell_weights g f) * wsum g P
  = csum (fun c => wsum g (fun x => P (put x f c))) 0 (cell_weights g f).
Proof.
  unfold cell_weights. induction g as [|F g IH]; intros f P Hf; cbn [length] in Hf. lia.
  cbn [wsum]. destruct f as [|f]; cbn [nth put].
  - rewrite <- csum_mul. apply csum_ext. intros c _. rewrite csum_const. reflexivity.
  - rewrite <- csum_mul, csum_swap. apply csum_ext. intros c _. apply IH. lia.
Qed.
Lemma sum_by_masks : forall g S P, (forall f, In f S -> (f < length g)%nat) ->
  copies g S * wsum g P
  = zsum (map (fun m => mask_weight g S m * wsum g (fun x => P (put_mask x S m))) (masks g S)).
Proof.
  induction S as [|f S IH]; intros P H.
  - unfold copies. cbn [fold_right masks map mask_weight put_mask].
    rewrite zsum_cons. cbn [zsum fold_right]. change (fun x => P x) with P. lia.
  - change (copies g (f :: S)) with (zsum (cell_weights g f) * copies g S). cbn [masks].
    rewrite <- Z.mul_assoc, IH by (intros; apply H; right; auto).
    rewrite <- zsum_mul, zsum_flat_map.
    (* inside the sum over the masks of S, sum over the cells of f *)
    rewrite zsum_ext with (k := fun m => zsum (map (fun c =>
        nth c (cell_weights g f) 0 * mask_weight g S m
        * wsum g (fun x => P (put_mask (put x f c) S m))) (seq 0 (n_cells g f)))).
    2:{ intros m Hm. rewrite Z.mul_assoc, (Z.mul_comm (zsum _)), <- Z.mul_assoc.
        rewrite sum_by_one_feature by (apply H; left; auto).
        rewrite (csum_as_zsum _ _ 0), <- zsum_mul. unfold n_cells.
        apply zsum_ext. intros c _. rewrite Nat.sub_0_r. cbn [Nat.add]. ring. }
    rewrite zsum_swap. apply zsum_ext. intros c Hc. rewrite map_map. reflexivity.
Qed.
